#!/usr/bin/env python3
"""A ps or spare is stopped (SIGSTOP). If it resumes after its failover, it exits; if it never resumes, it delays neither a save nor
the end of the job."""
# Tests: src/ps/server/ps_heartbeat.cpp
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import BIN, HOST, MPIEXEC, main
from sums import SumsTest

# Long enough that no other rank counts as silent because the machine is busy.
HEARTBEAT = "--capstan-heartbeat-timeout=5s"
PS_WAIT = "--capstan-ps-wait=1s"


def has_ended(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


class PsStopped(SumsTest):
    def stop(self, job, rank):
        child = job.ranks()[rank][1]
        os.kill(child, signal.SIGSTOP)
        return child

    def resume(self, job, child):
        """Resumes the process; it must exit and log the reason."""
        os.kill(child, signal.SIGCONT)
        self.assertTrue(job.wait_for(lambda: has_ended(child)), job.stderr)
        self.wait_for_stderr(job, r"ps 1@.*declared dead")

    def resumes_after_its_replica_took_over(self, *options):
        job = self.start_sums(7, "--capstan-ps=2", "--capstan-replicas-of-ps=2", HEARTBEAT, PS_WAIT, *options, microseconds=600)
        child = self.stop(job, 6)
        self.wait_for_stderr(job, rf"ps 1 \(rank 6 on {HOST}\) is lost; spare 1 .* takes its shards over(.*\n)+.*ps 1 \(rank 6 on {HOST}\) has recovered")
        self.resume(job, child)
        self.wait_until_connected(job)
        self.assert_exact(job)

    def test_ps_that_resumes_after_failover_to_its_replica_exits(self):
        self.resumes_after_its_replica_took_over()

    def test_ps_that_resumes_exits_with_messages_and_a_recoverable_coordinator(self):
        self.resumes_after_its_replica_took_over("--capstan-window=am", "--capstan-coordinator-wait=40s")

    def test_ps_that_resumes_after_failover_to_a_spare_exits(self):
        end = self.directory / "end"
        job = self.start([BIN / "ps_lost", self.directory / "checkpoints", 100, 1000, end, "--capstan-ps=2", "--capstan-spares=1", HEARTBEAT, PS_WAIT], 6)
        self.wait_for_stderr(job, "reached 1")
        child = self.stop(job, 5)
        self.wait_for_stderr(job, rf"ps 1 \(rank 5 on {HOST}\) is lost; spare 0 .* takes(.*\n)+.*ps 1 \(rank 5 on {HOST}\) has recovered")
        self.resume(job, child)
        self.wait_until_connected(job)
        end.touch()
        self.assertEqual(self.exit_code(job), 0, job.stderr)

    def lingers(self, ranks, *options):
        """Starts a job whose functions have all ended and whose coordinator ends it once the file exists."""
        leave = self.directory / "leave"
        job = self.start_sums(ranks, HEARTBEAT, PS_WAIT, *options, closures=100, words=[leave])
        self.wait_for_stderr(job, "lingers")
        return job, leave

    def ends_though_it_is_stopped(self, rank, name, ranks, *options):
        job, leave = self.lingers(ranks, *options)
        child = self.stop(job, rank)
        leave.touch()
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        self.assertRegex(job.stderr, rf"{name} \(rank {rank} on {HOST}\), pid {child}, is stopped or hangs")

    def test_ps_that_is_stopped_at_the_end_of_the_job_is_killed(self):
        self.ends_though_it_is_stopped(3, "ps 0", 4, "--capstan-ps=1")

    def test_spare_that_is_stopped_at_the_end_of_the_job_is_killed(self):
        self.ends_though_it_is_stopped(2, "spare 0", 4, "--capstan-ps=1", "--capstan-spares=1")


if __name__ == "__main__":
    main()
