#!/usr/bin/env python3
"""example_embedding as one process and as 1, 3, 4 and 6 ranks: the loss converges with any roles."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import BIN, JobTest, main

EMBEDDING = BIN / "example_embedding"


class Embedding(JobTest):
    def losses(self, ranks, *options):
        job = self.run_to_end([EMBEDDING, *options], ranks)
        epochs = re.findall(r"^epoch (\d): loss ([\d.]+)$", job.stdout, re.M)
        self.assertEqual([epoch for epoch, _ in epochs], list("01234"), job.stdout + job.stderr)
        return [float(loss) for _, loss in epochs]

    def assert_learns(self, ranks, *options):
        # A row starts near 0. Each batch that contains the row halves its distance to 1; on average, these are 2.6 per
        # epoch. So the loss falls from 0.5 to 0.5 / 4^12.
        losses = self.losses(ranks, *options)
        self.assertGreater(losses[0], 1e-3)
        self.assertLess(losses[0], 0.6)
        self.assertLess(losses[4], 1e-5)

    def test_one_process(self):
        self.assert_learns(0)

    def test_one_rank(self):
        self.assert_learns(1)

    def test_three_ranks(self):
        self.assert_learns(3)

    def test_four_ranks_with_two_ps(self):
        self.assert_learns(4, "--capstan-ps=2")

    def test_six_ranks_with_roles_in_one_line(self):
        self.assert_learns(6, "--capstan-roles=coordinator:1,ps:2,worker:*")


if __name__ == "__main__":
    main()
