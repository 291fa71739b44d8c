#!/usr/bin/env python3
"""Checkpoints saved while functions push: each shard is consistent by itself, or all shards together, also if a ps dies during the
save."""
import json
import os
import pathlib
import re
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import BIN, HOST, LONG_TIMEOUTS, JobTest, Roles, child_of, main

PROGRAM = BIN / "saves_while_training"


class SavesWhileTraining(JobTest):
    environment = LONG_TIMEOUTS

    def begin(self, saves, consistency, how, *options, ps=2, workers=2, mebibytes=1, words=()):
        return self.start([PROGRAM, self.directory / "checkpoints", saves, consistency, how, mebibytes, *words,
                           f"--capstan-ps={ps}", *options], 1 + ps + workers)

    def check(self, job, saves, exact):
        """Checks that each checkpoint is of a moment between begin and end, and that counts never decrease."""
        self.assertEqual(self.exit_code(job), 0, job.stdout + job.stderr)
        lines = [line.split() for line in job.stdout.splitlines()]
        functions = next(line[1] for line in lines if line[0] == "functions")
        self.assertIn(["end", functions, functions, "complete"], lines, job.stdout)
        saved = [line for line in lines if line[0] == "saved"]
        self.assertGreaterEqual(len(saved), saves)
        self.assertEqual({line[3] for line in saved}, {"complete"}, job.stdout)
        for which in (1, 2):
            counts = [int(line[which]) for line in saved]
            self.assertEqual(counts, sorted(counts), job.stdout)
            self.assertGreater(counts[0], 0, job.stdout)
            self.assertLess(counts[-1], int(functions), job.stdout)
        if exact:
            self.assertEqual([line[1] for line in saved], [line[2] for line in saved], job.stdout)
        went_on = next(line for line in lines if line[0] == "went_on")
        self.assertGreater(int(went_on[1]), 0, "no function ended while a checkpoint was saved")

    def test_shards(self):
        for ps in (1, 2, 3):
            with self.subTest(ps=ps):
                self.check(self.begin(3, "shard", "wait", ps=ps), 3, exact=False)

    def test_globally_consistent(self):
        self.check(self.begin(3, "global", "wait"), 3, exact=True)

    def test_in_the_background(self):
        self.check(self.begin(3, "global", "background"), 3, exact=True)

    def check_increments(self, saves):
        for step in range(1, saves + 1):
            manifest = json.loads((self.directory / "checkpoints" / f"checkpoint-{step:08}" / "manifest.json").read_text())
            if step == 1:
                self.assertNotIn("base", manifest)
            else:
                self.assertEqual(manifest["base"]["checkpoint"], "checkpoint-00000001")

    def test_increments(self):
        self.check(self.begin(4, "global", "incremental", mebibytes=20), 4, exact=True)
        self.check_increments(4)
        sizes = [sum(file.stat().st_size for file in (self.directory / "checkpoints" / f"checkpoint-{step:08}").iterdir())
                 for step in range(1, 5)]
        self.assertLess(sizes[1], sizes[0] / 2, "only a few thousand of 160,000 rows changed")

    def test_increment_after_a_ps_was_restarted(self):
        go_on = self.directory / "go-on"
        job = self.begin(4, "global", "incremental", mebibytes=20, words=[3, go_on])
        self.wait_for_stderr(job, "waits")
        os.kill(child_of(job.ranks()[Roles(5, 2).ps[1]][0]), signal.SIGKILL)
        go_on.touch()
        self.check(job, 4, exact=True)
        self.assertRegex(job.stderr, rf"ps 1 \(rank \d on {HOST}\) has recovered")
        self.check_increments(4)

    def test_by_active_messages(self):
        self.check(self.begin(2, "global", "background", "--capstan-window=am"), 2, exact=True)

    def test_respects_the_checkpoint_bandwidth(self):
        # 10 MiB, of which each ps writes half.
        job = self.begin(1, "shard", "wait", "--capstan-checkpoint-bandwidth=2MiB", mebibytes=10)
        self.check(job, 1, exact=False)
        self.assertGreater(float(re.search(r"slowest (\S+)", job.stdout)[1]), 1.5, "5 MiB at 2 MiB/s")

    def test_saves_on_a_signal(self):
        # The launcher would forward the signal to all ranks; only the coordinator must get it.
        job = self.start([BIN / "save_on_signal", self.directory / "checkpoints"], 3)
        self.wait_for_stderr(job, "ready")
        for number in (1, 2):
            os.kill(job.command.pid, signal.SIGUSR1)
            self.wait_for_stderr(job, rf"(?s)(saved \d+.*){{{number}}}")
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        self.assertNotIn("is dead", job.stderr)

    def test_ps_dies_while_it_writes(self):
        # Each ps writes 8 MiB in eight seconds.
        job = self.begin(2, "global", "wait", "--capstan-checkpoint-bandwidth=1MiB", mebibytes=16)
        directory = self.directory / "checkpoints" / "checkpoint-00000001.tmp"
        self.assertTrue(job.wait_for(lambda: list(directory.glob("part-*"))), job.stderr)
        os.kill(child_of(job.ranks()[Roles(5, 2).ps[1]][0]), signal.SIGKILL)
        self.check(job, 2, exact=True)
        self.assertRegex(job.stderr, rf"ps 1 \(rank \d on {HOST}\) has recovered")

    def test_ps_stopped_while_it_writes_is_replaced_and_the_save_restarts(self):
        # Ranks: coordinator, two workers, two replicas, two ps, each of which writes for eight seconds.
        job = self.begin(1, "global", "wait", "--capstan-checkpoint-bandwidth=1MiB", "--capstan-replicas-of-ps=2",
                         "--capstan-heartbeat-timeout=5s", "--capstan-ps-wait=1s", workers=4, mebibytes=16)
        directory = self.directory / "checkpoints" / "checkpoint-00000001.tmp"
        self.assertTrue(job.wait_for(lambda: list(directory.glob("part-*"))), job.stderr)
        os.kill(job.ranks()[Roles(7, 2).ps[1]][1], signal.SIGSTOP)
        self.check(job, 1, exact=True)
        self.assertRegex(job.stderr, rf"ps 1 \(rank 6 on {HOST}\) is lost; spare 1 .* takes its shards over")
        self.assertRegex(job.stderr, "all ps write their parts again")


if __name__ == "__main__":
    main()
