#!/usr/bin/env python3
"""A ps and its agent are killed: without a spare, the job ends with an error; a spare restores the shards from the last checkpoint.

mpirun ends a job if one of its child processes dies from a signal, so a shell starts each rank.
"""
import math
import os
import pathlib
import re
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from gpu import gpu_flags
from job import BIN, HOST, LONG_TIMEOUTS, SECONDS_TO_END, JobTest, agent_of, child_of, main, in_shell
from sums import ON_GPU, Connected

CLOSURES = 300
RANKS = 6  # with one spare: coordinator, two workers, spare, two ps


def name(role, index, rank):
    return rf"{role} {index} \(rank {rank} on {HOST}\)"


class PsLost(Connected, JobTest):
    environment = LONG_TIMEOUTS

    def begin(self, *options, spares=1, closures=CLOSURES, microseconds=0, losses=1, ranks=RANKS, saved=True, wait="300ms", words=(), env=None):
        directory = self.directory / "checkpoints" if saved else "-"
        options = ["--capstan-ps=2", f"--capstan-spares={spares}", f"--capstan-ps-wait={wait}", *options]
        job = self.start(in_shell([BIN / "ps_lost", directory, closures, microseconds, losses, *words, *options]), ranks, env=env)
        self.wait_for_stderr(job, "kill 0")
        return job

    def lose(self, job, rank):
        """Kills the agent, and with it the ps."""
        os.kill(agent_of(job, rank), signal.SIGKILL)

    def sums(self, job):
        lines = dict(line.split(" ", 1) for line in job.stdout.splitlines() if re.match(r"ps\d ", line))
        return {ps: [float(word) for word in lines[ps].split()] for ps in ("ps0", "ps1")}

    def assert_sums(self, ps, sums, count):
        """Checks the rows, the variable with a slot, and the counter after `count` pushes of 1."""
        adagrad = sum(1 / math.sqrt(0.1 + i + 1) for i in range(count))
        self.assertEqual([sums[0], sums[2]], [count, count], ps)
        self.assertAlmostEqual(sums[1], adagrad, delta=1e-3, msg=ps)

    def assert_unavailable(self, job, pattern):
        began = time.monotonic()
        self.wait_for_stderr(job, f"unavailable: {pattern}")
        self.assertLess(time.monotonic() - began, SECONDS_TO_END)
        self.assertEqual(self.exit_code(job, SECONDS_TO_END), 4, job.stderr)

    def test_without_a_spare_the_job_ends_and_names_the_ps(self):
        job = self.begin(spares=0, ranks=5, wait="1s")
        self.lose(job, 4)
        self.assert_unavailable(job, rf"{name('ps', 1, 4)} is dead, its shards are lost, and it has not recovered within 1000 ms")

    def takes_over(self, *options, env=None):
        job = self.begin(*options, env=env)
        self.lose(job, 5)
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        lost, spare = name("ps", 1, 5), name("spare", 0, 3)
        self.assertRegex(job.stderr, rf"{lost} is lost; {spare} takes its shards over from checkpoint \S+/checkpoint-0*1 \(step 1\)")
        self.assertRegex(job.stdout, rf"{spare}, now ps 1\n")
        # Only pushes to that ps after the checkpoint are lost.
        sums = self.sums(job)
        self.assert_sums("ps0", sums["ps0"], 3 * CLOSURES)
        self.assert_sums("ps1", sums["ps1"], 2 * CLOSURES)
        self.assertEqual(len(list((self.directory / "checkpoints").glob("checkpoint-0*2"))), 1)

    def test_spare_restores_the_last_checkpoint(self):
        self.takes_over()

    def test_with_shards_in_gpu_memory(self):
        self.takes_over(*gpu_flags(prefix="--capstan-"), env=ON_GPU)

    def test_counter_is_read_again_after_failover(self):
        job = self.begin(words=["read"])
        self.lose(job, 5)
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        self.assertIn(f"read {CLOSURES}\n", job.stdout)
        self.assert_sums("ps1", self.sums(job)["ps1"], 2 * CLOSURES)

    def test_by_active_messages(self):
        self.takes_over("--capstan-window=am", "--capstan-ps-restart=off")

    def test_successive_losses_while_functions_run(self):
        # Ranks 3 and 4 are spares. The agent of ps 1 is too late, and the ps that it restarts is rejected. A worker dies; its
        # next process connects to the new ps 1. The spare that has become ps 1 dies and is restarted; then it is lost with
        # its agent.
        self.one_after_the_other()

    def one_after_the_other(self, *options, closures=100):
        end = self.directory / "end"
        # Long enough that a restarted ps returns before it counts as lost.
        job = self.begin(*options, spares=2, ranks=7, closures=closures, microseconds=1000, losses=end, wait="8s")
        lost, old = name("ps", 1, 6), agent_of(job, 6)
        self.wait_for_stderr(job, "reached 1")
        os.kill(old, signal.SIGSTOP)
        os.kill(child_of(old), signal.SIGKILL)
        self.wait_for_stderr(job, rf"{lost} is lost; {name('spare', 0, 3)} takes(.*\n)+.*{lost} has recovered")
        os.kill(old, signal.SIGCONT)
        self.wait_for_stderr(job, rf"{lost}, pid \d+, is told to end: a spare has its place")
        self.wait_until_connected(job)
        os.kill(child_of(agent_of(job, 1)), signal.SIGKILL)
        self.wait_for_stderr(job, r"worker 0 .* replaces the previous process")
        self.wait_until_connected(job)
        os.kill(child_of(agent_of(job, 3)), signal.SIGKILL)
        self.wait_for_stderr(job, rf"({lost} has recovered(.*\n)+.*){{2}}")
        self.wait_until_connected(job)
        self.lose(job, 3)
        self.wait_for_stderr(job, rf"{lost} is lost; {name('spare', 1, 4)} takes(.*\n)+.*{lost} has recovered")
        end.touch()
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        self.assertRegex(job.stdout, rf"{name('spare', 0, 3)} is lost\n{name('spare', 1, 4)}, now ps 1\n")
        sums, scheduled = self.sums(job), int(re.search(r"scheduled (\d+)", job.stdout)[1])
        self.assert_sums("ps0", sums["ps0"], scheduled)
        for sum in (sums["ps1"][0], sums["ps1"][2]):
            self.assertGreaterEqual(sum, closures)
            self.assertLess(sum, scheduled)

    def test_job_ends_if_no_spare_is_left(self):
        job = self.begin()
        self.lose(job, 3)
        self.wait_for_stderr(job, rf"{name('spare', 0, 3)} is dead; idle spares: 0")
        self.lose(job, 5)
        self.assert_unavailable(job, rf"{name('ps', 1, 5)} is dead, .*; no spare has taken its place: no spare is left \(--spares\)")

    def test_job_ends_without_a_checkpoint(self):
        job = self.begin("--capstan-window=am", saved=False)
        self.lose(job, 4)
        self.assert_unavailable(job, rf"{name('ps', 0, 4)} is dead, .*: this run has no checkpoint")


if __name__ == "__main__":
    main()
