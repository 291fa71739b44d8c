#!/usr/bin/env python3
"""The programs of examples/ on small data with an independent solution: Newton's method, or the known truth of the data."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import BIN, JobTest, main
from small_models import newton, write_libsvm, write_pictures

LAMBDA = 1e-4  # the penalty of example_logistic_regression


class Examples(JobTest):
    def test_hello(self):
        for ranks in (0, 4):
            job = self.run_to_end([BIN / "example_hello"], ranks)
            self.assertIn("w is 55 55 55\n", job.stdout)

    def regression(self, mode, ranks, rows):
        path = self.directory / "train.txt"
        optimum = newton(write_libsvm(path, rows), 6, LAMBDA)
        job = self.run_to_end([BIN / "example_logistic_regression", mode, path, path], ranks)
        values = [float(x) for x in re.findall(r"^\d+ steps: objective ([\d.]+),", job.stdout, re.M)]
        accuracy = float(re.search(r"^test accuracy ([\d.]+)$", job.stdout, re.M)[1])
        self.assertGreater(accuracy, 0.7)
        return values[-1] - optimum

    def test_synchronous_regression_reaches_the_optimum(self):
        # 301 examples cannot be divided evenly between two workers.
        for ranks in (0, 4):
            above = self.regression("synchronous", ranks, 301)
            self.assertLess(abs(above), 1e-6)

    def test_asynchronous_regression_approaches_the_optimum(self):
        above = self.regression("asynchronous", 4, 1000)
        self.assertGreater(above, -1e-9)
        self.assertLess(above, 0.005)

    def test_stale_synchronous(self):
        job = self.run_to_end([BIN / "example_stale_synchronous"], 5)
        found = re.search(r"^3 workers, at most (\d) steps ahead, largest error (\S+)$", job.stdout, re.M)
        self.assertEqual(found[1], "2")  # the bound, which fast workers reach
        self.assertLess(float(found[2]), 1e-4)

    def test_mlp(self):
        files = write_pictures(self.directory)
        for ranks, replicas in ((3, 2), (4, 1)):
            job = self.run_to_end([BIN / "example_mlp", 2, *files, f"--capstan-replicas={replicas}"], ranks)
            rounds = re.findall(r"^\d+ steps: test loss ([\d.]+), accuracy ([\d.]+)$", job.stdout, re.M)
            losses = [float(loss) for loss, _ in rounds]
            self.assertLess(losses[0], 0.5)  # random guessing has 2.3
            self.assertLess(losses[1], losses[0])
            self.assertGreater(float(rounds[1][1]), 0.95)

    def assert_rejected(self, *texts, command, ranks=(0,)):
        for count in ranks:
            job = self.start([BIN / command[0], *command[1:]], count)
            self.assertEqual(self.exit_code(job), 2, job.stderr)
            for text in texts:
                self.assertIn(text, job.stderr)
            self.assertNotIn("terminate called", job.stderr)

    def test_each_program_has_help_and_rejects_unknown_options(self):
        programs = sorted([*BIN.glob("example_*"), *BIN.glob("tutorial_step*")])
        self.assertEqual(len(programs), 11)
        for program in programs:
            with self.subTest(program=program.name):
                self.assertIn(f"usage: {program.name} [OPTIONS]", self.run_to_end([program, "--help"], 0).stdout)
                job = self.start([program, "--no-such"], 0)
                self.assertEqual(self.exit_code(job), 2, job.stderr)
                self.assertIn("unknown option --no-such", job.stderr)

    def test_rejects_bad_input(self):
        path, missing = self.directory / "train.txt", self.directory / "missing"
        write_libsvm(path, 20)
        regression, mlp = "example_logistic_regression", "example_mlp"
        usage = "expected synchronous|asynchronous TRAIN_FILE TEST_FILE"
        self.assert_rejected(usage, command=[regression, "sync", path, path], ranks=(0, 3))
        self.assert_rejected(usage, command=[regression])
        self.assert_rejected(str(missing), command=[regression, "synchronous", path, missing], ranks=(0, 3))
        images = [path] * 4
        self.assert_rejected("expected ROUNDS and IDX files", command=[mlp, "all", *images])
        self.assert_rejected(str(path), "not an IDX file", command=[mlp, 1, *images])


if __name__ == "__main__":
    main()
