#!/usr/bin/env python3
"""A ps is lost with its host, agent and child: without a spare the job says so; a spare takes the shards over from the last checkpoint.

mpirun ends a job of which a process is killed, so each rank is started by a shell, which outlives it.
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
from job import BIN, HOST, PATIENT, SECONDS_TO_END, JobTest, agent_of, child_of, main, outlived
from sums import ON_GPU, Connected

CLOSURES = 300
RANKS = 6  # with one spare: coordinator, two workers, spare, two ps


def name(role, index, rank):
    return rf"{role} {index} \(rank {rank} on {HOST}\)"


class PsLost(Connected, JobTest):
    environment = PATIENT

    def begin(self, *options, spares=1, closures=CLOSURES, microseconds=0, losses=1, ranks=RANKS, saved=True, wait="300ms", words=(), env=None):
        folder = self.folder / "checkpoints" if saved else "-"
        options = ["--capstan-ps=2", f"--capstan-spares={spares}", f"--capstan-ps-wait={wait}", *options]
        job = self.start(outlived([BIN / "ps_lost", folder, closures, microseconds, losses, *words, *options]), ranks, env=env)
        self.assert_says(job, "kill 0")
        return job

    def lose(self, job, rank):
        """The agent, and its child dies with it."""
        os.kill(agent_of(job, rank), signal.SIGKILL)

    def sums(self, job):
        lines = dict(line.split(" ", 1) for line in job.stdout.splitlines() if re.match(r"ps\d ", line))
        return {ps: [float(word) for word in lines[ps].split()] for ps in ("ps0", "ps1")}

    def assert_sums(self, ps, sums, count):
        """Of the rows, the variable with a slot, and the counter after so many pushes of 1."""
        adagrad = sum(1 / math.sqrt(0.1 + i + 1) for i in range(count))
        self.assertEqual([sums[0], sums[2]], [count, count], ps)
        self.assertAlmostEqual(sums[1], adagrad, delta=1e-3, msg=ps)

    def assert_unavailable(self, job, pattern):
        began = time.monotonic()
        self.assert_says(job, f"unavailable: {pattern}")
        self.assertLess(time.monotonic() - began, SECONDS_TO_END)
        self.assertEqual(self.exit_code(job, SECONDS_TO_END), 4, job.stderr)

    def test_without_a_spare_the_job_says_who_is_lost(self):
        job = self.begin(spares=0, ranks=5, wait="1s")
        self.lose(job, 4)
        self.assert_unavailable(job, rf"{name('ps', 1, 4)} is gone, its shards with it, and it has not come back within 1000 ms")

    def takes_over(self, *options, env=None):
        job = self.begin(*options, env=env)
        self.lose(job, 5)
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        lost, spare = name("ps", 1, 5), name("spare", 0, 3)
        self.assertRegex(job.stderr, rf"{lost} is lost; {spare} takes its shards over from checkpoint \S+/checkpoint-0*1 \(step 1\)")
        self.assertRegex(job.stdout, rf"{spare}, now ps 1\n")
        # What was pushed after the checkpoint is lost on that ps, and nothing else is.
        sums = self.sums(job)
        self.assert_sums("ps0", sums["ps0"], 3 * CLOSURES)
        self.assert_sums("ps1", sums["ps1"], 2 * CLOSURES)
        self.assertEqual(len(list((self.folder / "checkpoints").glob("checkpoint-0*2"))), 1)

    def test_a_spare_takes_over(self):
        self.takes_over()

    def test_with_shards_in_the_memory_of_gpus(self):
        self.takes_over(*gpu_flags(prefix="--capstan-"), env=ON_GPU)

    def test_a_counter_is_read_again(self):
        job = self.begin(words=["read"])
        self.lose(job, 5)
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        self.assertIn(f"read {CLOSURES}\n", job.stdout)
        self.assert_sums("ps1", self.sums(job)["ps1"], 2 * CLOSURES)

    def test_by_active_messages(self):
        self.takes_over("--capstan-window=am", "--capstan-ps-restart=off")

    def test_one_after_the_other_while_functions_run(self):
        # Rank 3 and 4 are spares. The ps's own agent is too late, and the ps that it starts again is turned away. A
        # worker dies, and finds the ps where it is now. The spare that has become ps 1 dies alone, and comes back; then
        # with its agent.
        self.one_after_the_other()

    def one_after_the_other(self, *options, closures=100):
        end = self.folder / "end"
        # One that is started again is there before it counts as lost.
        job = self.begin(*options, spares=2, ranks=7, closures=closures, microseconds=1000, losses=end, wait="8s")
        lost, old = name("ps", 1, 6), agent_of(job, 6)
        self.assert_says(job, "reached 1")
        os.kill(old, signal.SIGSTOP)
        os.kill(child_of(old), signal.SIGKILL)
        self.assert_says(job, rf"{lost} is lost; {name('spare', 0, 3)} takes(.*\n)+.*{lost} is back")
        os.kill(old, signal.SIGCONT)
        self.assert_says(job, rf"{lost}, pid \d+, is told to end: a spare has its place")
        self.wait_until_connected(job)
        os.kill(child_of(agent_of(job, 1)), signal.SIGKILL)
        self.assert_says(job, r"worker 0 .* is there in place of the one that was lost")
        self.wait_until_connected(job)
        os.kill(child_of(agent_of(job, 3)), signal.SIGKILL)
        self.assert_says(job, rf"({lost} is back(.*\n)+.*){{2}}")
        self.wait_until_connected(job)
        self.lose(job, 3)
        self.assert_says(job, rf"{lost} is lost; {name('spare', 1, 4)} takes(.*\n)+.*{lost} is back")
        end.touch()
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        self.assertRegex(job.stdout, rf"{name('spare', 0, 3)} is lost\n{name('spare', 1, 4)}, now ps 1\n")
        sums, scheduled = self.sums(job), int(re.search(r"scheduled (\d+)", job.stdout)[1])
        self.assert_sums("ps0", sums["ps0"], scheduled)
        for sum in (sums["ps1"][0], sums["ps1"][2]):
            self.assertGreaterEqual(sum, closures)
            self.assertLess(sum, scheduled)

    def test_no_spare_is_left(self):
        job = self.begin()
        self.lose(job, 3)
        self.assert_says(job, rf"{name('spare', 0, 3)} is gone; 0 spares are left")
        self.lose(job, 5)
        self.assert_unavailable(job, rf"{name('ps', 1, 5)} is gone, .*; no spare has taken its place: no spare is left \(--spares\)")

    def test_without_a_checkpoint(self):
        job = self.begin("--capstan-window=am", saved=False)
        self.lose(job, 4)
        self.assert_unavailable(job, rf"{name('ps', 0, 4)} is gone, .*: this run has no checkpoint")


if __name__ == "__main__":
    main()
