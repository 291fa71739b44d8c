#!/usr/bin/env python3
"""A ps or spare that is stopped (SIGSTOP) does not delay the end of the job."""
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import HOST, main
from sums import SumsTest

# Long enough that no other rank counts as silent because the machine is busy.
HEARTBEAT = "--capstan-heartbeat-timeout=5s"
PS_WAIT = "--capstan-ps-wait=1s"


class PsStopped(SumsTest):
    def stop(self, job, rank):
        child = job.ranks()[rank][1]
        os.kill(child, signal.SIGSTOP)
        return child

    def lingers(self, ranks, *options):
        """All functions have ended, and the coordinator ends the job once the file is there."""
        leave = self.folder / "leave"
        job = self.start_sums(ranks, HEARTBEAT, PS_WAIT, *options, closures=100, words=[leave])
        self.assert_says(job, "lingers")
        return job, leave

    def ends_though_it_is_stopped(self, rank, name, ranks, *options):
        job, leave = self.lingers(ranks, *options)
        child = self.stop(job, rank)
        leave.touch()
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        self.assertRegex(job.stderr, rf"{name} \(rank {rank} on {HOST}\), pid {child}, is stopped or hangs")

    def test_a_ps_that_is_stopped_when_the_job_ends_is_killed(self):
        self.ends_though_it_is_stopped(3, "ps 0", 4, "--capstan-ps=1")

    def test_a_spare_that_is_stopped_when_the_job_ends_is_killed(self):
        self.ends_though_it_is_stopped(2, "spare 0", 4, "--capstan-ps=1", "--capstan-spares=1")


if __name__ == "__main__":
    main()
