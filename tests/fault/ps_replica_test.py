#!/usr/bin/env python3
"""A ps with a replica is lost, child or agent and child: the replica takes its place with all that the ps had acknowledged.

mpirun ends a job of which a process is killed, but with --enable-recovery, which stands for a launcher that survives the
loss of a host.
"""
# Tests: src/ps/durability/ps_replica.cpp
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

# Two workers and two ps: coordinator, workers, replicas, ps.
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

    def test_one_process_after_the_other(self):
        job = self.begin()
        self.kill(job, PS[1])
        self.assert_says(job, self.taken_over(1))
        self.wait_until_connected(job)
        self.kill(job, PS[0])
        self.assert_says(job, self.taken_over(0))
        self.wait_until_connected(job)
        self.assert_exact(job)

    def test_with_shards_in_the_memory_of_gpus(self):
        job = self.begin(*gpu_flags(prefix="--capstan-"), env=ON_GPU)
        self.kill(job, PS[1])
        self.assert_says(job, self.taken_over(1))
        self.wait_until_connected(job)
        self.assert_exact(job)

    def test_with_its_agent_by_messages(self):
        job = self.begin("--capstan-window=am", outlives=True)
        self.kill(job, PS[0], agent=True)
        self.assert_says(job, self.taken_over(0))
        self.wait_until_connected(job)
        self.assert_exact(job)

    def test_a_worker_dies_too(self):
        job = self.begin()
        self.kill(job, 1)
        self.assert_says(job, r"worker 0 .* is gone")
        self.kill(job, PS[0])
        self.assert_says(job, self.taken_over(0))
        self.wait_until_connected(job)
        self.assert_exact(job)

    def test_a_replica_that_dies_is_missed_by_nobody_but_cannot_take_over(self):
        job = self.begin()
        self.kill(job, REPLICAS[0])
        self.assert_says(job, rf"ps 0 \(rank {PS[0]} on {HOST}\) goes on without spare 0|spare 0 .* is gone")
        self.wait_until_connected(job)
        self.kill(job, PS[0])
        self.assertNotEqual(self.exit_code(job), 0, job.stderr)
        self.assertRegex(job.stderr, rf"ps 0 \(rank {PS[0]} on {HOST}\) is gone, its shards with it; no spare has taken its place: "
                                     "it no longer has a replica")

    def test_a_replica_dies_before_there_are_variables_and_a_coordinator_of_closures(self):
        file = self.folder / "variables"
        job = self.start([SUMS, 2000, 0, "--capstan-ps=2", "--capstan-replicas-of-ps=2"], 7, env={"VARIABLES_AFTER": str(file)})
        self.assert_says(job, "waits")
        # UCX 1.13 aborts the coordinator if a rank dies in the milliseconds in which the two connect (docs/failures.md),
        # and nothing tells when they are connected.
        time.sleep(0.5)
        self.kill(job, REPLICAS[1])
        self.assert_says(job, r"abandoning the replica spare 1 ")
        file.touch()
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        self.assertIn(f"ps 1 (rank {PS[1]} on {HOST}) goes on without spare 1", job.stderr)
        self.assert_sums(job)

    def test_a_replica_that_stands_still_is_given_up(self):
        job = self.begin("--capstan-heartbeat-timeout=1s")
        self.kill_with(job, REPLICAS[0], signal.SIGSTOP)
        self.assert_says(job, r"abandoning the replica spare 0 ")
        self.wait_until_connected(job)
        self.assert_exact(job)

    def test_a_replica_that_was_given_up_and_resumed_ends_with_the_job(self):
        # It is given up after one time-out, and its agent ends it after two.
        job = self.begin("--capstan-heartbeat-timeout=4s")
        resumes = job.ranks()[REPLICAS[0]][1]
        os.kill(resumes, signal.SIGSTOP)
        self.assert_says(job, r"abandoning the replica spare 0 ")
        os.kill(resumes, signal.SIGCONT)
        self.wait_until_connected(job)
        self.assert_exact(job)
        self.assertNotRegex(job.stderr, "this replica of a ps exits|is stopped or hangs")  # it was told

    def test_a_ps_that_was_stopped_itself_gives_its_replica_time(self):
        job = self.begin("--capstan-heartbeat-timeout=6s")
        self.kill_with(job, REPLICAS[0], signal.SIGSTOP)
        time.sleep(0.2)  # until the ps waits for its replica
        self.kill_with(job, PS[0], signal.SIGSTOP)
        time.sleep(6.5)  # for longer than the time-out of a silent replica
        self.kill_with(job, PS[0], signal.SIGCONT)
        time.sleep(0.5)  # in which it must not give the replica up
        self.kill_with(job, REPLICAS[0], signal.SIGCONT)
        self.wait_until_connected(job)
        self.assert_exact(job)
        self.assertNotIn("abandoning the replica", job.stderr)

    def kill_with(self, job, rank, what):
        os.kill(job.ranks()[rank][1], what)


if __name__ == "__main__":
    main()
