#!/usr/bin/env python3
"""Runs the `capstan` program and checks exit codes and output. Arguments: program, source directory, mpiexec."""
# Tests: io/hdf5/version.cpp
# Tests: launch/failure.cpp
# Tests: launch/main.cpp
# Tests: launch/version.cpp
# Tests: src/mpi/version.cpp
# Tests: src/transport/ucx/version.cpp
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import open_mpi  # sets the environment of mpirun

PROGRAM, SOURCE, MPIEXEC = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]


def run(*arguments, env=None, ranks=0):
    command = [PROGRAM, *arguments]
    if ranks:
        command = [MPIEXEC, "-n", str(ranks), *command]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CAPSTAN_")}
    return subprocess.run(command, env={**clean, **(env or {})}, capture_output=True, text=True, timeout=50)


class Program(unittest.TestCase):
    def refused(self, done, code, *texts):
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        for text in ("capstan: ", *texts):
            self.assertIn(text, done.stderr)
        self.assertEqual(done.stderr.count("capstan: "), 1, done.stderr)

    def test_settings_prints_values_and_origins(self):
        with tempfile.TemporaryDirectory() as directory:
            config = pathlib.Path(directory, "run.toml")
            config.write_text("[kge]\nepochs = 9\ndim = 1\n")
            done = run("settings", "--dim", "64", env={"CAPSTAN_BATCH": "32", "CAPSTAN_CONFIG": str(config)})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("dim = 64 floats  (from: flag)", done.stdout)
        self.assertIn("batch = 32 examples  (from: environment)", done.stdout)
        self.assertIn(f"epochs = 9 epochs  (from: {config}:2)", done.stdout)
        self.assertIn("push-ring-bytes = 1MiB  (from: default)", done.stdout)
        self.assertIn("CAPSTAN_PUSH_RING_BYTES", done.stdout)

    def test_docs_settings_md_equals_the_output(self):
        done = run("settings", "--markdown", env={"CAPSTAN_DIM": "3"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(done.stdout.count("\n"), 20)
        page = (SOURCE / "docs" / "settings.md").read_text()
        self.assertTrue(page.endswith(done.stdout), "docs/settings.md must end with `capstan settings --markdown`")

    def test_version_names_commit_and_libraries(self):
        done = run("--version")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^capstan \d+\.\d+\.\d+ \(commit [0-9a-z]+, \w+\)\n")
        self.assertRegex(done.stdout, r"MPI .*runs with \S+")
        self.assertRegex(done.stdout, r"UCX +built with \d+\.\d+")
        self.assertRegex(done.stdout, r"HDF5 +built with \d+\.\d+")

    def test_settings_reach_the_training(self):
        done = run("train", "kge", "--dim", "7", "--model=transe", "--resume", env={"CAPSTAN_SEED": "5"})
        self.assertEqual(done.returncode, 0, done.stderr)
        first, settings = done.stdout.splitlines()
        self.assertEqual(first, "kge")
        settings = json.loads(settings)
        self.assertEqual([settings[name] for name in ("dim", "model", "resume", "seed", "wait-timeout")],
                         [7, "transe", True, 5, "60s"])

    def test_unknown_option(self):
        self.refused(run("train", "kge", "--dims", "3"), 2, "--dims", "did you mean --dim?", "hint: ")
        self.refused(run("--dims"), 2, "--dims")

    def test_unknown_command(self):
        self.refused(run("trian"), 2, "trian", "did you mean train?")
        self.refused(run(), 2, "a command is missing")

    def test_zero_and_negative_sizes(self):
        for option in ("--dim", "--batch", "--negatives", "--epochs", "--slice-batches"):
            for value in ("0", "-5"):
                self.refused(run("train", "kge", option, value), 2, option, "of at least 1", f'"{value}"')

    def test_unknown_or_bad_environment_variable(self):
        self.refused(run("train", "kge", env={"CAPSTAN_DIMS": "3"}), 2, "CAPSTAN_DIMS", "did you mean CAPSTAN_DIM?")
        self.refused(run("settings", env={"CAPSTAN_WAIT_TIMEOUT": "60"}), 2, "CAPSTAN_WAIT_TIMEOUT", '"60"', "30s")

    def test_bad_config_file(self):
        with tempfile.TemporaryDirectory() as directory:
            config = pathlib.Path(directory, "run.toml")
            for text, line, message in (("dim = \n", 1, "invalid TOML"), ("\ndims = 3\n", 2, "did you mean dim?"),
                                        ("dim = '3'\n", 1, "must be an integer"), ("[kge]\ndim = 0\n", 2, "at least 1")):
                config.write_text(text)
                self.refused(run("train", "kge", "--config", str(config)), 2, f"{config}:{line}", message)
        self.refused(run("settings", "--config", "/nowhere.toml"), 2, "--config /nowhere.toml", "No such file")

    def test_each_error_has_its_exit_code(self):
        for number, code in ((3, 2), (4, 4), (5, 2), (7, 3), (8, 3), (9, 2), (13, 3), (14, 4), (15, 5), (10, 1), (-1, 1)):
            done = run("train", "kge", env={"CAPSTAN_TESTS_THROW": str(number)})
            self.refused(done, code, "thrown by the test")
        self.assertIn("--resume", run("train", "kge", env={"CAPSTAN_TESTS_THROW": "14"}).stderr)

    def test_rank_zero_reports_common_failures(self):
        for variable in ("PMI_RANK", "PMIX_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"):
            done = run("train", "kge", "--dims", "3", env={variable: "1"})
            self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", ""))
            self.assertEqual(run("settings", env={variable: "1"}).stdout, "")
        own = run("train", "kge", env={"PMI_RANK": "1", "CAPSTAN_TESTS_THROW": "13"})
        self.refused(own, 3, "capstan: rank 1: thrown by the test")

    def test_prints_one_message_under_mpirun(self):
        for _ in range(3):
            done = run("train", "kge", "--dims", "3", ranks=3)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(len(re.findall("there is no such option", done.stderr)), 1, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
