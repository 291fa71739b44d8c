#!/usr/bin/env python3
"""Each program of `capstan train` whose worker, ps and coordinator are killed in turn ends with the quality of an undisturbed run."""
# Tests: src/train/after_recovery.hpp
import os
import pathlib
import re
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import trained_programs
from job import CAPSTAN, LONG_TIMEOUTS, JobTest, Roles, main

RANKS, PS = 5, 2
SAVED_EVERY = 5  # epochs
REQUEUE = 85  # docs/errors.md


class TrainKilled(JobTest):
    environment = LONG_TIMEOUTS

    def setUp(self):
        super().setUp()
        self.saved = self.directory / "saved"

    def wait_for_epoch(self, job, epoch):
        self.assertTrue(job.wait_for(lambda: self.last_saved() >= epoch), job.stderr)

    def wait_for_progress(self, job):
        """Waits until two more checkpoints were saved: all ranks that training needs have connected."""
        self.wait_for_epoch(job, self.last_saved() + 2 * SAVED_EVERY)

    def kill(self, job, rank, recovered):
        self.wait_for_progress(job)
        os.kill(job.ranks()[rank][1], signal.SIGKILL)
        self.wait_for_stderr(job, recovered)

    def check(self, program):
        summary = self.directory / "summary.json"
        command = [CAPSTAN, "train", program, *trained_programs.options(program, self.directory), "--ps", PS, "--summary", summary]
        epochs = trained_programs.EPOCHS[program]
        self.run_to_end([*command, "--workers", 2, "--epochs", epochs])
        undisturbed = trained_programs.quality(program, summary)

        # Trains until the test stops it, after as many epochs at least.
        command += trained_programs.saving(self.saved, program, SAVED_EVERY)
        job = self.start([*command, "--epochs", 1_000_000, "--coordinator-wait", "60s"], RANKS)
        roles = Roles(RANKS, PS)
        self.kill(job, roles.workers[0], "worker 0 .* replaces the previous process")
        self.kill(job, roles.ps[1], "ps 1 .* has recovered")
        self.kill(job, roles.coordinator, "resumed from")
        self.wait_for_progress(job)
        self.wait_for_epoch(job, epochs)
        job.signal_launcher(signal.SIGUSR1)
        self.assertEqual(self.exit_code(job), REQUEUE, job.stderr)

        self.run_to_end([*command, "--workers", 2, "--resume", "--epochs", self.last_saved()])
        self.assert_only_evaluated(program)
        self.assertAlmostEqual(trained_programs.quality(program, summary), undisturbed, delta=trained_programs.QUALITY[program][2])

    def assert_only_evaluated(self, program):
        summary = self.summary()
        if program == "word2vec":  # was stopped within the epoch
            self.assertLess(summary["training"]["words"], summary["data"]["trained_words"])
        else:
            self.assertEqual(summary["training"]["examples"], 0)

    def last_saved(self):
        """Returns the epoch of the newest checkpoint, or 0."""
        names = [re.fullmatch(r"checkpoint-(\d+)", path.name) for path in self.saved.glob("checkpoint-*")]
        return max((int(name[1]) for name in names if name), default=0)

    def test_lr(self):
        self.check("lr")

    def test_fm(self):
        self.check("fm")

    def test_mf(self):
        self.check("mf")

    def test_mlp(self):
        self.check("mlp")

    def test_deepfm(self):
        self.check("deepfm")

    def test_dlrm(self):
        self.check("dlrm")

    def test_dcn(self):
        self.check("dcn")

    def test_word2vec(self):
        self.check("word2vec")


if __name__ == "__main__":
    main()
