#!/usr/bin/env python3
"""A worker of a synchronous group dies during a step: the others continue, and no step counts twice or partially."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import BIN, HOST, LONG_TIMEOUTS, JobTest, main

PROGRAM = BIN / "group_until_death"
STEPS, FATAL_STEP, WORKERS = 60, 20, 3


class GroupKilled(JobTest):
    environment = LONG_TIMEOUTS

    def end_of(self, ps, *options):
        # A restarted worker 1 would get the function again and die again.
        settings = [f"--capstan-ps={ps}", "--capstan-max-inflight-per-worker=1", "--capstan-max-restarts=0", *options]
        job = self.start([PROGRAM, STEPS, FATAL_STEP, *settings], 1 + ps + WORKERS)
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        self.assertIn(f"on {HOST}) is dead", job.stderr)
        lines = [line.split() for line in job.stdout.splitlines() if line.startswith(("w ", "ended "))]
        return int(lines[0][1]), [int(count) for _, count in lines[1:]]

    def check(self, ps, *options):
        total, ended = self.end_of(ps, *options)
        # Of the dead worker, only completed steps count; its function runs again on another worker.
        self.assertEqual(total, WORKERS * STEPS + FATAL_STEP)
        self.assertEqual(len(ended), WORKERS)
        self.assertEqual(sorted(ended)[:2], [STEPS, STEPS], "the live workers did not wait after the death")

    def test_through_mapped_memory(self):
        self.check(1)

    def test_with_two_ps(self):
        self.check(2)

    def test_by_remote_memory_access(self):
        self.check(1, "--capstan-window=rma")

    def test_by_active_messages(self):
        self.check(1, "--capstan-window=am")


if __name__ == "__main__":
    main()
