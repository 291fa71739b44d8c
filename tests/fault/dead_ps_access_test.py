#!/usr/bin/env python3
"""A ps dies by SIGKILL under workers that read and push all the time: each gets Unavailable within 1 s, and no data.

An access that began after the kernel had reported the death cannot have been served by a living ps; if it succeeds, it
returned what the dead one left in memory. That is a matter of order, not of speed.
"""
import os
import pathlib
import random
import select
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import BIN, HOST, SECONDS_TO_FINISH, JobTest, main

PROGRAM = BIN / "access_until_death"

UNAVAILABLE = 14
SECONDS_TO_NOTICE = 1.0
READS = ("lookup", "lookup_consistent", "pull", "pull_consistent")
PUSHES = ("push", "push_dense", "flush")


def kill_and_see_it_die(pid):
    """The time at which the kernel has said that the process is dead."""
    descriptor = os.pidfd_open(pid)
    try:
        os.kill(pid, signal.SIGKILL)
        select.select([descriptor], [], [], SECONDS_TO_FINISH)
        return time.monotonic_ns()
    finally:
        os.close(descriptor)


class DeadPsAccess(JobTest):
    def wait_for_files(self, job, names):
        deadline = time.monotonic() + SECONDS_TO_FINISH
        while missing := [name for name in names if not (self.folder / name).exists()]:
            self.assertIsNone(job.command.poll(), job.stderr)
            self.assertLess(time.monotonic(), deadline, f"{missing} are not there; the job said:\n{job.stderr}")
            time.sleep(0.005)

    def report(self, access):
        path = self.folder / f"{access}.report"
        self.assertTrue(path.exists(), "it has not noticed in ten seconds")
        lines = path.read_text().splitlines()
        return {key: value if key == "what" else int(value) for key, _, value in (line.partition(" ") for line in lines)}

    def kill_the_ps_under(self, *accesses, window, seed=0, never_late=()):
        """`never_late`: accesses that can tell at once; all others that succeed after the death do so for a second."""
        for old in self.folder.iterdir():
            old.unlink()
        ps = len(accesses) + 1
        options = ["--capstan-ps=1", f"--capstan-window={window}", "--capstan-max-inflight-per-worker=1",
                   "--capstan-ps-restart=off"]
        job = self.start([PROGRAM, self.folder, *accesses, *options], ps + 1)
        self.wait_for_files(job, [f"{access}.started" for access in accesses])
        time.sleep(random.Random(seed).uniform(0, 0.05))
        died_at = kill_and_see_it_die(job.ranks()[ps][1])
        self.assertEqual(self.exit_code(job), 4, job.stderr)
        for access in accesses:
            with self.subTest(access=access, window=window):
                report = self.report(access)
                self.assertEqual(report["code"], UNAVAILABLE, report)
                self.assertIn(f"ps 0 (rank {ps} on {HOST}) is gone", report["what"])
                self.assertLess((report["failed_at"] - died_at) / 1e9, SECONDS_TO_NOTICE, report)
                self.assertEqual(report["good_afterwards"], 0, report)
                self.assertGreater(report["good"], 0)
                if access in never_late:
                    self.assertLess(report["last_good_began"], died_at, "it read what a dead ps left")

    def test_through_mapped_memory(self):
        # Reads and pushes at the same time, so that the ps may die in the middle of an update.
        for seed in range(3):
            accesses = (*READS, *PUSHES)
            self.kill_the_ps_under(*accesses, window="mapped", seed=seed, never_late=accesses)

    def test_by_active_messages(self):
        accesses = (*READS, *PUSHES)
        self.kill_the_ps_under(*accesses, window="am", never_late=(*READS, "flush"))

    def test_by_remote_memory_access(self):
        accesses = ("lookup", "pull", "push", "flush")
        self.kill_the_ps_under(*accesses, window="rma", never_late=("lookup", "pull", "flush"))


if __name__ == "__main__":
    main()
