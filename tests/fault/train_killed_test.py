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
EVALUATED = r"epoch (\d+): test "  # once for each evaluation
REQUEUE = 85  # docs/errors.md


class TrainKilled(JobTest):
    environment = LONG_TIMEOUTS

    def wait_for_progress(self, job):
        """Waits until two more evaluations have ended: all ranks that training needs have connected."""
        before = len(self.evaluated(job))
        self.assertTrue(job.wait_for(lambda: len(self.evaluated(job)) >= before + 2), job.stderr)

    def kill(self, job, rank, recovered):
        self.wait_for_progress(job)
        os.kill(job.ranks()[rank][1], signal.SIGKILL)
        self.wait_for_stderr(job, recovered)

    def check(self, program):
        summary, saved = self.directory / "summary.json", self.directory / "saved"
        command = [CAPSTAN, "train", program, *trained_programs.options(program, self.directory), "--ps", PS, "--summary", summary]
        epochs = trained_programs.EPOCHS[program]
        self.run_to_end([*command, "--workers", 2, "--epochs", epochs])
        undisturbed = trained_programs.quality(program, summary)

        # Trains until the test stops it, after as many epochs at least.
        command += ["--eval-every", 5, "--checkpoint-every", 5, "--checkpoint-dir", saved]
        job = self.start([*command, "--epochs", 1_000_000, "--coordinator-wait", "60s"], RANKS)
        roles = Roles(RANKS, PS)
        self.kill(job, roles.workers[0], "worker 0 .* replaces the previous process")
        self.kill(job, roles.ps[1], "ps 1 .* has recovered")
        self.kill(job, roles.coordinator, "resumed from")
        self.wait_for_progress(job)
        self.assertTrue(job.wait_for(lambda: self.evaluated(job)[-1] >= epochs), job.stderr)
        job.signal_launcher(signal.SIGUSR1)
        self.assertEqual(self.exit_code(job), REQUEUE, job.stderr)

        self.run_to_end([*command, "--workers", 2, "--resume", "--epochs", self.last_saved(saved)])
        self.assertEqual(self.summary()["training"]["examples"], 0, "only evaluates")
        self.assertAlmostEqual(trained_programs.quality(program, summary), undisturbed, delta=trained_programs.QUALITY[program][2])

    @staticmethod
    def evaluated(job):
        """Returns the epochs that were evaluated, in the order of the log."""
        return [int(epoch) for epoch in re.findall(EVALUATED, job.stderr)]

    @staticmethod
    def last_saved(directory):
        return max(int(path.name.rpartition("-")[2]) for path in directory.glob("checkpoint-*"))

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


if __name__ == "__main__":
    main()
