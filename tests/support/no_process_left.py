#!/usr/bin/env python3
"""no_process_left.py [--timeout S] [--grace S] -- COMMAND ...

Runs COMMAND. Fails if it does not end within the timeout, or if a process that it started still runs after the grace
period. A mark in the environment identifies these processes, so new sessions, daemons and re-parented orphans are found,
too. Remaining processes are listed, with the kernel functions in which they wait, and killed.

Exit code: COMMAND's own; 124 if it timed out; 125 if it ended but left processes behind.

As a module: `with Job([...]) as job: ...` starts the command, `job.processes()` lists its live processes, `job.wait(s)`
waits for the command and `job.wait_until_gone(s)` for all processes. The end of the block kills remaining processes.
`run([...], timeout)` does all of this, and returns the exit code.
"""
import argparse
import os
import pathlib
import signal
import subprocess
import sys
import time
import uuid

from die_with_parent import die_with_parent
from poll import poll_until

MARK = "CAPSTAN_TESTS_JOB"


class Job:
    """One command and all its descendants."""

    def __init__(self, command, **popen_options):
        self.mark = f"{MARK}={uuid.uuid4().hex}"
        environment = dict(popen_options.pop("env", os.environ))
        environment[MARK] = self.mark.split("=")[1]
        self.command = subprocess.Popen(command, env=environment, start_new_session=True, **popen_options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill_all()

    def processes(self):
        """Returns {pid: command line} of every live process of the job."""
        found = {}
        for directory in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                # /proc shows the environment that a process inherited, without changes that it made itself.
                if self.mark.encode() not in (directory / "environ").read_bytes().split(b"\0"):
                    continue
                state = (directory / "stat").read_text().rpartition(")")[2].split()[0]
                words = (directory / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            except (OSError, IndexError):
                continue  # has ended, or belongs to another user
            if state not in "ZX":
                found[int(directory.name)] = words
        return found

    def live_processes(self):
        """Returns processes(), read again if there are none: a process that forks and exits meanwhile hides its child."""
        found = self.processes()
        if not found:
            time.sleep(0.02)  # for the fork to end
            found = self.processes()
        return found

    def wait(self, seconds):
        """Returns the command's exit code as a shell does (128 + signal), or None after `seconds`."""
        try:
            code = self.command.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return None
        return code if code >= 0 else 128 - code

    def wait_until_gone(self, seconds):
        """Returns true once no process of the job is left, or false after `seconds`."""
        def gone():
            self.command.poll()
            return not self.live_processes()

        return poll_until(gone, seconds, period=0.05)

    def kill_all(self):
        """Kills all processes with the job's mark."""
        for _ in range(20):  # a process may have started another one just before it was killed
            left = self.live_processes()
            if not left:
                break
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
            time.sleep(0.05)  # until the kernel has ended them
        self.command.wait()


def wait_channels(pid):
    """Returns the state of each thread of a process, and the kernel function in which it waits."""
    lines = []
    for thread in sorted(pathlib.Path(f"/proc/{pid}/task").glob("[0-9]*")):
        try:
            name = (thread / "comm").read_text().strip()
            state = (thread / "stat").read_text().rpartition(")")[2].split()[0]
            where = (thread / "wchan").read_text().strip()
            lines.append(f"    thread {thread.name} {name}: state {state}, in {where}")
        except OSError:
            continue
    return "\n".join(lines)


def report(job, headline):
    print(f"no_process_left: {headline}", file=sys.stderr)
    for pid, words in sorted(job.processes().items()):
        print(f"  {pid}: {words}\n{wait_channels(pid)}", file=sys.stderr)


def run(command, timeout, grace=10, **popen_options):
    """Runs the command, reports and kills remaining processes, and returns the exit code that is described above."""
    with Job(command, preexec_fn=die_with_parent, **popen_options) as job:
        code = job.wait(timeout)
        if code is None:
            report(job, f"still running after {timeout:g} s: {' '.join(command)}")
            return 124
        if not job.wait_until_gone(grace):
            report(job, f"left behind {grace:g} s after its end: {' '.join(command)}")
            return 125
        return code


def main():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[0])
    parser.add_argument("--timeout", type=float, default=60, help="time limit of the command, in seconds")
    parser.add_argument("--grace", type=float, default=10, help="time limit of its other processes after its end, in seconds")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        parser.error("no command given")

    # ctest may end a test that times out with SIGTERM, which must not leave the job behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(124))
    return run(command, options.timeout, options.grace)


if __name__ == "__main__":
    sys.exit(main())
