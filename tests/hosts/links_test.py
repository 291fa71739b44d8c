#!/usr/bin/env python3
"""The link between two hosts is lossy, slow, or cut: sums stay exact, or an error names the unreachable ps."""
import os
import pathlib
import re
import signal
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import two_hosts
from longer_jobs import retry_with_longer_job
from job import BIN, MPIEXEC, SECONDS_TO_END, JobTest, main
from poll import poll_until

SCRATCH = pathlib.Path(sys.argv[3])
del sys.argv[3]
PROGRAM = BIN / "sums_until_death"
SLOTS = 3
MICROSECONDS = 1000
LONG = os.environ.get("CAPSTAN_TESTS_LONG")
# Open MPI 4.1.4 sometimes fails to connect two hosts, even over a healthy link (open-mpi/ompi#10734): it hangs, or its
# error gives no cause. Such a start is repeated, since this test covers only faults after the start.
UNCONNECTED = r"Open MPI failed to TCP connect to a peer MPI process|not every rank has started"
STARTS = 4
START_TIMEOUT = "--capstan-start-timeout=15s"
# Time limit for mpirun, and for its daemon on a host that was cut off, to end.
SECONDS_FOR_LAUNCHER_TO_END = 40


class Links(JobTest):
    reason = two_hosts.reason_to_skip(MPIEXEC) or (None if os.path.exists("/dev/net/tun") else "no /dev/net/tun here")

    def setUp(self):
        if self.reason:
            self.skipTest(self.reason)
        super().setUp()
        two_hosts.clean(SCRATCH)
        self.hosts = self.enterContext(two_hosts.TwoHosts(SCRATCH, cable=True))

    def start_sums(self, closures, *options):
        for _ in range(STARTS):
            job = self.start([PROGRAM, closures, MICROSECONDS, START_TIMEOUT, *options], 2 * SLOTS, launcher=self.hosts.launcher(MPIEXEC, SLOTS),
                             env=self.hosts.environment)
            if job.wait_for_text("begins"):
                time.sleep(0.5)  # until closures run on all ranks, which no output shows
                return job
            if not re.search(UNCONNECTED, job.stderr):
                break
            self.exit_code(job)
        self.fail(job.stderr)

    def assert_remote_ranks_end(self, job, children, seconds):
        """Waits until the ranks of the cut-off host end; the agent of a ps first waits briefly for the launcher."""
        left = lambda: [pid for pid in children if pid in job.processes()]
        self.assertTrue(poll_until(lambda: not left(), seconds, period=0.05),
                        f"still running on host2: {left()}; the job's standard error:\n{job.stderr}")

    def assert_job_fails(self, job):
        """Waits until all ranks have ended, then requires an exit code other than 0. Kills mpirun of Open MPI 4.1 if it
        hangs, which sometimes happens after a cut although no other process is left."""
        launcher = job.command.pid
        only_launcher = lambda: all(pid == launcher for pid in job.processes())
        self.assertTrue(poll_until(only_launcher, SECONDS_FOR_LAUNCHER_TO_END),
                        f"still running: {job.processes()}; {job.stderr}")
        if job.wait(SECONDS_TO_END) is None:
            print("mpirun hangs although all ranks have ended", file=sys.stderr)
            job.signal_launcher(signal.SIGKILL)
        self.assertNotEqual(self.exit_code(job), 0)

    def wait_for_output(self, job, text, seconds):
        self.assertTrue(poll_until(lambda: text in job.stdout, seconds), job.stderr)

    @staticmethod
    def remote_children(job):
        return [child for rank, (_, child) in job.ranks().items() if rank >= SLOTS]

    def assert_exact(self, job, closures, seconds=120):
        self.assertEqual(self.exit_code(job, seconds), 0, job.stderr)
        printed = dict(line.split() for line in job.stdout.splitlines())
        self.assertEqual({name: int(printed[name]) for name in ("counter", "sharded", "other", "table", "combined", "narrow")},
                         {"counter": closures, "sharded": closures, "other": closures, "table": closures, "combined": closures, "narrow": closures})

    def impair(self, *words, seconds):
        self.hosts.tell_cable(*words)
        time.sleep(seconds)  # the duration of the fault

    def test_sums_are_exact_after_loss_delay_and_short_cuts(self):
        closures = 20000 if LONG else 2500
        job = self.start_sums(closures, "--capstan-ps=2")
        for _ in range(10 if LONG else 1):
            self.impair("loss", 0.02, seconds=1)
            self.impair("loss", 0, seconds=0)
            self.impair("delay", 50, seconds=1)
            self.impair("delay", 0, seconds=0.2)
            self.impair("cut", seconds=1)
            self.impair("mend", seconds=0.2)
        self.assert_exact(job, closures)
        self.assertNotIn("is dead", job.stderr)

    def test_job_ends_when_a_ps_is_cut_off(self):
        job = self.start_sums(1_000_000, "--capstan-ps=2", "--capstan-heartbeat-timeout=3s", "--capstan-ps-wait=1s",
                              "--capstan-wait-timeout=5s")
        begin, remote = time.monotonic(), self.remote_children(job)
        self.hosts.tell_cable("cut")
        self.assertTrue(job.wait_for_text(r"ps 1 \(rank 5 on host2\) is dead, .* not recovered within 1000 ms", 30), job.stderr)
        print(f"detected after {time.monotonic() - begin:.1f} s", file=sys.stderr)
        self.assertIn("ps 1 (rank 5 on host2) is silent: no sign of life within 3000 ms", job.stderr)
        self.assert_remote_ranks_end(job, remote, 30)
        print(f"the ranks on the other host ended after {time.monotonic() - begin:.1f} s", file=sys.stderr)
        self.hosts.tell_cable("mend")
        self.assert_job_fails(job)

    @unittest.skipUnless(LONG, "CAPSTAN_TESTS_LONG is not set")
    def test_spare_replaces_a_ps_that_is_cut_off(self):
        # On host1: coordinator, a worker, the spare, ps 0. On host2: three workers and ps 1.
        slots, closures = 4, 300
        options = ["--capstan-ps=2", "--capstan-spares=1", "--capstan-heartbeat-timeout=1s", "--capstan-ps-wait=1s",
                   "--capstan-wait-timeout=8s"]
        job = self.start([BIN / "ps_lost", self.directory / "checkpoints", closures, MICROSECONDS, 1, *options], 2 * slots,
                         launcher=self.hosts.launcher(MPIEXEC, slots), env=self.hosts.environment)
        self.assertTrue(job.wait_for_text("kill 0"), job.stderr)
        self.hosts.tell_cable("cut")
        self.assertTrue(job.wait_for_text(r"ps 1 \(rank 7 on host1\) has recovered", 30), job.stderr)
        self.wait_for_output(job, "ps1 ", 30)
        time.sleep(4)  # until the ranks of host2 have ended
        self.hosts.tell_cable("mend")
        self.exit_code(job, SECONDS_FOR_LAUNCHER_TO_END)
        self.assertRegex(job.stdout, rf"ps0 {3 * closures} \S+ {3 * closures}\nps1 {2 * closures} \S+ {2 * closures}\n")

    def test_job_continues_without_workers_that_are_cut_off(self):
        retry_with_longer_job(2000, self.cut_workers_off)

    def cut_workers_off(self, closures):
        job = self.start_sums(closures, "--capstan-ps=1", "--capstan-heartbeat-timeout=3s",
                              "--capstan-wait-timeout=5s")
        remote = self.remote_children(job)
        self.hosts.tell_cable("cut")
        in_time = job.wait_for_text(r"is dead; rescheduled functions: \d+, live workers: 1", 30)
        if in_time:
            self.wait_for_output(job, "workers 1", 60)
            self.assert_remote_ranks_end(job, remote, 30)
        else:
            self.assertIn("workers", job.stdout, job.stderr)  # the job ended before the cut
        self.hosts.tell_cable("mend")
        self.assert_exact(job, closures, SECONDS_FOR_LAUNCHER_TO_END)
        return in_time

    @unittest.skipUnless(LONG, "CAPSTAN_TESTS_LONG is not set")
    def test_job_continues_after_a_cut_shorter_than_ps_wait(self):
        closures = 40000
        job = self.start_sums(closures, "--capstan-ps=2", "--capstan-ps-wait=90s", "--capstan-wait-timeout=120s")
        self.impair("cut", seconds=30)
        self.hosts.tell_cable("mend")
        self.assertTrue(job.wait_for_text(r"ps 1 \(rank 5 on host2\) is reachable again", 90), job.stderr)
        self.assert_exact(job, closures, 200)
        self.assertEqual(len(re.findall("counts as dead: no sign", job.stderr)), 2, job.stderr)


if __name__ == "__main__":
    # Both hosts see this directory.
    SCRATCH.mkdir(parents=True, exist_ok=True)
    tempfile.tempdir = str(SCRATCH)
    main()
