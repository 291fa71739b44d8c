#!/usr/bin/env python3
"""A restarted coordinator still knows its spares and replicas, and which spare replaced which ps."""
import os
import pathlib
import re
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import BIN, HOST, LONG_TIMEOUTS, JobTest, agent_of, child_of, main, in_shell

PROGRAM = BIN / "steps_until_death"
BEGINS = r"begins after step (\d+)"
CLOSURES = 150


def name(role, index, rank):
    return rf"{role} {index} \(rank {rank} on {HOST}\)"


class FailoverAfterRestart(JobTest):
    environment = LONG_TIMEOUTS

    def begin(self, ranks, *options, words=()):
        self.file = self.directory / "end"
        job = self.start(in_shell([PROGRAM, self.file, CLOSURES, 1000, *words, "--capstan-ps=2", "--capstan-ps-wait=300ms",
                                   "--capstan-coordinator-wait=40s", *options]), ranks)
        self.wait_for_steps(job)
        return job

    def wait_for_steps(self, job):
        """Waits until the current coordinator has recorded two more steps, so all ranks have reached each other."""
        seen = len(re.findall(BEGINS, job.stderr)) or 1
        last = lambda: re.split(BEGINS, job.stderr)[2 * seen:]
        before = sum(text.count("recorded ") for text in last())
        self.assertTrue(job.wait_for(lambda: last() and last()[-1].count("recorded ") >= before + 2), job.stderr)

    def restart_coordinator(self, job):
        incarnations = len(re.findall(BEGINS, job.stderr))
        os.kill(child_of(agent_of(job, 0)), signal.SIGKILL)
        self.assertTrue(job.wait_for(lambda: len(re.findall(BEGINS, job.stderr)) > incarnations), job.stderr)
        self.wait_for_steps(job)

    def lose(self, job, rank):
        """Kills a rank permanently: its agent, and with it the rank."""
        os.kill(agent_of(job, rank), signal.SIGKILL)

    def end(self, job):
        self.file.touch()
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        return {line.split()[0]: int(line.split()[1]) for line in job.stdout.splitlines() if line.count(" ") == 1}

    def assert_back(self, job, ps, times):
        self.wait_for_stderr(job, rf"({ps} has recovered(.*\n)+.*){{{times}}}")
        self.wait_for_steps(job)

    def test_sums_are_exact_after_failover_to_a_replica(self):
        # Ranks: coordinator, two workers, two replicas, two ps.
        job = self.begin(7, "--capstan-replicas-of-ps=2")
        self.restart_coordinator(job)
        self.lose(job, 6)
        self.wait_for_stderr(job, rf"{name('ps', 1, 6)} is lost; {name('spare', 1, 3)} takes its shards over with all that")
        self.assert_back(job, name("ps", 1, 6), 1)
        self.restart_coordinator(job)
        figures = self.end(job)
        sums = figures["steps"] * CLOSURES
        self.assertEqual([figures[one] for one in ("counter", "sharded", "other", "table")], [sums] * 4)

    def test_coordinator_is_killed_during_failover_to_a_replica(self):
        job = self.begin(7, "--capstan-replicas-of-ps=2")
        self.lose(job, 6)
        self.wait_for_stderr(job, rf"{name('ps', 1, 6)} is lost; {name('spare', 1, 3)} takes its shards over")
        self.restart_coordinator(job)
        figures = self.end(job)
        sums = figures["steps"] * CLOSURES
        self.assertEqual([figures[one] for one in ("counter", "sharded", "other", "table")], [sums] * 4)

    def test_spare_that_restored_the_last_checkpoint_stays_the_ps(self):
        # Ranks: coordinator, two workers, two spares, two ps. The spare that replaced ps 1 is killed, and its agent restarts it.
        # When it is lost permanently, the other spare replaces it.
        checkpoints = self.directory / "checkpoints"
        # A restarted ps needs 0.35 s on a busy machine; after ps-wait, a spare replaces it.
        job = self.begin(7, "--capstan-spares=2", "--capstan-ps-wait=3s", words=[checkpoints])
        self.assertTrue(job.wait_for(lambda: list(checkpoints.glob("checkpoint-*[0-9]/manifest.json"))), job.stderr)
        self.wait_for_steps(job)
        self.restart_coordinator(job)
        lost = name("ps", 1, 6)
        self.lose(job, 6)
        self.wait_for_stderr(job, rf"{lost} is lost; {name('spare', 0, 3)} takes its shards over from checkpoint \S+")
        self.assert_back(job, lost, 1)
        self.restart_coordinator(job)
        os.kill(child_of(agent_of(job, 3)), signal.SIGKILL)
        self.assert_back(job, lost, 2)
        self.assertNotIn("is told to end", job.stderr)
        self.lose(job, 3)
        self.wait_for_stderr(job, rf"{lost} is lost; {name('spare', 1, 4)} takes its shards over from checkpoint \S+")
        self.assert_back(job, lost, 3)
        self.end(job)


if __name__ == "__main__":
    main()
