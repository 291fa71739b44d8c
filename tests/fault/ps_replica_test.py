#!/usr/bin/env python3
"""A ps with a replica is lost, with or without its agent: the replica takes over with all acknowledged pushes.

mpirun ends a job if one of its child processes dies from a signal, except with --enable-recovery, which stands in for a launcher
that survives the loss of a host.
"""
# Tests: src/ps/durability/replication.cpp
# Tests: src/ps/durability/spare.cpp
# Tests: src/strategy/interim_control.cpp
import os
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from gpu import gpu_flags
from job import HOST, MPIEXEC, main
from sums import ON_GPU, SUMS, SumsTest

# Two workers and two ps. Order of ranks: coordinator, workers, replicas, ps.
REPLICAS, PS = {0: 4, 1: 3}, {0: 5, 1: 6}


class PsReplica(SumsTest):
    def begin(self, *options, outlives=False, **start):
        return self.start_sums(7, "--capstan-ps=2", "--capstan-replicas-of-ps=2", *options, microseconds=600,
                               launcher=[MPIEXEC, *(["--enable-recovery"] if outlives else [])], **start)

    def kill(self, job, rank, agent=False):
        os.kill(job.ranks()[rank][0 if agent else 1], signal.SIGKILL)

    def taken_over(self, index):
        return (rf"ps {index} \(rank {PS[index]} on {HOST}\) is lost; spare {index} \(rank {REPLICAS[index]} on {HOST}\) "
                "takes its shards over with all that it had acknowledged")

    def test_sums_are_exact_after_successive_losses(self):
        job = self.begin()
        self.kill(job, PS[1])
        self.wait_for_stderr(job, self.taken_over(1))
        self.wait_until_connected(job)
        self.kill(job, PS[0])
        self.wait_for_stderr(job, self.taken_over(0))
        self.wait_until_connected(job)
        self.assert_exact(job)

    def test_with_shards_in_gpu_memory(self):
        job = self.begin(*gpu_flags(prefix="--capstan-"), env=ON_GPU)
        self.kill(job, PS[1])
        self.wait_for_stderr(job, self.taken_over(1))
        self.wait_until_connected(job)
        self.assert_exact(job)

    def test_with_its_agent_by_messages(self):
        job = self.begin("--capstan-window=am", outlives=True)
        self.kill(job, PS[0], agent=True)
        self.wait_for_stderr(job, self.taken_over(0))
        self.wait_until_connected(job)
        self.assert_exact(job)

    def test_sums_are_exact_if_a_worker_dies_too(self):
        job = self.begin()
        self.kill(job, 1)
        self.wait_for_stderr(job, r"worker 0 .* is dead")
        self.kill(job, PS[0])
        self.wait_for_stderr(job, self.taken_over(0))
        self.wait_until_connected(job)
        self.assert_exact(job)

    def test_job_survives_a_dead_replica_but_not_the_death_of_its_ps(self):
        job = self.begin()
        self.kill(job, REPLICAS[0])
        self.wait_for_stderr(job, rf"ps 0 \(rank {PS[0]} on {HOST}\) goes on without spare 0|spare 0 .* is dead")
        self.wait_until_connected(job)
        self.kill(job, PS[0])
        self.assertNotEqual(self.exit_code(job), 0, job.stderr)
        self.assertRegex(job.stderr, rf"ps 0 \(rank {PS[0]} on {HOST}\) is dead, its shards are lost; no spare has taken its place: "
                                     "it no longer has a replica")

    def test_replica_dies_before_variables_are_created(self):
        file = self.directory / "variables"
        job = self.start([SUMS, 2000, 0, "--capstan-ps=2", "--capstan-replicas-of-ps=2"], 7, env={"VARIABLES_AFTER": str(file)})
        self.wait_for_stderr(job, "waits")
        # UCX 1.13 aborts the coordinator if a rank dies in the milliseconds in which the two connect (docs/failures.md). No
        # output shows when they have connected.
        time.sleep(0.5)
        self.kill(job, REPLICAS[1])
        self.wait_for_stderr(job, r"abandoning the replica spare 1 ")
        file.touch()
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        self.assertIn(f"ps 1 (rank {PS[1]} on {HOST}) goes on without spare 1", job.stderr)
        self.assert_sums(job)

    def test_stopped_replica_is_abandoned(self):
        job = self.begin("--capstan-heartbeat-timeout=1s")
        self.kill_with(job, REPLICAS[0], signal.SIGSTOP)
        self.wait_for_stderr(job, r"abandoning the replica spare 0 ")
        self.wait_until_connected(job)
        self.assert_exact(job)

    def test_abandoned_replica_that_resumes_exits(self):
        # The replica is abandoned after one heartbeat timeout; its agent would kill it after two.
        job = self.begin("--capstan-heartbeat-timeout=4s")
        resumes = job.ranks()[REPLICAS[0]][1]
        os.kill(resumes, signal.SIGSTOP)
        self.wait_for_stderr(job, r"abandoning the replica spare 0 ")
        os.kill(resumes, signal.SIGCONT)
        self.wait_for_stderr(job, "the ps continues without this replica; this process exits")
        self.wait_until_connected(job)
        self.assert_exact(job)
        self.assertNotRegex(job.stderr, "this replica of a ps exits|is stopped or hangs")

    def test_stopped_ps_does_not_abandon_its_replica(self):
        job = self.begin("--capstan-heartbeat-timeout=6s")
        self.kill_with(job, REPLICAS[0], signal.SIGSTOP)
        time.sleep(0.2)  # until the ps waits for its replica
        self.kill_with(job, PS[0], signal.SIGSTOP)
        time.sleep(6.5)  # longer than the heartbeat timeout of a replica
        self.kill_with(job, PS[0], signal.SIGCONT)
        time.sleep(0.5)  # the ps must not abandon the replica meanwhile
        self.kill_with(job, REPLICAS[0], signal.SIGCONT)
        self.wait_until_connected(job)
        self.assert_exact(job)
        self.assertNotIn("abandoning the replica", job.stderr)

    def kill_with(self, job, rank, what):
        os.kill(job.ranks()[rank][1], what)


if __name__ == "__main__":
    main()
