"""nothing_left.py -- finds resources other than processes that a job left behind: shared memory, sockets, run directories.

A socket ends with its process, unless it has a name in the file system.
"""
import os
import pathlib
import stat

from poll import poll_until

SHARED_MEMORY = pathlib.Path("/dev/shm")
PERSISTENT_FILES = ["log", "metrics.jsonl", "events", "now.prom", "summary.txt", "trace", "trace.json"]


def in_use():
    """Returns the files of shared memory that a live process has mapped or open."""
    names = set()
    for directory in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            lines = (directory / "maps").read_text(errors="replace").splitlines()
            names.update(line.split(maxsplit=5)[5] for line in lines if str(SHARED_MEMORY) in line)
            names.update(os.readlink(link) for link in (directory / "fd").iterdir())
        except OSError:
            continue  # has ended, or belongs to another user
    return names


def shared_memory(since):
    """Returns POSIX and System V shared memory that was created after `since` (time.time()) and that no process uses.

    Empty files do not count: Capstan leaves them, since another process may be about to open one (orphaned_memory.cpp).
    """
    recent = []
    for path in SHARED_MEMORY.iterdir():
        try:
            found = path.stat()
            if found.st_ctime >= since and found.st_size > 0:
                recent.append(str(path))
        except OSError:
            continue
    used = in_use() if recent else set()
    left = [path for path in recent if path not in used]
    for line in pathlib.Path("/proc/sysvipc/shm").read_text().splitlines()[1:]:
        _, shmid, _, _, creator, _, attached, *_, changed = line.split()[:14]
        if int(changed) >= since and int(attached) == 0 and not pathlib.Path(f"/proc/{creator}").exists():
            left.append(f"System V segment {shmid} of pid {creator}")
    return left


def lasting_shared_memory(since, seconds):
    """shared_memory(since) that still exists after `seconds`; other jobs of this machine create and remove their own."""
    left = shared_memory(since)

    def all_gone():
        left[:] = [one for one in shared_memory(since) if one in left]
        return not left

    poll_until(all_gone, seconds, period=0.1)
    return left


def run_directory(command):
    """Returns the files of the job's run directory that must not outlive the job; logs and metrics do."""
    words = [str(word) for word in command]
    directories = [word.partition("=")[2] for word in words if word.startswith(("--capstan-run-dir=", "--run-dir="))]
    directories += [after for word, after in zip(words, words[1:]) if word == "--run-dir"]
    found = [path for directory in directories for path in pathlib.Path(directory).glob("*")]
    return [str(path) for path in found if path.name not in PERSISTENT_FILES]


def sockets_in(directory):
    return [str(path) for path in pathlib.Path(directory).rglob("*") if stat.S_ISSOCK(path.lstat().st_mode)]
