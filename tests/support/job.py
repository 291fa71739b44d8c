"""job.py -- starts real ranks under mpirun, waits until they train, finds their processes and checks how they end.

Arguments of a test script: BIN, the directory of the programs, and MPIEXEC. Test cases derive from `JobTest`.
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

# Mean reciprocal rank that a trained model of the small graph exceeds. A random model has 0.08; 300 epochs of `train` reach
# 0.97 to 1.0, depending on the seed and on the order of pushes.
LEARNED_MRR = 0.5

# Standard error contains this after the first epochs, given --eval-every.
TRAINING_OUTPUT = "valid MRR"
# Time until a job with a dead rank has ended: one or two seconds, plus delays of a busy machine. It is shorter than any
# timeout that would end the job even if the death were not detected.
SECONDS_TO_END = 20
# Time limit of a healthy job on a busy machine; each test's own TIMEOUT is longer.
SECONDS_TO_FINISH = 120
# Timeouts that no rank exceeds because a busy machine delays it.
LONG_TIMEOUTS = {"CAPSTAN_HEARTBEAT_TIMEOUT": "40s", "CAPSTAN_PS_WAIT": "40s"}


class RankedJob(Job):
    """A program under mpirun (`ranks` > 0) or alone. Its output goes to files, so tests can read it while it runs."""

    def __init__(self, command, ranks=0, launcher=None, env=None, cwd=None):
        self.directory = tempfile.TemporaryDirectory(prefix="capstan-job-", dir=cwd)
        self.started = time.time()
        self.words = command
        self.out_path = pathlib.Path(self.directory.name, "stdout")
        self.err_path = pathlib.Path(self.directory.name, "stderr")
        if ranks:
            command = [*(launcher or [MPIEXEC]), "-n", str(ranks), *command]
        # The CAPSTAN_ variables of the caller's shell must not affect a test.
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
        self.directory.cleanup()

    @property
    def stdout(self):
        return self.out_path.read_text(errors="replace")

    @property
    def stderr(self):
        return self.err_path.read_text(errors="replace")

    def warnings(self):
        """Returns the lines with warnings, except those about a machine or a CPU mask with few cores."""
        few_cores = re.compile("take turns|bound to (one|the same) core")
        return [line for line in self.stderr.splitlines() if "[warning]" in line and not few_cores.search(line)]

    def wait_for_text(self, pattern, seconds=SECONDS_TO_FINISH):
        """Returns the match of `pattern` in standard error; None if the job ends or `seconds` pass without one."""
        return self.wait_for(lambda: re.search(pattern, self.stderr), seconds)

    def wait_for(self, look, seconds=SECONDS_TO_FINISH):
        """Returns the first true result of `look()`; None if the job ends or `seconds` pass without one."""
        def found_or_ended():
            running = self.command.poll() is None
            found = look()
            return (found or None,) if found or not running else None

        ended = poll_until(found_or_ended, seconds)
        return ended[0] if ended else None

    def ranks(self):
        """Returns {rank: (pid of its agent, pid of its child)}; without an agent, both are the pid of the rank."""
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
        """Sends SIGINT to the launcher's process group, as a terminal does."""
        os.killpg(self.command.pid, signal.SIGINT)


def train(data, *options, dim=32, negatives=32, batch=64, epochs=60):
    """Returns the command of a short training; later `options` override earlier ones."""
    sizes = ["--dim", dim, "--negatives", negatives, "--batch", batch, "--epochs", epochs]
    return [CAPSTAN, "train", "kge", "--data", data, *sizes, *options]


class Roles:
    """The roles of ranks on one host: rank 0 is the coordinator, the highest ranks are the ps."""

    def __init__(self, ranks, ps):
        self.coordinator = 0
        self.workers = list(range(1, ranks - ps))
        self.ps = list(range(ranks - ps, ranks))


# Name of the agent's other child, which ends soon after the start of the job.
START_CHILD = "capstan-start"


def names_parameters(message, *parameters):
    """Returns whether the message contains each parameter, other than as a part of a longer word or number."""
    outside_a_word = r"(?!(?<=\w)\w)"
    return all(re.search(outside_a_word + re.escape(str(p)) + outside_a_word, message) for p in parameters)


def status_of(pid):
    """Returns (name, state, pid of the parent). Raises OSError if the process has ended."""
    name, _, rest = pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")
    state, parent = rest.split()[:2]
    return name.partition("(")[2], state, int(parent)


