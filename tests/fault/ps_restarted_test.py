#!/usr/bin/env python3
"""A dead ps is restarted by its agent and recovers its heap: the additions of closures count exactly once."""
import os
import pathlib
import random
import re
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from gpu import gpu_flags
from job import BIN, HOST, Roles, child_of, main
from poll import wait_random
from sums import ON_GPU, SumsTest


class PsRestarted(SumsTest):
    def sums_stay_exact(self, seed, kills, *options, microseconds=0, workers=2, ps=2, victims=("ps",)):
        """Kills ranks at random moments, each only while it runs."""
        moment = random.Random(seed)
        ranks = 1 + workers + ps
        job = self.start_sums(ranks, f"--capstan-ps={ps}", "--capstan-max-restarts=100", *options, microseconds=microseconds)
        roles, pids = Roles(ranks, ps), job.ranks()
        agents = {("ps", i): pids[rank][0] for i, rank in enumerate(roles.ps)}
        agents |= {("worker", i): pids[rank][0] for i, rank in enumerate(roles.workers)}
        candidates = sorted(name for name in agents if name[0] in victims)
        deaths = dict.fromkeys(candidates, 0)
        while sum(deaths.values()) < kills:
            self.assertIsNone(job.command.poll(), job.stderr)
            # Far enough apart that the agent's delay before a restart does not grow.
            wait_random(moment, 0.6 / len(candidates), 1.2 / len(candidates))
            who = moment.choice(candidates)
            back = r"has recovered" if who[0] == "ps" else r"replaces the previous process"
            returns = len(re.findall(rf"{who[0]} {who[1]} \(rank \d+ on {HOST}\) {back}", job.stderr))
            if returns < deaths[who]:
                continue
            self.wait_until_connected(job)
            wait_random(moment, 0, 0.02)
            if child := child_of(agents[who]):
                os.kill(child, signal.SIGKILL)
                deaths[who] += 1
        self.assert_exact(job)

    def test_through_mapped_memory(self):
        self.sums_stay_exact(1, 6, microseconds=600)

    def test_under_continuous_pushes(self):
        self.sums_stay_exact(2, 3)

    def test_while_several_threads_apply_pushes(self):
        self.sums_stay_exact(6, 3, "--capstan-ps-threads=3", ps=1)

    def test_by_active_messages(self):
        self.sums_stay_exact(3, 3, "--capstan-window=am", microseconds=600)

    def test_by_remote_memory_access(self):
        self.sums_stay_exact(4, 2, "--capstan-window=rma", microseconds=600)

    def test_workers_and_ps_die(self):
        self.sums_stay_exact(5, 6, microseconds=600, victims=("ps", "worker"))

    def test_ps_with_an_update_group_is_not_recovered(self):
        job = self.start([BIN / "group_until_death", 100_000_000, -1, "--capstan-ps=1", "--capstan-max-inflight-per-worker=1",
                          "--capstan-ps-wait=2s"], 4)
        self.wait_for_stderr(job, "begins")
        os.kill(job.ranks()[3][1], signal.SIGKILL)
        self.assertNotEqual(self.exit_code(job), 0, job.stderr)
        self.assertIn("cannot recover an update group", job.stderr)
        self.assertRegex(job.stderr, rf"ps 0 \(rank 3 on {HOST}\) is dead.* has not recovered")

    def test_ps_with_shards_in_gpu_memory_is_not_recovered(self):
        job = self.start_sums(4, "--capstan-ps=1", "--capstan-ps-wait=1s", *gpu_flags(prefix="--capstan-"), microseconds=600,
                              env=ON_GPU)
        os.kill(job.ranks()[3][1], signal.SIGKILL)
        self.assertNotEqual(self.exit_code(job), 0, job.stderr)
        self.assertRegex(job.stderr, r'cannot recover shard .*of variable "sharded".*--spares')
        self.assertRegex(job.stderr, rf"ps 0 \(rank 3 on {HOST}\) is dead.* has not recovered")

    def test_ps_that_returns_after_the_wait_timeout_acknowledges_a_dead_worker(self):
        """When the ps returns, the coordinator and a restarted worker wait for its acknowledgment with a new timeout."""
        job = self.start_sums(5, "--capstan-ps=2", "--capstan-ps-wait=60s", "--capstan-wait-timeout=8s", microseconds=600)
        roles, pids = Roles(5, 2), job.ranks()
        agent, child = pids[roles.ps[1]]
        os.kill(agent, signal.SIGSTOP)  # delays the restart
        os.kill(child, signal.SIGKILL)
        self.wait_for_stderr(job, r"ps 1 \(rank \d+ on .*\) is dead")
        os.kill(pids[roles.workers[0]][1], signal.SIGKILL)
        self.wait_for_stderr(job, r"worker 0 .* is dead; rescheduled functions: \d+")
        time.sleep(9)  # longer than --wait-timeout
        os.kill(agent, signal.SIGCONT)
        self.wait_for_stderr(job, r"ps 1 \(rank \d+ on .*\) has recovered")
        self.wait_for_stderr(job, r"worker 0 .* replaces the previous process")
        self.assert_exact(job)

    def test_job_ends_when_restarts_are_used_up(self):
        job = self.start_sums(4, "--capstan-ps=1", "--capstan-max-restarts=1", "--capstan-ps-wait=10s", microseconds=600)
        agent = job.ranks()[3][0]
        os.kill(child_of(agent), signal.SIGKILL)
        self.wait_for_stderr(job, r"ps 0 \(rank 3 on .*\) has recovered")
        self.wait_until_connected(job)
        os.kill(child_of(agent), signal.SIGKILL)
        self.assertNotEqual(self.exit_code(job), 0, job.stderr)
        self.assertRegex(job.stderr, rf"ps 0 \(rank 3 on {HOST}\) is dead, its shards are lost, and it has not recovered")


if __name__ == "__main__":
    main()
