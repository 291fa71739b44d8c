"""job.py -- real ranks under mpirun, from the outside: start them, wait until they train, find them, end them.

Arguments of a test script: BIN, the folder of the programs, and MPIEXEC. `JobTest` is the test case to derive from.
"""
import json
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import small_graph
from die_with_parent import die_with_parent
import nothing_left
import open_mpi  # sets the environment of mpirun
from no_process_left import Job, report
from poll import poll_until

BIN, MPIEXEC = (pathlib.Path(sys.argv[1]), sys.argv[2]) if len(sys.argv) > 2 else (None, None)
CAPSTAN = str(BIN / "capstan") if BIN else None

HOST = socket.gethostname().partition(".")[0]

# The mean reciprocal rank of a model that has learnt the small graph. By chance it is 0.08; three hundred epochs of
# `train` reach 0.97 to 1.0, by the seed and by the order in which workers push.
LEARNT = 0.5

# What standard error says when the first epochs are behind, given --eval-every.
TRAINS = "valid MRR"
# How long a job that lost something may take until it is gone: a second or two, and what a busy machine adds. Less than
# any time-out that would end it without the loss having been noticed.
SECONDS_TO_END = 20
# Of a healthy job on a busy machine; a test's own TIMEOUT is longer.
SECONDS_TO_FINISH = 120
# Settings with which nobody counts as dead, or as lost, because a busy machine has kept it waiting.
PATIENT = {"CAPSTAN_HEARTBEAT_TIMEOUT": "40s", "CAPSTAN_PS_WAIT": "40s"}


class RankedJob(Job):
    """A program under mpirun (`ranks` > 0) or alone, its output in files so that it can be read as it grows."""

    def __init__(self, command, ranks=0, launcher=None, env=None, cwd=None):
        self.folder = tempfile.TemporaryDirectory(prefix="capstan-job-", dir=cwd)
        self.started = time.time()
        self.words = command
        self.out_path = pathlib.Path(self.folder.name, "stdout")
        self.err_path = pathlib.Path(self.folder.name, "stderr")
        if ranks:
            command = [*(launcher or [MPIEXEC]), "-n", str(ranks), *command]
        # A CAPSTAN_ variable of the caller's shell is no part of a test.
        clean = {name: value for name, value in os.environ.items() if not name.startswith("CAPSTAN_")}
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            super().__init__(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env={**clean, **(env or {})},
                preexec_fn=die_with_parent,
            )

    def __exit__(self, *exception):
        super().__exit__(*exception)
        self.folder.cleanup()

    @property
    def stdout(self):
        return self.out_path.read_text(errors="replace")

    @property
    def stderr(self):
        return self.err_path.read_text(errors="replace")

    def warnings(self):
        """Lines, but for those that say that this machine, or what it leaves to the test, has few cores."""
        few_cores = re.compile("take turns|bound to (one|the same) core")
        return [line for line in self.stderr.splitlines() if "[warning]" in line and not few_cores.search(line)]

    def wait_for_text(self, pattern, seconds=SECONDS_TO_FINISH):
        """The match in standard error as soon as it is there; None when the job ends or `seconds` pass without it."""
        return self.wait_for(lambda: re.search(pattern, self.stderr), seconds)

    def wait_for(self, look, seconds=SECONDS_TO_FINISH):
        """What `look()` returns as soon as that is true; None when the job ends or `seconds` pass without it."""
        def found_or_ended():
            running = self.command.poll() is None
            found = look()
            return (found or None,) if found or not running else None

        ended = poll_until(found_or_ended, seconds)
        return ended[0] if ended else None

    def ranks(self):
        """{rank: (pid of its agent, pid of its child)}; both are one process where there is no agent."""
        parents, rank_of = {}, {}
        for pid in self.processes():
            try:
                name, _, parent = status_of(pid)
                if name == START_CHILD:
                    continue
                environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                parents[pid] = parent
            except OSError:
                continue
            for entry in environment:
                if entry.startswith((b"OMPI_COMM_WORLD_RANK=", b"PMI_RANK=")):
                    rank_of[pid] = int(entry.partition(b"=")[2])
        found = {}
        for pid, rank in rank_of.items():
            if rank_of.get(parents[pid]) == rank:
                found[rank] = (parents[pid], pid)
            else:
                found.setdefault(rank, (pid, pid))
        return found

    def signal_launcher(self, number):
        os.kill(self.command.pid, number)

    def press_control_c(self):
        """What a terminal does: the launcher's whole process group gets it."""
        os.killpg(self.command.pid, signal.SIGINT)


