#!/usr/bin/env python3
"""Workers are killed at random moments: the additions of each closure count exactly once, on every ps."""
import os
import pathlib
import random
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from gpu import gpu_flags
from job import HOST, Roles, main
from poll import wait_random
from sums import ON_GPU, SumsTest

RANKS, PS = 8, 2
GPU = gpu_flags(prefix="--capstan-")


class SumsKilled(SumsTest):
    def check(self, seed, *options, **start):
        """Kills all workers except one, at moments that follow from `seed`."""
        moment = random.Random(seed)
        job = self.start_sums(RANKS, f"--capstan-ps={PS}", "--capstan-max-restarts=0", *options, **start)
        workers, ranks = Roles(RANKS, PS).workers, job.ranks()
        moment.shuffle(workers)
        for rank in workers[1:]:
            wait_random(moment, 0.01, 0.1)
            os.kill(ranks[rank][1], signal.SIGKILL)
        for rank in workers[1:]:
            self.wait_for_stderr(job, rf"worker {rank - 1} \(rank {rank} on {HOST}\) is dead")
        self.assertEqual(self.assert_exact(job)["workers"], 1)

    def test_through_mapped_memory(self):
        for seed in range(3):
            with self.subTest(seed=seed):
                self.check(seed)

    def test_by_active_messages(self):
        self.check(20, "--capstan-window=am")

    def test_with_shards_in_gpu_memory(self):
        self.check(40, *GPU, env=ON_GPU)

    def test_with_one_closure_at_a_time(self):
        self.check(30, "--capstan-max-inflight-per-worker=1")


if __name__ == "__main__":
    main()
