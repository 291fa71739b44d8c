#!/usr/bin/env python3
"""A worker is killed and not restarted: the other workers do its work; the job ends if there are none."""
import json
import os
import pathlib
import random
import re
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import HOST, LEARNED_MRR, LONG_TIMEOUTS, SECONDS_TO_END, TRAINING_OUTPUT, JobTest, Roles, main, train
from poll import wait_random

FOREVER = 1_000_000
EVAL_EVERY = 20
RANKS, PS = 5, 2
REQUEUE = 85  # docs/errors.md
SECONDS_AFTER_THE_KILL = 10


class WorkerKilled(JobTest):
    environment = LONG_TIMEOUTS

    def setUp(self):
        super().setUp()
        self.checkpoints = self.directory / "checkpoints"

    def command(self, *options, epochs):
        return train(self.graph(), "--ps", PS, "--slice-batches", 1, "--eval-every", EVAL_EVERY, "--max-restarts", 0, *options,
                     epochs=epochs)

    def start_training(self, *options, epochs=FOREVER, epoch=EVAL_EVERY):
        """Starts a job; returns it and its roles once `epoch` has ended."""
        job = self.job = self.start(self.command(*options, epochs=epochs), RANKS)
        self.wait_for_stderr(job, rf"epoch {epoch}: {TRAINING_OUTPUT}")
        return job, Roles(RANKS, PS)

    def kill_one(self, job, rank):
        _, child = job.ranks()[rank]
        os.kill(child, signal.SIGKILL)
        name = f"worker {rank - 1} (rank {rank} on {HOST})"
        self.wait_for_stderr(job, re.escape(f"{name} is dead"))
        self.wait_for_stderr(job, re.escape(f"{name}, pid {child}, was killed by signal 9"))

    def survives(self, seed, *options, save_every=FOREVER):
        """Kills one worker at a moment that follows from `seed`; the others train until they are told to save and end, and another
        job resumes."""
        moment = random.Random(seed)
        checkpoints = self.directory / f"checkpoints-{seed}"
        options = ["--checkpoint-dir", checkpoints, "--checkpoint-every", save_every, *options]
        job, roles = self.start_training(*options, epoch=moment.randrange(EVAL_EVERY, 1000, EVAL_EVERY))
        wait_random(moment, 0, 0.02)
        self.kill_one(job, moment.choice(roles.workers))
        evaluated = job.stderr.count(TRAINING_OUTPUT)
        self.assertTrue(job.wait_for(lambda: job.stderr.count(TRAINING_OUTPUT) > evaluated + 2), job.stderr)
        job.signal_launcher(signal.SIGUSR1)
        self.assertEqual(self.exit_code(job), REQUEUE, job.stderr)

        saved = json.loads((max(checkpoints.glob("checkpoint-*")) / "manifest.json").read_text())["user_state"]
        summary_file = self.directory / "summary.json"
        self.run_to_end(self.command("--resume", "--summary", summary_file, *options, epochs=saved["epoch"] + 300), RANKS)
        summary = self.summary()
        triples = 300 * summary["data"]["train"] - saved.get("begun", 0)
        self.assertEqual(summary["training"]["triples"], triples, "every triple counts once in each epoch")
        self.assertGreater(summary["test"]["mrr"], LEARNED_MRR)

    def test_at_several_moments(self):
        for seed in range(4):
            with self.subTest(seed=seed):
                self.survives(seed)

    def test_while_it_waits_for_space_in_a_small_ring(self):
        # A batch pushes up to 90 rows of 1 KiB, more than the ring can hold.
        self.survives(11, "--push-ring-bytes", "64KiB", "--dim", 256)

    def test_while_it_pushes_by_remote_memory_access(self):
        try:
            self.survives(12, "--window", "rma")
        except self.failureException:
            # docs/failures.md: UCX 1.13 emulates RMA over TCP here; it may abort a ps that answers a killed worker.
            if "ucp_request.inl" not in self.job.stderr:
                raise
            self.assertEqual(self.exit_code(self.job), 4, self.job.stderr)
            self.skipTest("UCX aborted a ps that answered a worker's put; the job ended with 4")

    def test_while_checkpoints_are_saved(self):
        self.survives(13, save_every=10)

    def test_other_workers_train_to_the_end(self):
        epochs, rank = self.epochs_in(SECONDS_AFTER_THE_KILL), 1
        summary_file = self.directory / "summary.json"
        job, _ = self.start_training("--summary", summary_file, epochs=epochs)
        self.kill_one(job, rank)
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        self.assertRegex(job.stdout, r"(?m)^1 worker\(s\) ")
        summary = self.summary()
        self.assertEqual(summary["training"]["workers_lost"], 1)
        self.assertEqual(summary["training"]["triples"], summary["data"]["train"] * epochs, "every triple counts once in each epoch")
        self.assertGreater(summary["test"]["mrr"], LEARNED_MRR)

    def epochs_in(self, seconds):
        """Number of epochs that this machine trains in `seconds`, extrapolated from a short run."""
        epochs = 1000
        self.run_to_end(self.command("--summary", self.directory / "summary.json", epochs=epochs), RANKS)
        return int(seconds * epochs / self.summary()["training"]["seconds"])

    def test_job_ends_without_a_worker(self):
        job, roles = self.start_training()
        ranks = job.ranks()
        for rank in roles.workers:
            os.kill(ranks[rank][1], signal.SIGKILL)
        self.assertEqual(self.exit_code(job, SECONDS_TO_END), 4, job.stderr)
        self.assertRegex(job.stderr, rf"capstan: worker [01] \(rank [12] on {HOST}\) has ended, and no worker is left")


if __name__ == "__main__":
    main()
