#!/usr/bin/env python3
"""On a signal, or shortly before the time limit of a Slurm job, a training saves, also during an epoch, and exits with 85; --resume
continues from that checkpoint."""
import json
import os
import pathlib
import re
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import CAPSTAN, LEARNED_MRR, MPIEXEC, TRAINING_OUTPUT, JobTest, main, train
from small_models import write_libsvm

REQUEUE = 85  # docs/errors.md
FOREVER = 1_000_000


class Requeue(JobTest):
    def setUp(self):
        super().setUp()
        self.checkpoints = self.directory / "checkpoints"
        self.summary_path = self.directory / "summary.json"

    def options(self, *more):
        return ["--checkpoint-dir", self.checkpoints, "--checkpoint-every", 1_000_000, "--summary", self.summary_path, *more]

    def graph_training(self, *more, epochs):
        return train(self.graph(), "--eval-every", 10, "--slice-batches", 1, *self.options(*more), epochs=epochs)

    def saved(self):
        """Returns the user state of the newest checkpoint."""
        newest = sorted(self.checkpoints.glob("checkpoint-*"))[-1]
        return json.loads((newest / "manifest.json").read_text())["user_state"]

    def stop_by_signal(self, job, number=signal.SIGUSR1, text=TRAINING_OUTPUT):
        self.assertTrue(job.wait_for_text(text), job.stderr)
        os.kill(job.command.pid, number)
        self.assertEqual(self.exit_code(job), REQUEUE, job.stderr)
        self.assertRegex(job.stderr, r"capstan: .*: saved \S+/checkpoint-\d+;.* --resume")
        self.assertEqual(job.stdout, "")

    def resume(self, saved, launcher_ranks, *more):
        """Resumes for 300 more epochs, in each of which every triple must count once."""
        epochs = saved["epoch"] + 300
        job = self.run_to_end(self.graph_training("--resume", *more, epochs=epochs), launcher_ranks)
        begun = saved.get("begun", 0)
        summary = self.summary()
        self.assertEqual(summary["training"]["triples"], 300 * summary["data"]["train"] - begun)
        self.assertEqual(summary["training"]["first_epoch"], saved["epoch"] + 1)
        self.assertIn(f"after epoch {saved['epoch']}" + (f" and {begun} triples" if begun else ""), job.stderr)
        self.assertGreater(summary["test"]["mrr"], LEARNED_MRR)

    def test_saves_and_exits_on_a_signal_to_all_ranks(self):
        job = self.start(self.graph_training("--ps", 2, epochs=FOREVER), 5)
        self.stop_by_signal(job)
        self.resume(self.saved(), 4, "--ps", 1)

    def test_saves_and_exits_on_a_signal_to_one_process(self):
        job = self.start(self.graph_training("--save-signal", "USR2", epochs=FOREVER))
        self.stop_by_signal(job, signal.SIGUSR2)
        self.resume(self.saved(), 0)

    def test_resumes_repeatedly(self):
        job = self.start(self.graph_training(epochs=FOREVER), 3)
        self.stop_by_signal(job)
        before = self.saved()
        job = self.start(self.graph_training("--resume", epochs=FOREVER), 3)
        self.stop_by_signal(job)
        after = self.saved()
        self.assertGreater((after["epoch"], after.get("begun", 0)), (before["epoch"], before.get("begun", 0)))

    def test_capstan_run_forwards_the_exit_code(self):
        command = [CAPSTAN, "run", "--mpirun", MPIEXEC, "--ps", 1, "--workers", 1, "--"]
        job = self.start([*command, *self.graph_training(epochs=FOREVER)])
        self.stop_by_signal(job)
        self.assertIn("with exit code 85: ", job.stderr)

    def test_other_models_stop_at_the_end_of_an_epoch(self):
        data = self.directory / "train.txt"
        write_libsvm(data, 200)
        command = [CAPSTAN, "train", "lr", "--data", data, *self.options()]
        job = self.start([*command, "--epochs", FOREVER], 4)
        self.stop_by_signal(job, text="epoch 20:")
        done = self.saved()["epoch"]
        self.assertGreaterEqual(done, 20)
        self.run_to_end([*command, "--epochs", done + 5, "--resume"], 3)
        self.assertEqual(self.summary()["training"]["first_epoch"], done + 1)

    def test_continues_without_a_checkpoint_directory(self):
        job = self.start(train(self.graph(), "--eval-every", 10, epochs=FOREVER), 3)
        self.assertTrue(job.wait_for_text(TRAINING_OUTPUT), job.stderr)
        os.kill(job.command.pid, signal.SIGUSR1)
        goes_on = rf"(?s)--checkpoint-dir is not set; the training continues(.*{TRAINING_OUTPUT}){{3}}"
        self.assertTrue(job.wait_for_text(goes_on), job.stderr)
        job.signal_launcher(signal.SIGTERM)
        self.assertNotIn(self.exit_code(job), (0, REQUEUE), job.stderr)
        self.assertNotIn(": saved ", job.stderr)

    def slurm(self, answer):
        """Installs a squeue that executes `answer`; returns the environment of a Slurm job. (mpirun would use a complete Slurm.)"""
        tool = self.directory / "bin" / "squeue"
        tool.parent.mkdir()
        tool.write_text(f'#!/bin/sh\n[ "$*" = "-h -j 7 -o %L" ] || exit 1\n{answer}\n')
        tool.chmod(0o755)
        return {"PATH": f"{tool.parent}:{os.environ['PATH']}", "SLURM_JOB_ID": "7"}

    def test_saves_before_the_limit_of_a_slurm_job(self):
        environment = {**self.slurm("echo 1:40"), "CAPSTAN_SAVE_BEFORE_LIMIT": "120s"}
        began = time.monotonic()
        job = self.start(self.graph_training(epochs=FOREVER), env=environment)
        self.assertEqual(self.exit_code(job), REQUEUE, job.stderr)
        left = re.search(r"capstan: (\d+) s of the job's time are left: saved ", job.stderr)
        self.assertTrue(99 - (job.gone_at - began) <= int(left[1]) <= 100, job.stderr)
        saved = self.saved()
        self.assertGreater(saved.get("begun", 0), 0, "each run makes progress")
        job = self.start(self.graph_training("--resume", epochs=FOREVER), env=environment)
        self.assertEqual(self.exit_code(job), REQUEUE, job.stderr)
        self.assertGreater(self.saved().get("begun", 0), saved["begun"])

    def test_continues_while_time_is_left(self):
        job = self.start(self.graph_training("--save-before-limit", "90s", epochs=20), env=self.slurm("echo 10:00"))
        self.assertEqual(self.exit_code(job), 0, job.stderr)

    def test_continues_if_squeue_fails(self):
        job = self.start(self.graph_training(epochs=20), env=self.slurm("exit 1"))
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        self.assertIn("--save-before-limit", job.stderr)

    def test_environment_variable_replaces_squeue(self):
        job = self.start(self.graph_training(epochs=FOREVER), env={**self.slurm("exit 1"), "SLURM_JOB_END_TIME": "1000"})
        self.assertEqual(self.exit_code(job), REQUEUE, job.stderr)
        self.assertIn("0 s of the job's time are left", job.stderr)


if __name__ == "__main__":
    main()
