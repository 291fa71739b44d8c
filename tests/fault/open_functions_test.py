#!/usr/bin/env python3
"""The coordinator dies by SIGKILL, and then the ps as well, while what no recorded step covers is open: all that was committed stays, and each push counts once."""
import os
import pathlib
import re
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import BIN, LONG_TIMEOUTS, SECONDS_TO_FINISH, JobTest, child_of, main


class OpenFunctions(JobTest):
    environment = LONG_TIMEOUTS

    def start_functions(self, functions, *options, push="assign"):
        """One coordinator, one worker, one ps."""
        self.end = self.directory / "end"
        return self.start([BIN / "open_functions", functions, self.end, push, "--capstan-ps=1", "--capstan-coordinator-wait=40s",
                           "--capstan-max-restarts=5", *options], 3)

    def assert_open(self, job, times):
        self.assertTrue(job.wait_for(lambda: job.stderr.count("open\n") == times, 2 * SECONDS_TO_FINISH), job.stderr)

    def kill(self, agent):
        os.kill(child_of(agent), signal.SIGKILL)

    def kill_both(self, job, coordinators=1):
        """Each coordinator when it has done all, then the ps."""
        self.assert_open(job, 1)
        ranks = job.ranks()
        for kill in range(coordinators):
            self.kill(ranks[0][0])
            self.assert_open(job, kill + 2)
        self.kill(ranks[2][0])
        self.wait_for_stderr(job, r"ps 0 \(rank 2 on .*\) is back")

    def assert_figures(self, job, sums=0, assigned=7, counted=0):
        self.end.touch()
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        figures = dict(re.findall(r"^(\w+) (-?\d+)$", job.stdout, re.MULTILINE))
        self.assertEqual(figures, {"assigned": str(assigned), "counted": str(counted), "sum": str(sums), "sum_counter": str(sums)})

    def test_the_only_assignment_of_a_killed_coordinator_outlives_a_killed_ps(self):
        job = self.start_functions(0)
        self.kill_both(job)
        self.assert_figures(job)

    def test_the_only_count_of_a_killed_coordinator_outlives_a_killed_ps(self):
        job = self.start_functions(0, push="count")
        self.kill_both(job)
        self.assert_figures(job, assigned=0, counted=7)

    def test_the_only_assignment_by_message_outlives_a_killed_ps(self):
        job = self.start_functions(0, "--capstan-window=am")
        self.kill_both(job)
        self.assert_figures(job)

    def test_all_open_functions_of_two_replicas_count_once(self):
        """More than a ledger of 65,536 counts holds."""
        job = self.start_functions(36_000, "--capstan-replicas=2")
        self.kill_both(job)
        self.assert_figures(job, sums=72_000)

    def test_functions_count_once_through_two_coordinators_and_a_ps(self):
        job = self.start_functions(2_000, "--capstan-replicas=2")
        self.kill_both(job, coordinators=2)
        self.assert_figures(job, sums=4_000)

    def test_functions_count_once_when_the_coordinator_dies_again_after_the_ps(self):
        """More than the row of the worker remembers: the table of open functions has to outlive the ps."""
        job = self.start_functions(2_000, "--capstan-replicas=2")
        self.kill_both(job)
        self.kill(job.ranks()[0][0])
        self.assert_open(job, 3)
        self.assert_figures(job, sums=4_000)


if __name__ == "__main__":
    main()
