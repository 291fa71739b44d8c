#!/usr/bin/env python3
"""Workers die by SIGKILL at random moments: what each closure adds counts exactly once, on every ps."""
import os
import pathlib
import random
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import BIN, JobTest, Roles, main

PROGRAM = BIN / "sums_until_death"
CLOSURES = 20000
RANKS, PS = 8, 2


class SumsKilled(JobTest):
    def check(self, seed, *options):
        """All workers but one are killed, one after another, at moments that follow from `seed`."""
        moment = random.Random(seed)
        job = self.start([PROGRAM, CLOSURES, f"--capstan-ps={PS}", "--capstan-max-restarts=0", *options], RANKS)
        self.assertTrue(job.wait_for_text("begins"), job.stderr)
        workers, ranks = Roles(RANKS, PS).workers, job.ranks()
        moment.shuffle(workers)
        for rank in workers[1:]:
            time.sleep(moment.uniform(0.01, 0.1))
            os.kill(ranks[rank][1], signal.SIGKILL)
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        figures = dict(line.split() for line in job.stdout.splitlines() if line.count(" ") == 1)
        self.assertEqual(figures["workers"], "1", "the job was over before all were killed")
        self.assertEqual({name: int(figures[name]) for name in ("counter", "sharded", "other")},
                         {"counter": CLOSURES, "sharded": CLOSURES, "other": CLOSURES})

    def test_through_mapped_memory(self):
        for seed in range(3):
            with self.subTest(seed=seed):
                self.check(seed)

    def test_by_active_messages(self):
        self.check(20, "--capstan-window=am")

    def test_with_one_closure_at_a_time(self):
        self.check(30, "--capstan-max-inflight-per-worker=1")


if __name__ == "__main__":
    main()
