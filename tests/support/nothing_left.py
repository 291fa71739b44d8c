"""nothing_left.py -- what a job may leave behind besides processes: shared memory, sockets, the lock of a run directory.

Sockets end with their processes; what is looked for is one with a name in the file system.
"""
import os
import pathlib
import stat

from poll import poll_until

SHARED_MEMORY = pathlib.Path("/dev/shm")
KEPT_IN_RUN_DIRECTORY = ["log", "metrics.jsonl", "events", "now.prom", "summary.txt", "trace",
                         "trace.json"]


def in_use():
    """Files of shared memory that a living process maps or has open."""
    names = set()
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            lines = (folder / "maps").read_text(errors="replace").splitlines()
            names.update(line.split(maxsplit=5)[5] for line in lines if str(SHARED_MEMORY) in line)
            names.update(os.readlink(link) for link in (folder / "fd").iterdir())
        except OSError:
            continue  # ended while we looked, or is somebody else's
    return names


def shared_memory(since):
    """Of POSIX and of System V, made since then (by time.time()), that no process uses.

    An empty file is none: Capstan leaves it, since another process may be about to open it (orphaned_memory.cpp).
    """
    young = []
    for path in SHARED_MEMORY.iterdir():
        try:
            found = path.stat()
            if found.st_ctime >= since and found.st_size > 0:
                young.append(str(path))
        except OSError:
            continue
    used = in_use() if young else set()
    left = [path for path in young if path not in used]
    for line in pathlib.Path("/proc/sysvipc/shm").read_text().splitlines()[1:]:
        _, shmid, _, _, creator, _, attached, *_, changed = line.split()[:14]
        if int(changed) >= since and int(attached) == 0 and not pathlib.Path(f"/proc/{creator}").exists():
            left.append(f"System V segment {shmid} of pid {creator}")
    return left


def shared_memory_for_long(since, seconds):
    """The same, if it is still there after so long: other jobs of this machine make theirs meanwhile."""
    left = shared_memory(since)

    def all_gone():
        left[:] = [one for one in shared_memory(since) if one in left]
        return not left

    poll_until(all_gone, seconds, period=0.1)
    return left


def run_directory(command):
    """Files of the job's run directory that are of a job that runs; logs and figures stay for its reader."""
    words = [str(word) for word in command]
    folders = [word.partition("=")[2] for word in words if word.startswith(("--capstan-run-dir=", "--run-dir="))]
    folders += [after for word, after in zip(words, words[1:]) if word == "--run-dir"]
    found = [path for folder in folders for path in pathlib.Path(folder).glob("*")]
    return [str(path) for path in found if path.name not in KEPT_IN_RUN_DIRECTORY]


def sockets_in(folder):
    return [str(path) for path in pathlib.Path(folder).rglob("*") if stat.S_ISSOCK(path.lstat().st_mode)]
