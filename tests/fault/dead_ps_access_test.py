#!/usr/bin/env python3
"""A ps is killed while workers read and push continuously: each gets Unavailable promptly, and no data.

An access that began after the kernel had reported the death cannot have been served by a live ps. If it succeeds, it returned
data that the dead ps left in memory. This checks order, not speed.
"""
import pathlib
import random
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import BIN, HOST, LONG_TIMEOUTS, JobTest, kill_and_await_death, main
from poll import wait_random

PROGRAM = BIN / "access_until_death"

UNAVAILABLE = 14
# Detection takes milliseconds on idle cores. The limit is below every timeout (LONG_TIMEOUTS), so only the death can cause it.
SECONDS_TO_NOTICE = 10.0
READS = ("lookup", "lookup_consistent", "pull", "pull_consistent")
PUSHES = ("push", "push_dense", "flush")
# If a TCP connection breaks during a large message, UCX 1.13 may complete the message twice and abort its sender
# (docs/failures.md). This happens in one of a hundred of these jobs on two busy cores.
UCX_ABORTS = re.compile(r"uct_iface\.h:\d+ +Assertion `comp->count > 0' failed")


class DeadPsAccess(JobTest):
    environment = LONG_TIMEOUTS

    def wait_for_files(self, job, names):
        found = job.wait_for(lambda: all((self.directory / name).exists() for name in names))
        self.assertTrue(found, f"not all of {names} exist; the job's standard error:\n{job.stderr}")

    def report(self, access):
        path = self.directory / f"{access}.report"
        self.assertTrue(path.exists(), f"the worker of {access} did not detect the death in time")
        lines = path.read_text().splitlines()
        return {key: value if key == "what" else int(value) for key, _, value in (line.partition(" ") for line in lines)}

    def kill_the_ps_under(self, *accesses, window, seed=0, never_late=()):
        """`never_late`: accesses that detect the death at once; others may still succeed for up to a second."""
        for old in self.directory.iterdir():
            old.unlink()
        ps = len(accesses) + 1
        options = ["--capstan-ps=1", f"--capstan-window={window}", "--capstan-max-inflight-per-worker=1",
                   "--capstan-ps-restart=off"]
        job = self.start([PROGRAM, self.directory, *accesses, *options], ps + 1)
        self.wait_for_files(job, [f"{access}.started" for access in accesses])
        wait_random(random.Random(seed), 0, 0.05)
        died_at = kill_and_await_death(job.ranks()[ps][1])
        self.assertEqual(self.exit_code(job), 4, job.stderr)
        aborted = len(UCX_ABORTS.findall(job.stderr)) if window == "am" else 0
        for access in accesses:
            if aborted and access in PUSHES and not (self.directory / f"{access}.report").exists():
                aborted -= 1
                print(f"{access} ({window}): UCX aborted its worker", file=sys.stderr)
                continue
            with self.subTest(access=access, window=window):
                report = self.report(access)
                self.assertEqual(report["code"], UNAVAILABLE, report)
                self.assertIn(f"ps 0 (rank {ps} on {HOST}) is ", report["what"])
                seconds = (report["failed_at"] - died_at) / 1e9
                print(f"{access} ({window}) detected the death after {seconds:.3f} s", file=sys.stderr)
                self.assertLess(seconds, SECONDS_TO_NOTICE, report)
                self.assertEqual(report["good_afterwards"], 0, report)
                self.assertGreater(report["good"], 0)
                if access in never_late:
                    self.assertLess(report["last_good_began"], died_at, "it read data of a dead ps")

    def test_through_mapped_memory(self):
        # Reads and pushes run concurrently, so the ps may die during an update.
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
