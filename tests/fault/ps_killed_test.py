#!/usr/bin/env python3
"""A ps is killed and not restarted: the job ends promptly and names it, and a run with --resume reaches the same result.

With one worker and one closure for each batch, training is bitwise reproducible for any number of ps. A killed and resumed run
must therefore end exactly like an uninterrupted one.
"""
import os
import pathlib
import random
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import HOST, LONG_TIMEOUTS, SECONDS_TO_END, JobTest, Roles, main, train
from poll import wait_random

FOREVER = 1_000_000
SAVE_EVERY = 50
# Minimum number of epochs of a run that is compared with another; the model has learned the graph by then.
EPOCHS = 800


class PsKilled(JobTest):
    environment = LONG_TIMEOUTS

    def setUp(self):
        super().setUp()
        self.data = self.graph()
        self.checkpoints = self.directory / "checkpoints"

    def command(self, *options, epochs):
        options = ["--model", "distmult", "--ps-restart", "off", "--slice-batches", 1, "--summary", self.directory / "summary.json", *options]
        return train(self.data, *options, epochs=epochs)

    def saving(self, *options, epochs=FOREVER):
        return self.command("--checkpoint-dir", self.checkpoints, "--checkpoint-every", SAVE_EVERY, *options, epochs=epochs)

    def wait_for_checkpoint(self, job, epoch):
        self.assertTrue(job.wait_for(lambda: self.newest_epoch() >= epoch), f"no checkpoint of epoch {epoch}:\n{job.stderr}")

    def newest_epoch(self):
        """Epoch of the newest complete checkpoint; 0 if there is none."""
        latest = self.checkpoints / "latest"
        return int(latest.read_text().strip().removeprefix("checkpoint-")) if latest.exists() else 0

    def kill_a_ps(self, ranks, ps, seed):
        """Starts a job, kills one of its ps at a random moment after an early checkpoint, and checks how the job ends."""
        moment = random.Random(seed)
        job = self.start(self.saving("--ps", ps), ranks)
        self.wait_for_checkpoint(job, SAVE_EVERY * moment.randint(1, 6))
        wait_random(moment, 0, 0.02)
        rank = moment.choice(Roles(ranks, ps).ps)
        os.kill(job.ranks()[rank][1], signal.SIGKILL)
        self.assertEqual(self.exit_code(job, SECONDS_TO_END), 4, job.stderr)
        name = f"ps {rank - (ranks - ps)} (rank {rank} on {HOST})"
        self.assertIn(f"capstan: {name} is dead", job.stderr)
        self.assertIn("--resume", job.stderr)

    def resume(self, ranks, *options):
        """Resumes a killed job, and trains for a number of epochs after its newest checkpoint."""
        self.epochs = max(EPOCHS, self.newest_epoch() + 2 * SAVE_EVERY)
        job = self.run_to_end(self.saving("--resume", *options, epochs=self.epochs), ranks)
        summary = self.summary()
        self.assertIn("checkpoint-", summary["resumed_from"])
        self.assertIn(f"resumed from {summary['resumed_from']}", job.stderr)
        self.assertGreater(summary["training"]["first_epoch"], SAVE_EVERY)
        self.assertEqual(summary["training"]["epochs"][-1]["epoch"], self.epochs)
        return summary

    def uninterrupted(self):
        """Trains without interruption to the same number of epochs."""
        self.run_to_end(self.command(epochs=self.epochs))
        return self.summary()

    def assert_same_end(self, resumed, uninterrupted):
        last, expected = (summary["training"]["epochs"][-1]["loss"] for summary in (resumed, uninterrupted))
        self.assertAlmostEqual(last, expected, delta=1e-6)
        self.assertAlmostEqual(resumed["test"]["mrr"], uninterrupted["test"]["mrr"], delta=1e-6)

    def test_resumed_run_equals_an_uninterrupted_run(self):
        self.kill_a_ps(4, ps=2, seed=1)
        self.assert_same_end(self.resume(4, "--ps", 2), self.uninterrupted())

    def test_resumes_with_another_number_of_ps(self):
        self.kill_a_ps(4, ps=2, seed=2)
        self.kill_a_ps_of_a_resumed_run()
        self.assert_same_end(self.resume(3, "--ps", 1), self.uninterrupted())

    def kill_a_ps_of_a_resumed_run(self):
        before = self.newest_epoch()
        job = self.start(self.saving("--resume", "--ps", 3), 5)
        self.wait_for_stderr(job, "resumed from")
        self.wait_for_checkpoint(job, before + SAVE_EVERY)
        os.kill(job.ranks()[3][1], signal.SIGKILL)
        self.assertEqual(self.exit_code(job, SECONDS_TO_END), 4, job.stderr)

    def test_resumed_run_equals_an_uninterrupted_run_after_any_rank_was_killed(self):
        moment = random.Random(17)
        for victim in ("launcher", "coordinator", "ps"):
            before = self.newest_epoch()
            job = self.start(self.saving("--resume"), 3)
            self.wait_for_stderr(job, "no checkpoint in|resumed from")
            ranks = job.ranks()
            self.wait_for_checkpoint(job, before + SAVE_EVERY)
            wait_random(moment, 0, 0.02)
            os.kill({"launcher": job.command.pid, "coordinator": ranks[0][1], "ps": ranks[2][1]}[victim], signal.SIGKILL)
            self.assertNotEqual(self.exit_code(job, SECONDS_TO_END), 0, job.stderr)
        self.assert_same_end(self.resume(3), self.uninterrupted())

    def test_with_several_workers(self):
        # The pushes of several workers interleave, so two runs are close to each other, but not equal.
        self.kill_a_ps(6, ps=2, seed=3)
        resumed, uninterrupted = self.resume(6, "--ps", 2), self.uninterrupted()
        self.assertAlmostEqual(resumed["test"]["mrr"], uninterrupted["test"]["mrr"], delta=0.1)

    def test_resume_without_a_checkpoint_starts_from_the_beginning(self):
        options = ["--checkpoint-dir", self.checkpoints, "--checkpoint-every", FOREVER, "--eval-every", 10]
        job = self.start([*self.command(*options, epochs=FOREVER), "--ps", 2], 4)
        self.wait_for_stderr(job, "valid MRR")
        os.kill(job.ranks()[3][1], signal.SIGKILL)
        self.assertEqual(self.exit_code(job, SECONDS_TO_END), 4, job.stderr)
        again = self.run_to_end([*self.command(*options, epochs=20), "--resume"])
        self.assertIn("starting from the beginning", again.stderr)


if __name__ == "__main__":
    main()
