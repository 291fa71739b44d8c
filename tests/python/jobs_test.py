#!/usr/bin/env python3
"""Jobs of Python programs: several ranks, and ranks that are killed. The updates of each function count exactly once.

CAPSTAN_TESTS_PYTHON is the interpreter for the package, and CAPSTAN_TESTS_PACKAGE the directory of the package.
"""
import json
import os
import pathlib
import random
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from addresses import free_addresses
from job import CAPSTAN, JobTest, Roles, main

PYTHON = os.environ.get("CAPSTAN_TESTS_PYTHON", sys.executable)
PROGRAMS = pathlib.Path(__file__).parent / "programs"
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples/python"
RANKS, PS, ROUNDS = 5, 2, 12
ROLES = Roles(RANKS, PS)


class PythonJobs(JobTest):
    environment = {"PYTHONPATH": os.environ.get("CAPSTAN_TESTS_PACKAGE", ""), "OPENBLAS_NUM_THREADS": "2"}

    def start_sums(self, *options):
        return self.start([PYTHON, PROGRAMS / "sums.py", ROUNDS, f"--capstan-ps={PS}", *options], RANKS)

    def wait_for_round(self, job, number):
        self.assertTrue(job.wait_for(lambda: f"round {number}\n" in job.stdout), f"no round {number}: {job.stdout}{job.stderr}")

    def assert_sums_are_right(self, job):
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        self.assertTrue(job.stdout.endswith("sums are right\n"), job.stdout + job.stderr)

    def test_healthy_ranks(self):
        job = self.start_sums()
        self.assert_sums_are_right(job)
        self.assertEqual(job.stdout.count("round"), ROUNDS)
        self.assertEqual(job.warnings(), [])

    def test_killed_workers(self):
        generator = random.Random(1)
        job = self.start_sums()
        for number in (1, 4, 7):
            self.wait_for_round(job, number)
            os.kill(job.ranks()[generator.choice(ROLES.workers)][1], signal.SIGKILL)
        self.assert_sums_are_right(job)

    def test_killed_ps(self):
        job = self.start_sums()
        for number, rank in ((1, ROLES.ps[0]), (5, ROLES.ps[1])):
            self.wait_for_round(job, number)
            os.kill(job.ranks()[rank][1], signal.SIGKILL)
        self.assert_sums_are_right(job)

    def test_killed_coordinator(self):
        job = self.start_sums("--capstan-coordinator-wait=30s")
        self.wait_for_round(job, 3)
        os.kill(job.ranks()[0][1], signal.SIGKILL)
        self.assert_sums_are_right(job)

    def test_messages_without_agents(self):
        self.assert_sums_are_right(self.start_sums("--capstan-supervise=off", "--capstan-window=am"))

    def test_capstan_run(self):
        command = [CAPSTAN, "run", "--ps", PS, "--workers", 2, "--", PYTHON, PROGRAMS / "sums.py", 3]
        self.assertIn("sums are right", self.run_to_end(command).stdout)

    def test_tf_config(self):
        free = free_addresses(4)
        hosts = {"chief": free[:1], "worker": free[1:3], "ps": free[3:]}
        tasks = [(kind, index) for kind, addresses in hosts.items() for index in range(len(addresses))]
        commands = []
        for kind, index in tasks:
            config = json.dumps({"cluster": hosts, "task": {"type": kind, "index": index}})
            commands.append(f"TF_CONFIG='{config}' '{PYTHON}' '{PROGRAMS / 'sums.py'}' 3")
        job = self.run_to_end(["sh", "-c", " & ".join(commands) + " & wait"])
        self.assertIn("sums are right", job.stdout, job.stderr)

    def test_examples(self):
        for name, ranks, line in (("hello", 4, "w is 55.0 55.0 55.0"), ("parameter_server_training", 5, "Evaluation accuracy: ")):
            for launched in (ranks, 0):
                with self.subTest(name=name, ranks=launched):
                    self.assertIn(line, self.run_to_end([PYTHON, EXAMPLES / f"{name}.py"], launched).stdout)

    def test_an_exception_ends_the_job(self):
        job = self.start([PYTHON, PROGRAMS / "sums.py", "three"], 4)
        self.assertNotEqual(self.exit_code(job), 0)
        self.assertIn("ValueError: invalid literal", job.stderr)

    def test_control_c_ends_the_job(self):
        job = self.start([PYTHON, PROGRAMS / "sums.py", 100_000, f"--capstan-ps={PS}"], RANKS)
        self.wait_for_round(job, 2)
        job.press_control_c()
        self.assertNotEqual(self.exit_code(job), 0)

    def test_rejects_functions_that_differ_between_ranks(self):
        job = self.run_to_end([PYTHON, PROGRAMS / "other_sources.py"], 3)
        different, missing = job.stdout.splitlines()
        self.assertIn("__main__.step differs between the coordinator and this worker", different)
        self.assertIn("later: not found on this worker", missing)
        self.assertIn("above Server.join", missing)


if __name__ == "__main__":
    main()
