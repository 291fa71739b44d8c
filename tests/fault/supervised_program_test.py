#!/usr/bin/env python3
"""A program that capstan-agent supervises: killed ranks are restarted by exec and keep their state; exit codes are the program's."""
# Tests: launch/agent.cpp
# Tests: src/cluster/bootstrap/start.cpp
import json
import os
import pathlib
import re
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import BIN, HOST, JobTest, Roles, child_of, main, status_of
from sums import SumsTest

AGENT = BIN / "capstan-agent"
PROGRAM = BIN / "under_agent"
RANKS, PS = 4, 1


class SupervisedProgram(JobTest):
    environment = SumsTest.environment

    def start_program(self, code, *options, ranks=RANKS):
        self.end = self.directory / "end"
        job = self.start([PROGRAM, self.end, code, *options], ranks)
        self.wait_for_stderr(job, "begins")
        return job

    def check_end(self, job, code):
        self.end.touch()
        self.assertEqual(self.exit_code(job), code, job.stdout + job.stderr)
        self.assertRegex(job.stdout, r"(?m)^counted \d+$")

    def kill_child(self, job, rank, returns):
        """Kills the program of a rank; waits until it `returns`, as another child of the same agent."""
        agent, child = job.ranks()[rank]
        os.kill(child, signal.SIGKILL)
        self.wait_for_stderr(job, rf"pid {child}, was killed by signal 9 \(Killed\); it is started again")
        self.wait_for_stderr(job, returns)
        self.assertNotEqual(child_of(agent), child)

    def test_worker_and_ps_are_restarted_with_their_state(self):
        job = self.start_program(0, f"--capstan-ps={PS}")
        for agent, child in job.ranks().values():
            self.assertEqual(status_of(agent)[0], "capstan-agent")
            self.assertEqual(len(os.listdir(f"/proc/{agent}/task")), 1, "threads of an agent")
            self.assertEqual(status_of(child)[0], PROGRAM.name)
        roles = Roles(RANKS, PS)
        self.kill_child(job, roles.workers[0], rf"worker 0 \(rank \d+ on {HOST}\) replaces the previous process")
        self.kill_child(job, roles.ps[0], rf"ps 0 \(rank {roles.ps[0]} on {HOST}\) has recovered")
        self.kill_child(job, roles.workers[1], rf"worker 1 \(rank \d+ on {HOST}\) replaces the previous process")
        self.check_end(job, 0)

    def test_exit_code_of_the_coordinator_is_that_of_the_job(self):
        job = self.start_program(7, f"--capstan-ps={PS}")
        self.check_end(job, 7)

    def test_termination_signal_ends_the_job(self):
        job = self.start_program(0, f"--capstan-ps={PS}")
        job.signal_launcher(signal.SIGTERM)
        self.assertNotEqual(self.exit_code(job), 0, job.stderr)

    def test_settings_of_arguments_reach_agent_and_program(self):
        job = self.start_program(0, f"--capstan-ps={PS}", "--capstan-max-restarts=0")
        agent, child = job.ranks()[Roles(RANKS, PS).workers[0]]
        arguments = pathlib.Path(f"/proc/{agent}/cmdline").read_text().split("\0")
        self.assertEqual(arguments[1:2], ["--"], "a flag here would be the setting of the program, which the argument overrides")
        os.kill(child, signal.SIGKILL)
        self.wait_for_stderr(job, rf"pid {child}, was killed by signal 9 \(Killed\); its work goes on elsewhere")
        self.check_end(job, 0)

    def test_single_process_has_no_agent(self):
        job = self.start_program(5, ranks=0)
        self.assertEqual(status_of(job.command.pid)[0], PROGRAM.name)
        self.assertEqual(len(job.processes()), 1)
        self.check_end(job, 5)

    def test_program_that_does_not_exist(self):
        job = self.start([AGENT, "--", "/nowhere/program"], 2)
        self.assertEqual(self.exit_code(job), 127, job.stderr)
        self.assertIn("cannot start /nowhere/program: No such file", job.stderr)

    def test_program_that_ends_before_it_joins(self):
        # Without a launcher: mpirun may hang if a rank dies while it connects (docs/failures.md).
        cluster = {"chief": ["127.0.0.1:1"], "ps": ["127.0.0.1:2"], "worker": ["127.0.0.1:3"]}
        task = {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 0}})}
        job = self.start([AGENT, "--", "sh", "-c", "exit 9"], env=task)
        self.assertEqual(self.exit_code(job), 9, job.stderr)
        job = self.start([AGENT, "--", "true"], env=task)
        self.assertEqual(self.exit_code(job), 3, job.stderr)
        self.assertRegex(job.stderr, r"worker 0 at 127.0.0.1:3, pid \d+, ended with exit code 0 before it had joined the job")

    def test_usage(self):
        job = self.run_to_end([AGENT, "--help"])
        self.assertIn("PROGRAM", job.stdout)
        job = self.start([AGENT, "--no-such-setting=1", "--", "true"])
        self.assertEqual(self.exit_code(job), 2)
        self.assertIn("no-such-setting", job.stderr)
        job = self.start([AGENT])
        self.assertEqual(self.exit_code(job), 2)


class SumsUnderTheAgent(SumsTest):
    """Programs without code for the agent, which the command line starts instead."""

    def test_sums_are_exact_after_kills(self):
        job = self.start_sums(5, "--capstan-ps=2", "--capstan-max-restarts=20", microseconds=600, under=[AGENT, "--"])
        roles, ranks = Roles(5, 2), job.ranks()
        for rank, returns in ((roles.ps[1], r"ps 1 .* has recovered"), (roles.workers[0], r"worker 0 .* replaces the previous process")):
            self.wait_until_connected(job)
            os.kill(child_of(ranks[rank][0]), signal.SIGKILL)
            self.wait_for_stderr(job, returns)
        self.wait_until_connected(job)
        self.assert_exact(job)

    def test_coordinator_is_restarted(self):
        end = self.directory / "end"
        job = self.start([AGENT, "--", BIN / "steps_until_death", end, 150, 1500, "--capstan-ps=1",
                          "--capstan-coordinator-wait=40s", "--capstan-max-restarts=2"], 4)
        self.wait_for_stderr(job, "recorded")
        os.kill(job.ranks()[0][1], signal.SIGKILL)
        self.wait_for_stderr(job, r"begins after step [1-9]\d*\n(.*\n)*.*recorded")
        end.touch()
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        figures = dict(re.findall(r"^(\w+) (\S+)$", job.stdout, re.MULTILINE))
        self.assertEqual(figures["recovered"], "1")
        self.assertEqual(int(figures["counter"]), int(figures["steps"]) * 150)


if __name__ == "__main__":
    main()
