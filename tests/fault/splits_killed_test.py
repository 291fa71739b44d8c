#!/usr/bin/env python3
"""Each example counts exactly once an epoch, while workers are killed, and when a job continues from a checkpoint."""
import json
import os
import pathlib
import random
import re
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import BIN, HOST, LONG_TIMEOUTS, JobTest, Roles, child_of, main
from poll import wait_random

PROGRAM = BIN / "splits_until_death"
EXAMPLES, EPOCHS = 1200, 2
A_SPLIT = 10
SPLITS = EXAMPLES // A_SPLIT
MICROSECONDS = 40000  # for each split
WORKERS, PS = 3, 2
RANKS = 1 + WORKERS + PS


class SplitsKilled(JobTest):
    environment = LONG_TIMEOUTS

    def setUp(self):
        super().setUp()
        self.file = self.directory / "end"

    def start_job(self, *arguments, evaluator=False):
        """Starts a job that does not end before the file exists."""
        options = [f"--capstan-ps={PS}", "--capstan-max-restarts=50", *(["--capstan-evaluator"] if evaluator else [])]
        job = self.start([PROGRAM, EXAMPLES, EPOCHS, MICROSECONDS, self.file, *arguments, *options], RANKS + evaluator)
        self.wait_for_stderr(job, "begins")
        self.agents = [job.ranks()[rank][0] for rank in Roles(RANKS, PS).workers]
        return job

    def kill_workers(self, job, moment, kills):
        """Kills random running workers, one after another."""
        deaths = [0] * WORKERS
        while sum(deaths) < kills:
            self.assertIsNone(job.command.poll(), job.stderr)
            wait_random(moment, 0, 0.15)
            worker = moment.randrange(WORKERS)
            back = len(re.findall(rf"worker {worker} \(rank \d+ on {HOST}\) replaces the previous process", job.stderr))
            child = child_of(self.agents[worker])
            if back < deaths[worker] or child is None:
                continue
            os.kill(child, signal.SIGKILL)
            deaths[worker] += 1

    def each_has_counted(self, job):
        self.file.touch()
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        self.assertEqual(re.findall(r"count \d+: \d+", job.stdout), [f"count {EPOCHS}: {EXAMPLES}"], job.stdout)

    def wait_for_evaluations(self, job, count):
        self.assertTrue(job.wait_for(lambda: len(re.findall("evaluated .*\n", job.stdout)) >= count), job.stderr)

    # own: better: each example counts once an epoch, while workers are killed.
    def test_examples_count_once_while_workers_are_killed(self):
        job = self.start_job()
        self.kill_workers(job, random.Random(1), 4)
        self.each_has_counted(job)

    # A5.16: better: the job continues with the splits that were not done at its last checkpoint, which may be saved while functions run.
    # A6.4: better: evaluates a job of real ranks; each checkpoint is exact.
    def test_job_continues_from_a_checkpoint(self):
        """Saves while splits run and workers die; the job is killed at a random moment."""
        directory = self.directory / "checkpoints"
        moment = random.Random(2)
        job = self.start_job(directory, 0.1)
        self.kill_workers(job, moment, 2)
        self.wait_for_stderr(job, r"saved ([3-9]|\d\d+), [1-9]\d* done")
        wait_random(moment, 0, 0.1)
        job.signal_launcher(signal.SIGTERM)
        self.assertNotEqual(self.exit_code(job), 0, "the job was over before it was ended")

        job = self.start_job(directory, 0.2, evaluator=True)
        self.kill_workers(job, moment, 1)
        self.wait_for_evaluations(job, 2)
        self.each_has_counted(job)
        before = int(re.search(r"before (\d+)", job.stdout)[1])
        self.assertTrue(0 < before < EPOCHS * SPLITS, f"{before} splits were done before")
        self.each_checkpoint_is_exact(job, directory)

    def test_job_continues_without_a_killed_evaluator(self):
        job = self.start_job(self.directory / "checkpoints", 0.2, evaluator=True)
        self.wait_for_evaluations(job, 1)
        os.kill(child_of(job.ranks()[RANKS][0]), signal.SIGKILL)
        self.wait_for_stderr(job, r"evaluator 0 .* is dead; checkpoints are no longer evaluated")
        self.each_has_counted(job)
        self.assertIn("the job goes on without it", job.stderr)

    def each_checkpoint_is_exact(self, job, directory):
        """Checks each evaluation: the counts equal those of the completed splits. The last checkpoint must be evaluated."""
        evaluated = {}
        for step, total, position in re.findall(r"evaluated (\d+): (\d+) (.*)", job.stdout):
            position = json.loads(position)
            done = SPLITS * position["epoch"]
            done += sum(end - begin for ranges in position["done"].values() for begin, end in ranges)
            self.assertEqual(int(total), A_SPLIT * done, f"checkpoint {step}")
            evaluated[int(step)] = done
        saved = [int(path.name.partition("-")[2]) for path in directory.glob("checkpoint-*")]
        self.assertEqual(list(evaluated), sorted(evaluated))
        self.assertEqual(max(evaluated), max(saved))
        self.assertGreater(len(evaluated), 1)


if __name__ == "__main__":
    main()
