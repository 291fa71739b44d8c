#!/usr/bin/env python3
"""Inconsistent ranks are rejected at the start with one message, and no rank keeps waiting."""
import pathlib
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import BIN, CAPSTAN, JobTest, main, names_parameters, train


class Refusal(JobTest):
    def assert_rejected(self, job, code, *parameters):
        """Checks that exactly one line of standard error names all of `parameters`."""
        self.assertEqual(self.exit_code(job), code, job.stderr)
        self.assertEqual(job.stdout, "")
        lines = [line for line in job.stderr.splitlines() if names_parameters(line, *parameters)]
        self.assertEqual(len(lines), 1, f"{parameters} in\n{job.stderr}")

    def test_two_ranks(self):
        for supervise in ("on", "off"):
            command = train(self.graph(), "--supervise", supervise)
            job = self.start(command, 2)
            self.assert_rejected(job, 2, "coordinator", "ps", "worker", "mpirun -np 4")

    def test_two_ranks_of_a_program_without_a_handler(self):
        job = self.start([BIN / "example_embedding"], 2)
        self.assertNotEqual(self.exit_code(job), 0)
        self.assert_names(job.stderr, "coordinator", "ps", "worker", "mpirun -np 4")

    def test_roles_that_exceed_the_ranks(self):
        job = self.start(train(self.graph(), "--ps", 2, "--workers", 3), 4)
        self.assert_rejected(job, 2, "4 ranks", "1 coordinator", "2 ps", "3 workers", "6 ranks")

    def test_rank_with_another_build(self):
        copy = self.directory / "capstan"
        shutil.copy(CAPSTAN, copy)
        with open(copy, "ab") as file:
            file.write(b"x")
        command = train(self.graph())
        job = self.start([*command, ":", "-n", 1, copy, *command[1:]], 3)
        self.assert_rejected(job, 2, "rank 3", "rank 0", "build")

    def test_rank_with_another_library(self):
        program = BIN / "example_hello"
        linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        library = re.search(r"(libcapstan\.so\S*) => (\S+)", linked)
        if not library:
            self.skipTest("the programs contain the library (BUILD_SHARED_LIBS=OFF)")
        copy = self.directory / library[1]
        shutil.copy(library[2], copy)
        with open(copy, "ab") as file:
            file.write(b"x")
        job = self.start([program, ":", "-n", 1, "env", f"LD_LIBRARY_PATH={self.directory}", program], 3)
        self.assertNotEqual(self.exit_code(job), 0)
        self.assert_names(job.stderr, "rank 3", "rank 0", "build")

    def test_ranks_with_different_roles(self):
        command = train(self.graph())
        job = self.start([*command, "--ps", 1, ":", "-n", 2, *command, "--ps", 2], 2)
        self.assert_rejected(job, 2, "rank 2", "ps=2", "rank 0", "ps=1")

    def test_rank_that_does_not_call_mpi_init(self):
        # The other ranks hang in MPI_Init, which has no timeout.
        script = 'case "$OMPI_COMM_WORLD_RANK$PMI_RANK" in 2) exec sleep 300;; esac; exec "$0" "$@"'
        job = self.start(["sh", "-c", script, *train(self.graph(), "--start-timeout", "1s")], 4)
        # MPICH's launcher kills the remaining rank and reports that.
        self.assertIn(self.exit_code(job), (4, signal.SIGKILL), job.stderr)
        self.assertRegex(job.stderr, r"MPI_Init\b.*\b\d+ s\b.*\b4 ranks\b")
        self.assert_names(job.stderr, "--start-timeout")

    def test_one_command_for_each_role(self):
        command = train(self.graph(), epochs=1)
        parts = [["--role", "coordinator"], [":", "-n", 2, *command, "--role", "ps"], [":", "-n", 2, *command, "--role", "worker"]]
        job = self.start([*command, *[word for part in parts for word in part]], 1)
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        self.assertIn("2 ps, 2 workers", job.stderr + job.stdout)
        job = self.start([*command, "--role", "ps", ":", "-n", 2, *command, "--role", "worker"], 1)
        self.assert_rejected(job, 2, "--role", "TF_CONFIG", "coordinator")

    def test_role_file(self):
        roles = self.directory / "roles"
        roles.write_text("0 chief\n1 ps\n* worker\n")
        job = self.start(train(self.graph(), "--role-file", roles, epochs=1), 4)
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        self.assertIn("1 ps, 2 workers", job.stderr + job.stdout)
        roles.write_text("0 chief\n1 ps\n9 worker\n")
        job = self.start(train(self.graph(), "--role-file", roles), 4)
        self.assert_rejected(job, 2, f"{roles}:3", "rank 9", "4 ranks")

    def test_reports_a_bad_command_line_once(self):
        self.assert_rejected(self.start(train(self.graph(), "--dims", 3), 4), 2, "--dims")

    def test_reports_missing_data_once(self):
        job = self.start(train(self.directory / "nowhere"), 4)
        self.assert_rejected(job, 2, "nowhere")
        self.assertNotIn("is dead", job.stderr)


if __name__ == "__main__":
    main()
