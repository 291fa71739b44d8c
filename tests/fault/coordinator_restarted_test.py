#!/usr/bin/env python3
"""The coordinator dies by SIGKILL and is started again: the job goes on from its last recorded step, and what closures add counts exactly once."""
import os
import pathlib
import random
import re
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import BIN, HOST, SECONDS_TO_END, JobTest, Roles, child_of, main

PROGRAM = BIN / "steps_until_death"
BEGINS = r"begins after step (\d+)"
WAIT = "--capstan-coordinator-wait=20s"


class CoordinatorRestarted(JobTest):
    def kill_coordinator(self, job, agent, kills, moment, also=lambda: None):
        """One kill after another, each a while after the coordinator is at work again."""
        for kill in range(kills):
            self.assertTrue(job.wait_for_text(rf"(?s)({BEGINS}.*){{{kill + 1}}}"), job.stderr)
            # UCX 1.13 may abort a process that another one is connecting to when that dies: see docs/failures.md.
            time.sleep(1 + moment.uniform(0, 0.3))
            also()
            child = child_of(agent)
            self.assertIsNotNone(child, "the job was over before all were killed:\n" + job.stderr)
            os.kill(child, signal.SIGKILL)

    def figures(self, text):
        return dict(line.split() for line in text.splitlines() if line.count(" ") == 1)

    def check_sums(self, text, expected):
        figures = self.figures(text)
        self.assertEqual({name: int(figures[name]) for name in ("counter", "sharded", "other")},
                         {"counter": expected, "sharded": expected, "other": expected})

    def goes_on(self, seed, kills, *options, steps=40, closures=150, microseconds=1500, workers=3, ps=2, words=()):
        ranks = 1 + workers + ps
        moment = random.Random(seed)
        command = [PROGRAM, steps, closures, microseconds, *words, f"--capstan-ps={ps}", WAIT, f"--capstan-max-restarts={kills}"]
        job = self.start([*command, *options], ranks)
        self.assertTrue(job.wait_for_text(BEGINS), job.stderr)
        self.kill_coordinator(job, job.ranks()[0][0], kills, moment)
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        self.assertEqual(self.figures(job.stdout)["recovered"], "1")
        self.assertEqual(self.figures(job.stdout)["workers"], str(workers), job.stderr)
        begun = [int(step) for step in re.findall(BEGINS, job.stderr)]
        self.assertEqual(len(begun), kills + 1)
        self.assertEqual(begun, sorted(begun))
        self.assertGreater(begun[-1], 0)
        self.assertLess(begun[-1], steps, "the job was over when it was killed")
        return job, steps * closures

    # A5.16: better: a coordinator that is killed is started again and goes on from its last recorded step.
    def test_sums_are_exact_and_checkpoints_go_on(self):
        checkpoints = self.folder / "checkpoints"
        job, sum_of_all = self.goes_on(1, 3, words=[checkpoints])
        at_the_end, after_the_restore = job.stdout.split("after the restore")
        self.check_sums(at_the_end, sum_of_all)
        self.assertEqual(self.figures(at_the_end)["recorded"], "0")
        self.check_sums(after_the_restore, sum_of_all + 1)
        self.assertIn('refused: variable "sharded" is on the ps from before the coordinator was killed, with shape (64, 16), '
                      "float64, sgd(learning_rate=-1), in 2 shards; the program creates one with shape (65, 16)", job.stdout)

    def test_by_active_messages(self):
        job, sum_of_all = self.goes_on(2, 1, "--capstan-window=am", "--capstan-ps-restart=off", steps=20)
        self.check_sums(job.stdout, sum_of_all)

    def test_all_end_when_it_does_not_come_back(self):
        """Its agent is stopped, so that nobody starts it again, and the launcher thinks that all is well."""
        job = self.start([PROGRAM, 1000, 100, 1000, "--capstan-ps=1", "--capstan-coordinator-wait=2s"], 4)
        self.assertTrue(job.wait_for_text(BEGINS), job.stderr)
        agent, child = job.ranks()[0]
        os.kill(agent, signal.SIGSTOP)
        os.kill(child, signal.SIGKILL)
        began = time.monotonic()
        self.assertNotEqual(self.exit_code(job), 0, job.stderr)
        self.assertLess(time.monotonic() - began, 2 + SECONDS_TO_END)
        self.assertIn(rf"coordinator 0 (rank 0 on {HOST}) is gone, and has not come back within 2000 ms "
                      "(--coordinator-wait); this worker ends", job.stderr)

    def test_killed_when_it_has_ended_the_job(self):
        """It would find nobody, however often it was started again."""
        job = self.start([PROGRAM, 8, 100, 500, self.folder / "checkpoints", "linger", "--capstan-ps=1", WAIT, "--capstan-max-restarts=50"], 4)
        self.assertTrue(job.wait_for_text("lingers"), job.stderr)
        os.kill(child_of(job.ranks()[0][0]), signal.SIGKILL)
        self.assertEqual(self.exit_code(job, SECONDS_TO_END), 128 + signal.SIGKILL, job.stderr)
        self.assertRegex(job.stderr, r"coordinator 0 .*, was killed by signal 9 \(Killed\); it had ended the job, or could not go on with it")
        self.assertNotIn("started again", job.stderr)
        self.check_sums(job.stdout, 801)

    def test_restarts_used_up(self):
        job = self.start([PROGRAM, 1000, 100, 1000, "--capstan-ps=1", WAIT, "--capstan-max-restarts=1"], 4)
        self.assertTrue(job.wait_for_text(BEGINS), job.stderr)
        self.kill_coordinator(job, job.ranks()[0][0], 2, random.Random(3))
        self.assertEqual(self.exit_code(job, SECONDS_TO_END), 128 + signal.SIGKILL, job.stderr)


if __name__ == "__main__":
    main()