def child_of(pid):
    """Returns the pid of a live child of the process; None if it has none."""
    for directory in sorted(pathlib.Path("/proc").glob("[0-9]*"), key=lambda directory: int(directory.name)):
        try:
            name, state, parent = status_of(directory.name)
        except OSError:
            continue  # has ended
        if parent == pid and state not in "ZX" and name != START_CHILD:
            return int(directory.name)
    return None


def kill_and_await_death(pid):
    """Kills the process; returns the time (monotonic, ns) at which the kernel reported its death and closed its files."""
    descriptor = os.pidfd_open(pid)
    try:
        os.kill(pid, signal.SIGKILL)
        select.select([descriptor], [], [], SECONDS_TO_FINISH)
        return time.monotonic_ns()
    finally:
        os.close(descriptor)


def in_shell(command):
    """Wraps the command of ranks, so that a test may kill an agent: a launcher ends a job when one of its own child processes
    dies from a signal, but not when a child of a shell does. The job's exit code is rank 0's."""
    script = '"$0" "$@"; code=$?; [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 0 ] && exit $code; exit 0'
    return ["sh", "-c", script, *command]


def agent_of(job, rank):
    """Returns the pid of a rank's agent, whether or not it runs under a shell."""
    pid = job.ranks()[rank][0]
    child = child_of(pid)
    return child if child and child_of(child) else pid


class JobTest(unittest.TestCase):
    """Gives each test a directory, and fails a test whose job leaves a process or another resource behind."""

    environment = {}  # of every job that a test starts

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="capstan-test-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def graph(self, **options):
        return small_graph.write(self.directory / "graph", **options)

    def expect_settings(self, checkpoints, expected):
        """Expects these settings in the summary, and in the newest checkpoint as `capstan checkpoint show` prints it."""
        show = [CAPSTAN, "checkpoint", "show", checkpoints]
        text, saved = self.run_to_end(show).stdout, json.loads(self.run_to_end([*show, "--json"]).stdout)["settings"]
        for name, value in expected.items():
            self.assertEqual((name, saved[name]), (name, value))
            self.assertEqual((name, self.summary()["settings"][name]), (name, value))
            self.assertTrue(names_parameters(text, f"{name}={json.dumps(value)}"), text)

    def small_disk(self, size):
        """Returns the directory of a file system of this size ("40m"), which is unmounted at the end of the test."""
        if os.geteuid() != 0:
            self.skipTest("mounting a small file system needs root")
        disk = self.directory / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk], capture_output=True, text=True)
        if mounted.returncode != 0:
            self.skipTest(f"cannot mount a small file system: {mounted.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", disk], check=True)
        return disk

    def start(self, command, ranks=0, **options):
        options["env"] = {**self.environment, **(options.get("env") or {})}
        job = RankedJob(command, ranks, **options)
        self.addCleanup(job.__exit__)
        return job

    def wait_for_stderr(self, job, pattern):
        """Waits until standard error matches `pattern`; fails if the job ends first."""
        self.assertTrue(job.wait_for_text(pattern), f"{pattern} is not in:\n{job.stderr}")

    def assert_names(self, message, *parameters):
        """Checks that the message contains each parameter (names_parameters), whatever its wording."""
        for parameter in parameters:
            self.assertTrue(names_parameters(message, parameter), f"{parameter!r} is not in:\n{message}")

    def exit_code(self, job, seconds=SECONDS_TO_FINISH):
        """Returns the job's exit code once all its processes have ended."""
        code = job.wait(seconds)
        if code is None:
            report(job, f"still running after {seconds} s")
            self.fail(f"the job did not end within {seconds} s; its standard error:\n{job.stderr}")
        self.assert_all_gone(job)
        return code

    def assert_all_gone(self, job, seconds=SECONDS_TO_END):
        if not job.wait_until_gone(seconds):
            report(job, f"left behind after {seconds} s")
            left = job.processes()
            self.fail(f"left behind after {seconds} s: {left}; its standard error:\n{job.stderr}")
        job.gone_at = time.monotonic()
        left = nothing_left.lasting_shared_memory(job.started, seconds) + nothing_left.sockets_in(self.directory)
        # If the coordinator and its agent were killed, the run directory remains; the next job clears it.
        if job.command.returncode == 0:
            left += nothing_left.run_directory(job.words)
        self.assertEqual(left, [], f"left behind; the job's standard error:\n{job.stderr}")

    def run_to_end(self, command, ranks=0, **options):
        """Runs a healthy job to its end; returns it."""
        job = self.start(command, ranks, **options)
        code = self.exit_code(job)
        self.assertEqual(code, 0, job.stderr)
        return job

    def summary(self):
        return json.loads((self.directory / "summary.json").read_text())


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
