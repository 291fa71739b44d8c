#!/usr/bin/env python3
"""A worker is stopped: its work moves on, nothing of it counts when it wakes up, and it begins anew."""
import os
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import HOST, main
from sums import SumsTest

MICROSECONDS = 2500
# Long enough that nobody counts as dead, or is killed by its agent, because the machine is busy.
TIMEOUT = 6.0


class WorkerStopped(SumsTest):
    def begin(self, *options, microseconds=MICROSECONDS, **start):
        """Two workers and a ps, that have reached each other."""
        return self.start_sums(4, "--capstan-ps=1", f"--capstan-heartbeat-timeout={TIMEOUT}s", *options,
                               microseconds=microseconds, **start)

    def stop(self, job, rank):
        agent, child = job.ranks()[rank]
        self.assertNotEqual(agent, child)
        os.kill(child, signal.SIGSTOP)
        return child

    def given_up(self, job):
        return job.wait_for_text(rf"worker 0 \(rank \d+ on {HOST}\) is silent and counts as dead")

    def wakes_up(self, *options):
        job = self.begin(*options)
        child = self.stop(job, 1)
        self.assertTrue(self.given_up(job), job.stderr)
        os.kill(child, signal.SIGCONT)
        self.assertTrue(job.wait_for_text(rf"worker 0 \(rank \d+ on {HOST}\) is there in place of"), job.stderr)
        self.assertIn("this worker was fenced", job.stderr)
        self.assertIn(f"pid {child}, ended with exit code 1; it is started again", job.stderr)
        self.assert_exact(job)

    def test_it_wakes_up(self):
        self.wakes_up()

    def test_it_wakes_up_and_pushes_by_messages(self):
        self.wakes_up("--capstan-window=am")

    def test_neither_who_never_wakes_up_nor_what_never_ends_keeps_the_job_from_its_end(self):
        job = self.begin(words=["endless"])
        child = self.stop(job, 1)
        self.assertTrue(self.given_up(job), job.stderr)
        self.assert_exact(job)
        self.assertRegex(job.stderr, rf"pid {child}, is stopped or hangs: no sign of life for \S+ s; it is killed \(its threads: \S+ T\b")
        self.assertIn("endless deadline_exceeded", job.stdout)
        self.assertIn("this worker exits during a closure that does not end", job.stderr)

    def test_neither_a_stopped_coordinator_nor_a_long_function_is_a_silent_worker(self):
        job = self.begin(closures=2, microseconds=int(3e6 * TIMEOUT))
        child = self.stop(job, 0)
        time.sleep(2 * TIMEOUT)  # for as long as a silent worker would have been given up
        os.kill(child, signal.SIGCONT)
        self.assert_exact(job)
        self.assertNotIn("counts as dead", job.stderr)


if __name__ == "__main__":
    main()
