#!/usr/bin/env python3
# Tests: src/coordinator/recovery/job_record.cpp
"""A killed coordinator is restarted: the job continues from its last recorded step, and additions of closures count exactly once."""
# Tests: src/coordinator/recovery/coordinator_recovery.cpp
# Tests: src/strategy/recovery.cpp
import os
import pathlib
import random
import re
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import BIN, HOST, LONG_TIMEOUTS, SECONDS_TO_END, JobTest, child_of, main
from poll import wait_random

PROGRAM = BIN / "steps_until_death"
BEGINS = r"begins after step (\d+)"
WAIT = "--capstan-coordinator-wait=40s"
COUNTED = ("counter", "sharded", "other", "table")


class CoordinatorRestarted(JobTest):
    environment = LONG_TIMEOUTS

    def start_steps(self, ranks, closures, microseconds, *words, env=None):
        """Starts a job that runs steps until the test creates `self.file`."""
        self.file = self.directory / "end"
        return self.start([PROGRAM, self.file, closures, microseconds, *words], ranks, env=env)

    def kill_coordinator(self, job, kills, moment):
        """Kills the coordinator repeatedly, each time after it has reached all ranks and recorded a step."""
        for kill in range(kills):
            incarnations = lambda: re.split(BEGINS, job.stderr)[1:][1::2]
            works = job.wait_for(lambda: len(incarnations()) == kill + 1 and "recorded" in incarnations()[-1])
            self.assertTrue(works, job.stderr)
            if kill == 0:
                agent = job.ranks()[0][0]
            wait_random(moment, 0, 0.3)
            os.kill(child_of(agent), signal.SIGKILL)

    def figures(self, text):
        return dict(line.split() for line in text.splitlines() if line.count(" ") == 1)

    def check_sums(self, text, expected):
        figures = self.figures(text)
        self.assertEqual({name: int(figures[name]) for name in COUNTED}, dict.fromkeys(COUNTED, expected))

    def goes_on(self, seed, kills, *options, closures=150, microseconds=1500, workers=3, ps=2, words=()):
        """Kills the coordinator `kills` times; returns the ended job and the expected sums."""
        job = self.start_steps(1 + workers + ps, closures, microseconds, *words, f"--capstan-ps={ps}", WAIT,
                               f"--capstan-max-restarts={kills}", *options)
        self.kill_coordinator(job, kills, random.Random(seed))
        self.file.touch()
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        self.assertEqual(self.figures(job.stdout)["recovered"], "1")
        self.assertEqual(self.figures(job.stdout)["workers"], str(workers), job.stderr)
        begun = [int(step) for step in re.findall(BEGINS, job.stderr)]
        self.assertEqual(len(begun), kills + 1)
        self.assertEqual(begun, sorted(begun))
        self.assertGreater(begun[-1], 0)
        return job, int(self.figures(job.stdout)["steps"]) * closures

    # A5.16: better: a killed coordinator is restarted and continues from its last recorded step.
    def test_sums_are_exact_and_checkpoints_continue(self):
        checkpoints = self.directory / "checkpoints"
        job, sum_of_all = self.goes_on(1, 3, words=[checkpoints])
        at_the_end, after_the_restore = job.stdout.split("after the restore")
        self.check_sums(at_the_end, sum_of_all)
        self.assertEqual(self.figures(at_the_end)["has_recorded_step"], "0")
        self.check_sums(after_the_restore, sum_of_all + 1)
        self.assertIn('refused: variable "sharded" exists since before the coordinator was killed, with shape (64, 16), '
                      "float64, sgd(learning_rate=-1), in 2 shards; the program now creates it with shape (65, 16)", job.stdout)

    def test_restarted_worker_gets_functions_after_the_coordinator_restarts(self):
        job = self.start_steps(5, 150, 1500, "--capstan-ps=2", WAIT)
        self.kill_coordinator(job, 1, random.Random(4))
        self.wait_for_stderr(job, rf"(?s)({BEGINS}.*){{2}}recorded")
        os.kill(job.ranks()[1][1], signal.SIGKILL)
        self.wait_for_stderr(job, r"(?s)worker 0 .* replaces the previous process.*(recorded .*){2}")
        self.file.touch()
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        self.check_sums(job.stdout, int(self.figures(job.stdout)["steps"]) * 150)

    def test_worker_killed_with_the_coordinator_rejoins(self):
        job = self.start_steps(5, 150, 1500, "--capstan-ps=2", WAIT)
        self.wait_for_stderr(job, rf"(?s){BEGINS}.*recorded")
        for rank in (1, 0):
            os.kill(job.ranks()[rank][1], signal.SIGKILL)
        self.wait_for_stderr(job, r"(?s)worker 0 .* replaces the previous process.*(recorded .*){2}")
        self.file.touch()
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        self.check_sums(job.stdout, int(self.figures(job.stdout)["steps"]) * 150)

    def test_by_active_messages(self):
        job, sum_of_all = self.goes_on(2, 1, "--capstan-window=am", "--capstan-ps-restart=off")
        self.check_sums(job.stdout, sum_of_all)

    def test_ps_abandons_a_replica_killed_with_the_coordinator(self):
        # A worker completes a push when the ps acknowledges it, which the ps does once the coordinator has dropped the replica.
        self.kill_with_replicas()

    def test_ps_in_a_call_abandons_a_replica_killed_with_the_coordinator(self):
        self.kill_with_replicas(env={"CALLS": "50"})

    def kill_with_replicas(self, env=None):
        job = self.start_steps(7, 150, 1500, "--capstan-ps=2", "--capstan-replicas-of-ps=2", WAIT, env=env)
        self.assertTrue(job.wait_for(lambda: "recorded" in job.stderr), job.stderr)
        ranks = job.ranks()
        coordinator = ranks[0][1]
        replicas = [ranks[rank][1] for rank in (4, 3)]
        for replica in replicas:
            os.kill(replica, signal.SIGSTOP)
        time.sleep(0.2)  # until workers wait for the ps, and the ps for their replicas
        os.kill(coordinator, signal.SIGSTOP)
        for replica in replicas:
            os.kill(replica, signal.SIGKILL)
        for index in (0, 1):
            self.wait_for_stderr(job, f"abandoning the replica spare {index} ")
        os.kill(coordinator, signal.SIGKILL)
        self.wait_for_stderr(job, BEGINS + r"[\s\S]*" + BEGINS)
        self.file.touch()
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        self.assertNotIn("has not ended the closures", job.stderr)
        self.check_sums(job.stdout, int(self.figures(job.stdout)["steps"]) * 150)

    def test_all_ranks_end_if_the_coordinator_does_not_return(self):
        """The coordinator's agent is stopped, so it does not restart the coordinator, and the launcher sees no death."""
        job = self.start_steps(4, 100, 1000, "--capstan-ps=1", "--capstan-coordinator-wait=2s")
        self.wait_for_stderr(job, BEGINS)
        agent, child = job.ranks()[0]
        os.kill(agent, signal.SIGSTOP)
        os.kill(child, signal.SIGKILL)
        began = time.monotonic()
        self.assertNotEqual(self.exit_code(job), 0, job.stderr)
        self.assertLess(job.gone_at - began, 2 + SECONDS_TO_END)
        self.assertIn(rf"coordinator 0 (rank 0 on {HOST}) is dead, and has not recovered within 2000 ms "
                      "(--coordinator-wait); this worker ends", job.stderr)

    def test_coordinator_killed_after_the_job_ended_is_not_restarted(self):
        """A restarted coordinator would find no ranks."""
        job = self.start([PROGRAM, 8, 100, 500, self.directory / "checkpoints", "linger", "--capstan-ps=1", WAIT, "--capstan-max-restarts=50"], 4)
        self.wait_for_stderr(job, "lingers")
        os.kill(child_of(job.ranks()[0][0]), signal.SIGKILL)
        self.assertEqual(self.exit_code(job, SECONDS_TO_END), 128 + signal.SIGKILL, job.stderr)
        self.assertRegex(job.stderr, r"coordinator 0 .*, was killed by signal 9 \(Killed\); it had ended the job, or could not continue it")
        self.assertNotIn("started again", job.stderr)
        self.check_sums(job.stdout, 801)

    def test_job_ends_when_restarts_are_used_up(self):
        job = self.start_steps(4, 100, 1000, "--capstan-ps=1", WAIT, "--capstan-max-restarts=1")
        self.kill_coordinator(job, 2, random.Random(3))
        self.assertEqual(self.exit_code(job, SECONDS_TO_END), 128 + signal.SIGKILL, job.stderr)


if __name__ == "__main__":
    main()
