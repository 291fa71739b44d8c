#!/usr/bin/env python3
"""A rank killed at any moment of the start: the job ends well or with an error, but it ends, and nothing is left.

Only a worker may be missed, and only after all ranks know of each other; before that the launcher ends the job.
"""
import os
import pathlib
import random
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import JobTest, Roles, main, train

# Three seconds of training at two million triples/s, which is faster than any machine seen: longer than the moments below.
EPOCHS = 20_000
RANKS, PS = 5, 2


class StartKilled(JobTest):
    def test_at_several_moments(self):
        data = self.graph()
        killed = 0
        for seed in range(9):
            with self.subTest(seed=seed):
                moment = random.Random(seed)
                job = self.start(train(data, "--ps", PS, epochs=EPOCHS), RANKS)
                role = ("workers", "ps", "coordinator")[seed % 3]
                ranks = getattr(Roles(RANKS, PS), role)
                rank = moment.choice(ranks) if isinstance(ranks, list) else ranks
                # From the fork of the rank on, through MPI's start and end, to the first closures.
                while rank not in job.ranks() and job.command.poll() is None:
                    time.sleep(0.01)
                time.sleep(moment.uniform(0, 0.8))
                try:
                    os.kill(job.ranks()[rank][1], signal.SIGKILL)
                    killed += 1
                except (KeyError, ProcessLookupError):
                    pass  # a quick machine: the job is over
                code = self.exit_code(job)  # where it goes on, all its epochs
                if code == 0:
                    self.assertIn("MRR", job.stdout)
                else:
                    self.assertNotIn("MRR", job.stdout)
                    # 137 is the coordinator's own end, or that of a rank which has not yet an agent.
                    self.assertIn(code, (4, 128 + signal.SIGKILL), job.stderr)
                    self.assertIn(f"rank {rank}", job.stderr)
        self.assertGreater(killed, 4)


if __name__ == "__main__":
    main()
