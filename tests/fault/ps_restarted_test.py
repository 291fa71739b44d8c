#!/usr/bin/env python3
"""A ps that dies is started again by its agent, and finds its heap: what closures add counts exactly once."""
import os
import pathlib
import random
import re
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import BIN, HOST, JobTest, Roles, child_of, main

SUMS = BIN / "sums_until_death"


class PsRestarted(JobTest):
    def sums_stay_exact(self, seed, kills, *options, microseconds=0, closures=20000, workers=2, ps=2, victims=("ps",)):
        """Ranks are killed at random moments, each only when it is there."""
        moment = random.Random(seed)
        ranks = 1 + workers + ps
        job = self.start([SUMS, closures, microseconds, f"--capstan-ps={ps}", "--capstan-max-restarts=100", *options], ranks)
        self.assertTrue(job.wait_for_text("begins"), job.stderr)
        roles, pids = Roles(ranks, ps), job.ranks()
        agents = {("ps", i): pids[rank][0] for i, rank in enumerate(roles.ps)}
        agents |= {("worker", i): pids[rank][0] for i, rank in enumerate(roles.workers)}
        candidates = sorted(name for name in agents if name[0] in victims)
        deaths = dict.fromkeys(candidates, 0)
        time.sleep(0.2)
        while sum(deaths.values()) < kills and job.command.poll() is None:
            # Long enough between two deaths of one that its agent does not pause longer and longer.
            time.sleep(moment.uniform(0.6, 1.2) / len(candidates))
            who = moment.choice(candidates)
            back = r"is back" if who[0] == "ps" else r"is there in place of"
            returns = len(re.findall(rf"{who[0]} {who[1]} \(rank \d+ on {HOST}\) {back}", job.stderr))
            if returns == deaths[who] and (child := child_of(agents[who])):
                time.sleep(0.05)  # until all have connected to it: see docs/failures.md
                os.kill(child, signal.SIGKILL)
                deaths[who] += 1
        self.assertEqual(self.exit_code(job, 120), 0, job.stdout + job.stderr)
        self.assertEqual(sum(deaths.values()), kills, "the job was over before all were killed")
        figures = dict(line.split() for line in job.stdout.splitlines() if line.count(" ") == 1)
        self.assertEqual({name: int(figures[name]) for name in ("counter", "sharded", "other")},
                         {"counter": closures, "sharded": closures, "other": closures})

    def test_through_mapped_memory(self):
        self.sums_stay_exact(1, 6, microseconds=600)

    def test_under_pushes_without_a_pause(self):
        self.sums_stay_exact(2, 3, closures=100000)

    def test_by_active_messages(self):
        self.sums_stay_exact(3, 3, "--capstan-window=am", microseconds=600, closures=6000)

    def test_by_remote_memory_access(self):
        self.sums_stay_exact(4, 2, "--capstan-window=rma", microseconds=600, closures=6000)

    def test_workers_and_ps_die(self):
        self.sums_stay_exact(5, 6, microseconds=600, victims=("ps", "worker"))

    def test_one_with_an_update_group_does_not_come_back(self):
        job = self.start([BIN / "group_until_death", 100_000_000, -1, "--capstan-ps=1"], 4)
        self.assertTrue(job.wait_for_text("ps on this host"), job.stderr)
        time.sleep(0.5)  # until both have begun their steps
        os.kill(job.ranks()[3][1], signal.SIGKILL)
        self.assertNotEqual(self.exit_code(job, 60), 0, job.stderr)
        self.assertIn("what the workers of an update group had pushed in their last step died with the ps", job.stderr)
        self.assertRegex(job.stderr, rf"ps 0 \(rank 3 on {HOST}\) is gone.* has not come back")

    def test_restarts_are_used_up(self):
        job = self.start([SUMS, 20000, 600, "--capstan-ps=1", "--capstan-max-restarts=1"], 4)
        self.assertTrue(job.wait_for_text("begins"), job.stderr)
        agent = job.ranks()[3][0]
        os.kill(child_of(agent), signal.SIGKILL)
        self.assertTrue(job.wait_for_text(r"ps 0 \(rank 3 on .*\) is back"), job.stderr)
        time.sleep(0.1)
        os.kill(child_of(agent), signal.SIGKILL)
        self.assertNotEqual(self.exit_code(job, 60), 0, job.stderr)
        self.assertRegex(job.stderr, rf"ps 0 \(rank 3 on {HOST}\) is gone, its shards with it, and it has not come back")


if __name__ == "__main__":
    main()
