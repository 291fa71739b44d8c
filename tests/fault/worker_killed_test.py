#!/usr/bin/env python3
"""A worker that dies by SIGKILL and is not started again: its work is done by the others; without others the job ends."""
import os
import pathlib
import random
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import HOST, LEARNT, SECONDS_TO_END, TRAINS, JobTest, Roles, main, train

# Of which the first quarter has a kill somewhere, so that the job is not over before, however fast the machine.
EPOCHS = 4000
EVAL_EVERY = 20
RANKS, PS = 5, 2


class WorkerKilled(JobTest):
    def start_training(self, *options, epoch=EVAL_EVERY):
        """The job, as soon as `epoch` is behind it, and what its ranks are."""
        command = train(
            self.graph(), "--ps", PS, "--slice-batches", 1, "--eval-every", EVAL_EVERY, "--max-restarts", 0, *options,
            epochs=EPOCHS,
        )
        job = self.start(command, RANKS)
        self.assertTrue(job.wait_for_text(rf"epoch {epoch}: {TRAINS}"), job.stderr)
        return job, Roles(RANKS, PS)

    def survives(self, seed, *options):
        """One worker is killed at a moment that follows from `seed`."""
        moment = random.Random(seed)
        summary_file = self.folder / "summary.json"
        epoch = moment.randrange(EVAL_EVERY, EPOCHS // 4, EVAL_EVERY)
        job, roles = self.start_training("--summary", summary_file, *options, epoch=epoch)
        time.sleep(moment.uniform(0, 0.02))
        rank = moment.choice(roles.workers)
        _, child = job.ranks()[rank]
        os.kill(child, signal.SIGKILL)
        self.assertEqual(self.exit_code(job), 0, job.stderr)

        name = f"worker {rank - 1} (rank {rank} on {HOST})"
        self.assertIn(f"{name} is gone", job.stderr)
        self.assertIn(f"{name}, pid {child}, was killed by signal 9", job.stderr)
        self.assertIn("1 worker(s) were lost on the way", job.stdout)
        summary = self.summary()
        self.assertEqual(summary["training"]["workers_lost"], 1)
        triples = summary["data"]["train"] * EPOCHS
        self.assertEqual(summary["training"]["triples"], triples, "every triple counts once an epoch")
        self.assertGreater(summary["test"]["mrr"], LEARNT)

    def test_at_several_moments(self):
        for seed in range(4):
            with self.subTest(seed=seed):
                self.survives(seed)

    def test_while_it_waits_for_room_in_a_small_ring(self):
        # A batch pushes up to 90 rows of 1 KiB, more than the ring holds.
        self.survives(11, "--push-ring-bytes", "64KiB", "--dim", 256)

    def test_while_it_pushes_by_remote_memory_access(self):
        self.survives(12, "--window", "rma")

    def test_while_checkpoints_are_saved(self):
        self.survives(13, "--checkpoint-dir", self.folder / "checkpoints", "--checkpoint-every", 10)

    def test_without_a_worker_the_job_ends(self):
        job, roles = self.start_training()
        ranks = job.ranks()
        for rank in roles.workers:
            os.kill(ranks[rank][1], signal.SIGKILL)
        self.assertEqual(self.exit_code(job, SECONDS_TO_END), 4, job.stderr)
        self.assertRegex(job.stderr, rf"capstan: worker [01] \(rank [12] on {HOST}\) is gone, and no worker is left")


if __name__ == "__main__":
    main()
