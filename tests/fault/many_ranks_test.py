#!/usr/bin/env python3
"""128 ranks on the cores of one machine lose ten ranks, each after progress of the job; the additions of closures count exactly once.

    python3 -B tests/fault/many_ranks_test.py build/release/bin mpirun

Takes minutes, so .ci/nightly runs it.
"""
import os
import pathlib
import random
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import HOST, LONG_TIMEOUTS, Roles, main
from poll import wait_random
from sums import SumsTest

RANKS = 128
WORKERS_KILLED = 8
# Time limit of one step of the job while its ranks share two cores.
SECONDS = 300


class ManyRanks(SumsTest):
    environment = {**LONG_TIMEOUTS, "CAPSTAN_START_TIMEOUT": f"{SECONDS}s", "CAPSTAN_WAIT_TIMEOUT": f"{SECONDS}s"}

    def wait_for_stderr(self, job, pattern):
        self.assertTrue(job.wait_for_text(pattern, SECONDS), f"{pattern} is not in:\n{job.stderr}")

    def kill_in_order(self, job, victims):
        """Kills these ranks, given as {rank: pattern of the output that follows}, in random order. Between two kills, every
        worker reaches every ps."""
        moment = random.Random(RANKS)
        order = list(victims)
        moment.shuffle(order)
        pids = job.ranks()
        self.assertEqual(len(pids), RANKS)
        for rank in order:
            self.wait_until_connected(job)
            wait_random(moment, 0, 0.02)
            os.kill(pids[rank][1], signal.SIGKILL)
            self.wait_for_stderr(job, victims[rank])
        self.wait_until_connected(job)

    def test_ranks_that_are_lost(self):
        """Eight workers, a ps that has a replica, and the replica of another ps are not restarted."""
        ps = 4
        # Order of ranks: coordinator, workers, replicas of the last to the first ps, ps from first to last.
        first_replica, first_ps = RANKS - 2 * ps, RANKS - ps
        job = self.start_sums(RANKS, f"--capstan-ps={ps}", "--capstan-replicas-of-ps=2", "--capstan-max-restarts=0")
        workers = range(1, WORKERS_KILLED + 1)
        victims = {rank: rf"worker {rank - 1} \(rank {rank} on {HOST}\) is dead" for rank in workers}
        victims[first_ps] = rf"ps 0 \(rank {first_ps} on {HOST}\) is lost; spare 0 .* takes its shards over"
        victims[first_replica] = rf"ps {ps - 1} \(rank {RANKS - 1} on {HOST}\) goes on without spare {ps - 1}|spare {ps - 1} .* is dead"
        self.kill_in_order(job, victims)
        self.assertEqual(self.assert_exact(job, SECONDS)["workers"], RANKS - 1 - 2 * ps - WORKERS_KILLED)

    def test_ranks_that_are_restarted(self):
        ps = 7
        roles = Roles(RANKS, ps)
        job = self.start_sums(RANKS, f"--capstan-ps={ps}")
        # A worker that is restarted gets a new rank.
        victims = {rank: rf"worker {i} \(rank \d+ on {HOST}\) replaces the previous process"
                   for i, rank in enumerate(roles.workers[:WORKERS_KILLED])}
        victims |= {rank: rf"ps {i} \(rank {rank} on {HOST}\) has recovered" for i, rank in enumerate(roles.ps[:2])}
        self.kill_in_order(job, victims)
        self.assertEqual(self.assert_exact(job, SECONDS)["workers"], len(roles.workers))


if __name__ == "__main__":
    main()
