#!/usr/bin/env python3
"""no_process_left.py [--timeout S] [--grace S] -- COMMAND ...

Runs COMMAND and fails if it does not end within the timeout, or if any process that it started, however detached, is
still there when the grace is over. Processes are known by a mark in their environment, so sessions, daemons and
re-parented orphans are found too. Whatever is left is named, with what it waits for, and killed.

Exit: COMMAND's own code; 124 when it timed out; 125 when it ended but left processes behind.

As a module: `with Job([...]) as job: ...` starts the command, `job.processes()` lists what is alive, `job.wait(s)`
waits for the command and `job.wait_until_gone(s)` for everything. Leaving the block kills what is left.
"""
import argparse
import os
import pathlib
import signal
import subprocess
import sys
import time
import uuid

from poll import poll_until

MARK = "CAPSTAN_TEST_JOB"


class Job:
    """One command and all that descends from it."""

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
        """{pid: command line} of every live process of the job."""
        found = {}
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                # A mark that is set by a process for itself does not show here, but one that it inherits does.
                if self.mark.encode() not in (folder / "environ").read_bytes().split(b"\0"):
                    continue
                state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
                words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            except (OSError, IndexError):
                continue  # ended while we looked, or is somebody else's
            if state not in "ZX":
                found[int(folder.name)] = words
        return found

    def living(self):
        """The same, looked at twice where there seem to be none: one that forks and ends meanwhile hides its child."""
        found = self.processes()
        if not found:
            time.sleep(0.02)  # for the fork to end
            found = self.processes()
        return found

    def wait(self, seconds):
        """The command's exit code (as a shell would say it: 128 + signal), or None after `seconds`."""
        try:
            code = self.command.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return None
        return code if code >= 0 else 128 - code

    def wait_until_gone(self, seconds):
        """True as soon as no process of the job is left; False after `seconds`."""
        def gone():
            self.command.poll()
            return not self.living()

        return poll_until(gone, seconds, period=0.05)

    def kill_all(self):
        """Kills what is left. Only processes with the job's mark are touched."""
        for _ in range(20):  # a process that is killed may have just started another
            left = self.living()
            if not left:
                break
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
            time.sleep(0.05)  # for the kernel to end them
        self.command.wait()


def what_it_waits_for(pid):
    """The state of a process and of its threads, as far as the kernel tells."""
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
        print(f"  {pid}: {words}\n{what_it_waits_for(pid)}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[0])
    parser.add_argument("--timeout", type=float, default=60, help="seconds that the command may take")
    parser.add_argument("--grace", type=float, default=10, help="seconds that its processes may take to follow it")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        parser.error("no command given")

    with Job(command) as job:
        # ctest ends a test that takes too long with SIGTERM or SIGKILL; the former must not leave the job behind.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(124))
        code = job.wait(options.timeout)
        if code is None:
            report(job, f"still running after {options.timeout:g} s: {' '.join(command)}")
            return 124
        if not job.wait_until_gone(options.grace):
            report(job, f"left behind {options.grace:g} s after its end: {' '.join(command)}")
            return 125
        return code


if __name__ == "__main__":
    sys.exit(main())
