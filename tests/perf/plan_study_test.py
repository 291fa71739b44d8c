#!/usr/bin/env python3
"""perf/plan_study.py: plans, lines that coincide, and the expected loss to failures."""
import math
import pathlib
import subprocess
import sys
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
sys.path.insert(0, str(ROOT / "perf"))
from job import BIN, JobTest, main
import failure_loss
import plan_study


class PlanStudy(JobTest):
    def test_reads_a_plan(self):
        found = plan_study.plan(BIN / "capstan", ["--workers", 4, "--ps", 2])
        self.assertEqual((found["workers"], found["ps"]), (4, 2))
        self.assertGreaterEqual(found["step_seconds"] * 1.01, max(found["least_step_seconds"].values()))

    def test_names_a_command_that_fails(self):
        with self.assertRaisesRegex(RuntimeError, "--workers"):
            plan_study.plan(BIN / "capstan", ["--workers", 0])

    def test_script_reports_an_absent_program(self):
        job = subprocess.run([sys.executable, "-B", ROOT / "perf" / "plan_study.py", "--build", self.directory], capture_output=True,
                             text=True)
        self.assertEqual(job.returncode, 1, job.stderr)
        self.assertIn(str(self.directory / "bin" / "capstan"), job.stderr)


class Lines(JobTest):
    def test_joins_lines_that_coincide_everywhere(self):
        lines = {"a": [1.0, 2.0], "b": [1.01, 2.02], "c": [1.0, 3.0]}
        self.assertEqual(plan_study.join_coinciding(lines), {"a; b": [1.0, 2.0], "c": [1.0, 3.0]})


class FailureLoss(JobTest):
    def test_rate_of_the_source(self):
        self.assertAlmostEqual(failure_loss.HOST_FAILURES_PER_SECOND * 2048 * 54 * 86400, 419)

    def test_checkpoint_loss_is_near_young_for_rare_failures(self):
        rate, save = 1e-8, 10
        self.assertAlmostEqual(failure_loss.checkpoint_loss(rate, save, 0) / math.sqrt(2 * save * rate), 1, delta=0.01)
        self.assertEqual(failure_loss.checkpoint_loss(0, save, 600), 0)

    def test_no_other_interval_loses_less(self):
        rate, save, restart = 4e-4, 26, 600
        best = failure_loss.checkpoint_loss(rate, save, restart)
        interval = failure_loss.best_interval(rate, save)
        self.assertAlmostEqual(failure_loss.loss_of_interval(rate, save, restart, interval), best)
        for factor in (0.5, 0.8, 1.25, 2):
            self.assertGreater(failure_loss.loss_of_interval(rate, save, restart, factor * interval), best)

    def test_stays_below_one_if_failures_are_frequent(self):
        loss = failure_loss.checkpoint_loss(1 / 30, 60, 600)
        self.assertGreater(loss, 0.99)
        self.assertLessEqual(loss, 1)

    def test_save_is_bound_by_ps_or_file_system(self):
        table = failure_loss.TABLE_BYTES
        self.assertAlmostEqual(failure_loss.save_seconds(1), table / failure_loss.PS_WRITE_RATE)
        self.assertAlmostEqual(failure_loss.save_seconds(1000), table / failure_loss.FILE_SYSTEM_RATE)

    def test_schemes_are_ordered(self):
        for workers, ps in ((80, 3), (900, 50), (9000, 550)):
            losses = [failure_loss.expected_loss(scheme, workers, ps) for scheme in
                      ("job ends", "synchronous", "asynchronous", "replicas")]
            self.assertEqual(losses, sorted(losses, reverse=True))
            self.assertGreater(losses[-1], 0)
        with self.assertRaises(KeyError):
            failure_loss.expected_loss("no such scheme", 80, 3)

    def test_replicas_lose_planned_restarts_without_failures(self):
        with unittest.mock.patch.object(failure_loss, "HOST_FAILURES_PER_SECOND", 0):
            self.assertAlmostEqual(failure_loss.expected_loss("replicas", 80, 3), failure_loss.RESTART / failure_loss.RENEWAL)
            self.assertEqual(failure_loss.expected_loss("asynchronous", 80, 3), 0)


if __name__ == "__main__":
    main()
