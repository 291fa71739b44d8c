#!/usr/bin/env python3
"""A worker is stopped: its functions run elsewhere, its late pushes do not count, and it is restarted when it resumes."""
import os
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import HOST, main
from sums import SumsTest

MICROSECONDS = 2500
# Long enough that no rank counts as dead or is killed by its agent because the machine is busy.
TIMEOUT = 6.0


class WorkerStopped(SumsTest):
    def begin(self, *options, microseconds=MICROSECONDS, **start):
        """Starts two workers and a ps, and waits until they have reached each other."""
        return self.start_sums(4, "--capstan-ps=1", f"--capstan-heartbeat-timeout={TIMEOUT}s", *options,
                               microseconds=microseconds, **start)

    def stop(self, job, rank):
        agent, child = job.ranks()[rank]
        self.assertNotEqual(agent, child)
        os.kill(child, signal.SIGSTOP)
        return child

    def declared_dead(self, job):
        return job.wait_for_text(rf"worker 0 \(rank \d+ on {HOST}\) is silent and counts as dead")

    def is_restarted(self, *options):
        job = self.begin(*options)
        child = self.stop(job, 1)
        self.assertTrue(self.declared_dead(job), job.stderr)
        os.kill(child, signal.SIGCONT)
        self.assertTrue(job.wait_for_text(rf"worker 0 \(rank \d+ on {HOST}\) replaces the previous process"), job.stderr)
        self.assertIn("this worker was fenced", job.stderr)
        self.assertIn(f"pid {child}, ended with exit code 1; it is started again", job.stderr)
        self.assert_exact(job)

    def test_resumed_worker_is_restarted(self):
        self.is_restarted()

    def test_resumed_worker_is_restarted_by_messages(self):
        self.is_restarted("--capstan-window=am")

    def test_stopped_worker_and_endless_function_do_not_delay_the_end(self):
        job = self.begin(words=["endless"])
        child = self.stop(job, 1)
        self.assertTrue(self.declared_dead(job), job.stderr)
        self.assert_exact(job)
        self.assertRegex(job.stderr, rf"pid {child}, is stopped or hangs: no heartbeat for \S+ s; it is killed \(its threads: \S+ T\b")
        self.assertIn("endless deadline_exceeded", job.stdout)
        self.assertIn("this worker exits during a closure that does not end", job.stderr)

    def test_stopped_coordinator_and_long_function_cause_no_dead_worker(self):
        job = self.begin(closures=2, microseconds=int(3e6 * TIMEOUT))
        child = self.stop(job, 0)
        time.sleep(2 * TIMEOUT)  # a silent worker would count as dead after this time
        os.kill(child, signal.SIGCONT)
        self.assert_exact(job)
        self.assertNotIn("counts as dead", job.stderr)


if __name__ == "__main__":
    main()
