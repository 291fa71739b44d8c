#!/usr/bin/env python3
"""A ps is lost with its host, agent and child: without a spare the job says so; a spare takes the shards over from the last checkpoint.

mpirun ends a job of which a process is killed, but with --enable-recovery, which stands for a launcher that survives the
loss of a host.
"""
import math
import os
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import BIN, HOST, MPIEXEC, SECONDS_TO_END, JobTest, main

PROGRAM = BIN / "ps_lost"
CLOSURES = 300
RANKS = 6  # with one spare: coordinator, two workers, spare, two ps


class PsLost(JobTest):
    def begin(self, *options, spares=1, closures=CLOSURES, microseconds=0, losses=1, ranks=RANKS, saved=True, wait="1s"):
        folder = self.folder / "checkpoints" if saved else "-"
        options = ["--capstan-ps=2", f"--capstan-spares={spares}", f"--capstan-ps-wait={wait}", *options]
        return self.start([PROGRAM, folder, closures, microseconds, losses, *options], ranks, launcher=[MPIEXEC, "--enable-recovery"])

    def lose(self, job, rank):
        """The agent, and its child dies with it."""
        os.kill(job.ranks()[rank][0], signal.SIGKILL)

    def name(self, role, index, rank):
        return rf"{role} {index} \(rank {rank} on {HOST}\)"

    def sums(self, job):
        lines = dict(line.split(" ", 1) for line in job.stdout.splitlines() if line.startswith("ps"))
        return {ps: [float(word) for word in lines[ps].split()] for ps in ("ps0", "ps1")}

    def expected(self, count):
        """What the rows, the variable with a slot, and the counter are after so many pushes of 1."""
        adagrad = sum(1 / math.sqrt(0.1 + i + 1) for i in range(count))
        return [count, adagrad, count]

    def assert_sums(self, job, lost, lost_count, others_count):
        sums = self.sums(job)
        for ps, (rows, updated, counter) in sums.items():
            wanted = self.expected(lost_count if ps == lost else others_count)
            self.assertEqual([rows, counter], [wanted[0], wanted[2]], f"{ps}: {sums}")
            self.assertAlmostEqual(updated, wanted[1], delta=1e-3, msg=f"{ps}: {sums}")

    def test_without_a_spare_the_job_says_who_is_lost(self):
        job = self.begin(spares=0, ranks=5, wait="4s")
        self.assertTrue(job.wait_for_text("kill 0"), job.stderr)
        self.lose(job, 4)
        began = time.monotonic()
        self.assertTrue(job.wait_for_text(rf"unavailable: {self.name('ps', 1, 4)} is gone, its shards with it"), job.stderr)
        self.assertLess(time.monotonic() - began, 10)
        self.assertNotEqual(self.exit_code(job, SECONDS_TO_END), 0, job.stderr)

    def takes_over(self, *options):
        job = self.begin(*options)
        self.assertTrue(job.wait_for_text("kill 0"), job.stderr)
        self.lose(job, 5)
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        lost, spare = self.name("ps", 1, 5), self.name("spare", 0, 3)
        self.assertRegex(job.stderr, rf"{lost} is lost; {spare} takes its shards over from checkpoint \S+checkpoint-1 \(step 1\)")
        self.assertRegex(job.stdout, rf"{spare}, now ps 1\n")
        # What was pushed after the checkpoint is lost on that ps, and nothing else is.
        self.assert_sums(job, "ps1", 2 * CLOSURES, 3 * CLOSURES)
        self.assertTrue((self.folder / "checkpoints" / "checkpoint-2").is_dir())

    def test_a_spare_takes_over(self):
        self.takes_over()

    def test_by_active_messages(self):
        self.takes_over("--capstan-window=am", "--capstan-ps-restart=off")


if __name__ == "__main__":
    main()
