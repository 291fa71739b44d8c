#!/usr/bin/env python3
"""The programs of docs/tutorial.md recover the weights that generated the data, and survive the failures of step 6."""
import os
import pathlib
import re
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import BIN, LONG_TIMEOUTS, JobTest, main

EPOCHS = 60  # of step 6: some seconds, during which two processes are killed
BATCHES = 2000  # an epoch


class Tutorial(JobTest):
    def run_step(self, step, ranks, *arguments):
        job = self.run_to_end([BIN / f"tutorial_step{step}", *arguments], ranks)
        self.assert_learned(job)
        return job

    def assert_learned(self, job):
        error = re.search(r"^largest error (\S+)$", job.stdout, re.M)
        self.assertTrue(error, job.stdout)
        self.assertLess(float(error[1]), 1e-4)

    def test_step1_in_one_process(self):
        self.run_step(1, 0)

    def test_steps_2_to_4_alone_and_as_ranks(self):
        for step in (2, 3, 4):
            for ranks in (0, 4):
                with self.subTest(step=step, ranks=ranks):
                    self.run_step(step, ranks)

    def test_step3_divides_the_table(self):
        job = self.run_step(3, 5, "--capstan-ps=2")
        self.assertIn("w/part_0: 500 rows on ps 0\nw/part_1: 500 rows on ps 1\n", job.stdout)

    def test_step4_prints_a_loss_that_falls(self):
        job = self.run_step(4, 4)
        losses = [float(loss) for loss in re.findall(r"^epoch \d: loss (\S+)$", job.stdout, re.M)]
        self.assertEqual(len(losses), 5, job.stdout)
        self.assertLess(losses[-1], losses[0])

    def test_step5_resumes_with_other_ranks(self):
        directory = self.directory / "run"
        self.assertIn("0 epochs are done\n", self.run_step(5, 4, directory, 4).stdout)
        self.assertIn("4 epochs are done\n", self.run_step(5, 5, directory, 6, "--capstan-ps=2").stdout)
        self.assertIn("6 epochs are done\n", self.run_step(5, 0, directory, 6).stdout)

    def test_step6_counts_each_batch_once_though_a_worker_and_a_ps_are_killed(self):
        directory = self.directory / "run"
        job = self.start([BIN / "tutorial_step6", directory, EPOCHS, "--capstan-ps=2"], 5, env=LONG_TIMEOUTS)
        for epoch, name in ((2, "worker 0"), (6, "ps 1")):
            self.assertTrue(job.wait_for(lambda: f"epoch {epoch}\n" in job.stdout), job.stderr)
            process = rf"{name} \(rank \d+ on \S+\) is process (\d+)"
            os.kill(int(re.search(process, job.stderr)[1]), signal.SIGKILL)
            self.assertTrue(job.wait_for(lambda: len(re.findall(process, job.stderr)) == 2), job.stderr)
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        self.assertIn(f"{EPOCHS * BATCHES} batches, expected {EPOCHS * BATCHES}\n", job.stdout)
        self.assert_learned(job)
        # The same command with more epochs continues, with another number of ps.
        job = self.run_step(6, 4, directory, EPOCHS + 2)
        self.assertIn(f"{(EPOCHS + 2) * BATCHES} batches, expected {(EPOCHS + 2) * BATCHES}\n", job.stdout)
        self.assertNotIn(f"epoch {EPOCHS}\n", job.stdout)

    def test_missing_arguments(self):
        for step in (5, 6):
            job = self.start([BIN / f"tutorial_step{step}"])
            self.assertEqual(self.exit_code(job), 2, job.stderr)
            self.assertIn("usage: ", job.stderr)


if __name__ == "__main__":
    main()
