#!/usr/bin/env python3
"""Lifetimes of strategies, and of the objects that workers create, in a job of ranks."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import BIN, JobTest, main


class Lifetimes(JobTest):
    def lines(self, mode):
        """Runs the program on four ranks, among them a ps and two workers; returns its lines."""
        job = self.run_to_end([BIN / "lifetimes", mode, "--capstan-ps=1"], 4)
        return job.stdout.splitlines()

    def test_objects_of_workers_are_freed_with_their_last_handle(self):
        self.assertEqual(
            self.lines("objects"),
            ["80 living with 40 handles on 2 workers", "0 living without a handle", "first 100", "first 100"],
        )

    def test_a_second_strategy_is_rejected_at_construction(self):
        lines = self.lines("strategies")
        self.assertEqual([line.split(":")[:2] for line in lines],
                         [["beside", " failed_precondition"], ["after", " failed_precondition"],
                          ["join", " failed_precondition"]])


if __name__ == "__main__":
    main()
