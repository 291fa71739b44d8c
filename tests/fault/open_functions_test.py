#!/usr/bin/env python3
"""The coordinator and then the ps are killed while no recorded step covers the latest pushes: committed pushes stay, and each
counts once."""
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
        """Starts one coordinator, one worker and one ps."""
        self.end = self.directory / "end"
        return self.start([BIN / "open_functions", functions, self.end, push, "--capstan-ps=1", "--capstan-coordinator-wait=40s",
                           "--capstan-max-restarts=5", *options], 3)

    def assert_open(self, job, times):
        self.assertTrue(job.wait_for(lambda: job.stderr.count("open\n") == times, 2 * SECONDS_TO_FINISH), job.stderr)

    def kill(self, agent):
        os.kill(child_of(agent), signal.SIGKILL)

    def kill_both(self, job, coordinators=1):
        """Kills each coordinator after its last push, then the ps."""
        self.assert_open(job, 1)
        ranks = job.ranks()
        for kill in range(coordinators):
            self.kill(ranks[0][0])
            self.assert_open(job, kill + 2)
        self.kill(ranks[2][0])
        self.wait_for_stderr(job, r"ps 0 \(rank 2 on .*\) has recovered")

    def assert_figures(self, job, sums=0, assigned=7, counted=0):
        self.end.touch()
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        figures = dict(re.findall(r"^(\w+) (-?\d+)$", job.stdout, re.MULTILINE))
        self.assertEqual(figures, {"assigned": str(assigned), "counted": str(counted), "sum": str(sums), "sum_counter": str(sums)})

    def test_assignment_of_a_killed_coordinator_survives_a_killed_ps(self):
        job = self.start_functions(0)
        self.kill_both(job)
        self.assert_figures(job)

    def test_count_of_a_killed_coordinator_survives_a_killed_ps(self):
        job = self.start_functions(0, push="count")
        self.kill_both(job)
        self.assert_figures(job, assigned=0, counted=7)

    def test_assignment_by_message_survives_a_killed_ps(self):
        job = self.start_functions(0, "--capstan-window=am")
        self.kill_both(job)
        self.assert_figures(job)

    def test_open_functions_of_two_replicas_count_once(self):
        """More functions than a ledger of 65,536 counts can hold."""
        job = self.start_functions(36_000, "--capstan-replicas=2")
        self.kill_both(job)
        self.assert_figures(job, sums=72_000)

    def test_functions_count_once_through_two_coordinators_and_a_ps(self):
        job = self.start_functions(2_000, "--capstan-replicas=2")
        self.kill_both(job, coordinators=2)
        self.assert_figures(job, sums=4_000)

    def test_functions_count_once_if_the_coordinator_dies_again_after_the_ps(self):
        """More functions than a worker's row remembers: the table of open functions must survive the death of the ps."""
        job = self.start_functions(2_000, "--capstan-replicas=2")
        self.kill_both(job)
        self.kill(job.ranks()[0][0])
        self.assert_open(job, 3)
        self.assert_figures(job, sums=4_000)


if __name__ == "__main__":
    main()