def train(data, *options, dim=32, negatives=32, batch=64, epochs=60):
    """The command of a short training; `options` go last and win."""
    sizes = ["--dim", dim, "--negatives", negatives, "--batch", batch, "--epochs", epochs]
    return [CAPSTAN, "train", "kge", "--data", data, *sizes, *options]


class Roles:
    """Which rank is what on one host: the coordinator is rank 0, the ps are the highest ranks."""

    def __init__(self, ranks, ps):
        self.coordinator = 0
        self.workers = list(range(1, ranks - ps))
        self.ps = list(range(ranks - ps, ranks))


# The name of the other child of an agent, which ends soon after the start of the job.
START_CHILD = "capstan-start"


def status_of(pid):
    """(name, state, pid of the parent). Raises OSError when it has ended."""
    name, _, rest = pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")
    state, parent = rest.split()[:2]
    return name.partition("(")[2], state, int(parent)


def child_of(pid):
    """The pid of a process's child that lives; None when it has none."""
    for folder in sorted(pathlib.Path("/proc").glob("[0-9]*"), key=lambda folder: int(folder.name)):
        try:
            name, state, parent = status_of(folder.name)
        except OSError:
            continue  # ended while we looked
        if parent == pid and state not in "ZX" and name != START_CHILD:
            return int(folder.name)
    return None


def kill_and_see_it_die(pid):
    """The time (monotonic, ns) at which the kernel has said that the process is dead, and has closed its files."""
    descriptor = os.pidfd_open(pid)
    try:
        os.kill(pid, signal.SIGKILL)
        select.select([descriptor], [], [], SECONDS_TO_FINISH)
        return time.monotonic_ns()
    finally:
        os.close(descriptor)


def outlived(command):
    """The command of ranks of which an agent may be killed: a launcher ends the job of a process that is killed, and does
    not see it where a shell has started it. The job's exit code is rank 0's."""
    script = '"$0" "$@"; code=$?; [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 0 ] && exit $code; exit 0'
    return ["sh", "-c", script, *command]


def agent_of(job, rank):
    """Of a rank, whether or not a shell has started it."""
    pid = job.ranks()[rank][0]
    child = child_of(pid)
    return child if child and child_of(child) else pid


class JobTest(unittest.TestCase):
    """Has a folder for each test, and fails a test that leaves a process behind, or anything else that a job may."""

    environment = {}  # of every job that it starts

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="capstan-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def graph(self, **options):
        return small_graph.write(self.folder / "graph", **options)

    def small_disk(self, size):
        """A folder with room for so much ("40m"), unmounted at the end of the test."""
        if os.geteuid() != 0:
            self.skipTest("a small disk needs root, to mount one")
        disk = self.folder / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk], capture_output=True, text=True)
        if mounted.returncode != 0:
            self.skipTest(f"no small disk here: {mounted.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", disk], check=True)
        return disk

    def start(self, command, ranks=0, **options):
        options["env"] = {**self.environment, **(options.get("env") or {})}
        job = RankedJob(command, ranks, **options)
        self.addCleanup(job.__exit__)
        return job

    def assert_says(self, job, pattern):
        """Waits until it does."""
        self.assertTrue(job.wait_for_text(pattern), f"{pattern} is not in:\n{job.stderr}")

    def exit_code(self, job, seconds=SECONDS_TO_FINISH):
        """The job's exit code, after all its processes have gone."""
        code = job.wait(seconds)
        if code is None:
            report(job, f"still running after {seconds} s")
            self.fail(f"the job has not ended within {seconds} s; it said:\n{job.stderr}")
        self.assert_all_gone(job)
        return code

    def assert_all_gone(self, job, seconds=SECONDS_TO_END):
        if not job.wait_until_gone(seconds):
            report(job, f"left behind after {seconds} s")
            left = job.processes()
            self.fail(f"left behind after {seconds} s: {left}; the job said:\n{job.stderr}")
        job.gone_at = time.monotonic()
        left = nothing_left.shared_memory_for_long(job.started, seconds) + nothing_left.sockets_in(self.folder)
        # When the coordinator and its agent were both killed there is nobody to clear it; the next job does.
        if job.command.returncode == 0:
            left += nothing_left.run_directory(job.words)
        self.assertEqual(left, [], f"left behind; the job said:\n{job.stderr}")

    def run_to_end(self, command, ranks=0, **options):
        """Runs a healthy job; returns it, ended, with exit code 0."""
        job = self.start(command, ranks, **options)
        code = self.exit_code(job)
        self.assertEqual(code, 0, job.stderr)
        return job

    def summary(self):
        return json.loads((self.folder / "summary.json").read_text())


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
