#!/usr/bin/env python3
"""The join listener: invalid connections have no effect, workers join and leave, and nothing is left behind."""
# Tests: src/coordinator/recovery/late_workers.cpp
import json
import os
import pathlib
import re
import signal
import socket
import stat
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import CAPSTAN, HOST, main
from sums import SUMS, SumsTest

MICROSECONDS = 2500
STRANGERS = 1000
# Seconds after which the join listener closes a connection.
LISTENER_TIMEOUT = 5


class LateJoin(SumsTest):
    def setUp(self):
        super().setUp()
        self.run_dir = self.directory / "run"
        self.file = self.run_dir / "cluster.json"

    def start_with_listener(self, *options):
        job = self.start_sums(3, "--capstan-ps=1", f"--capstan-run-dir={self.run_dir}", *options, microseconds=MICROSECONDS)
        self.assertTrue(job.wait_for(self.file.exists), job.stderr)
        return job

    def capstan(self, *words):
        return subprocess.run([CAPSTAN, *map(str, words)], capture_output=True, text=True, timeout=60)

    def connect_a_thousand_times(self):
        """Opens connections that send nothing, half of a request, a request with a wrong token, or other data."""
        host, port = json.loads(self.file.read_text())["address"].split(":")
        self.assertEqual(host, "127.0.0.1")
        request = (41).to_bytes(4, "little") + b"capstan1\1" + bytes(32)
        words = [b"", os.urandom(200), request, b"GET / HTTP/1.1\r\n\r\n", request[:20], b"\xff" * 5000]
        strangers = []
        for i in range(STRANGERS):
            stranger = socket.create_connection((host, port), timeout=60)
            self.addCleanup(stranger.close)
            try:
                stranger.sendall(words[i % len(words)])
            except OSError:
                pass  # the listener has already closed it
            strangers.append(stranger)
        return strangers

    def receives_nothing(self, stranger):
        stranger.settimeout(LISTENER_TIMEOUT + 30)
        try:
            return stranger.recv(1) == b""
        except ConnectionError:
            return True

    def test_workers_join_and_leave_among_invalid_connections(self):
        job = self.start_with_listener()
        self.assertEqual(stat.S_IMODE(self.file.stat().st_mode), 0o600)
        coordinator = job.ranks()[0][1]
        open_files = lambda: len(os.listdir(f"/proc/{coordinator}/fd"))
        files_before = open_files()
        first_request = time.monotonic()
        strangers = self.connect_a_thousand_times()
        self.assertLess(open_files(), files_before + 100, "the listener holds few connections at a time")

        # Meanwhile three workers join; two leave, one is killed, and another joins.
        begin = time.monotonic()
        joined = [self.start([CAPSTAN, "join", self.run_dir]) for _ in range(3)]
        for index in (1, 2, 3):
            self.wait_for_stderr(job, rf"worker {index} \(rank \d+ on {HOST}\) has joined")
        print(f"all three workers joined within {time.monotonic() - begin:.2f} s", file=sys.stderr)
        self.assertRegex(self.capstan("status", self.run_dir).stdout, r"1 ps, 4 workers\nfunctions: \d+ ended")
        self.wait_until_connected(job)
        for worker in joined[:2]:
            os.kill(worker.command.pid, signal.SIGTERM)
        for worker in joined[:2]:
            self.assertEqual(self.exit_code(worker), 0, worker.stderr)
        os.kill(joined[2].command.pid, signal.SIGKILL)
        self.wait_for_stderr(job, rf"worker \d \(rank \d+ on {HOST}\) is dead; rescheduled functions: \d+")
        another = self.start([CAPSTAN, "join", self.run_dir])
        self.wait_for_stderr(job, rf"worker 4 \(rank \d+ on {HOST}\) has joined")

        self.assertTrue(all(self.receives_nothing(stranger) for stranger in strangers))
        self.assertEqual(self.assert_exact(job)["workers"], 2)
        seconds = job.gone_at - first_request
        self.assertEqual(self.exit_code(another), 0, "it ends with the job")
        left = [int(count) for count in re.findall(r"has left; executed functions: (\d+)", job.stderr)]
        self.assertEqual(len(left), 2, job.stderr)
        self.assertGreater(min(left), 0, "they executed functions")
        lines = re.findall(r"join listener: .*", job.stderr)
        print("\n".join(lines), file=sys.stderr)
        self.assertRegex(lines[0], r"the connection from 127.0.0.1:\d+ is refused: ")
        self.assertLess(len(lines), 10 + seconds / 10, "warnings are rate-limited")
        self.assertFalse(self.file.exists(), "the job is no longer advertised")
        self.assertEqual(self.capstan("status", self.run_dir).returncode, 2)

    def test_worker_ends_if_the_job_ends_before_it_joins(self):
        job = self.start_with_listener()
        other = json.loads(self.file.read_text())
        self.assert_exact(job)
        # `capstan join` starts the job's program, which prints its environment here.
        self.file.touch(mode=0o600)
        self.file.write_text(json.dumps({**other, "program": "/usr/bin/env", "arguments": ["env"]}))
        self.assertIn("CAPSTAN_JOB_RUNS=1", self.capstan("join", self.run_dir).stdout.splitlines())
        self.file.unlink()
        ended = self.start([SUMS, 10, "--capstan-ps=1"], env={"CAPSTAN_JOIN": str(self.run_dir), "CAPSTAN_JOB_RUNS": "1"})
        self.assertNotEqual(self.exit_code(ended), 0)
        self.assertIn("it has ended", ended.stderr)

    def test_rejects_join_of_another_build_or_without_late_workers(self):
        job = self.start_with_listener("--capstan-late-workers=0")
        self.assertIn("--late-workers", self.capstan("join", self.run_dir).stderr)
        other = self.start([CAPSTAN, "train", "lr", "--data", "none", "--join", self.run_dir])
        self.assertNotEqual(self.exit_code(other), 0)
        self.assertIn("is a different build than the job's", other.stderr)
        second = self.start([SUMS, 10, "--capstan-ps=1", f"--capstan-run-dir={self.run_dir}"], 3)
        self.assertNotEqual(self.exit_code(second), 0)
        self.assertIn("another running job uses it", second.stderr)
        # When the coordinator dies, its agent clears the run directory.
        os.kill(job.ranks()[0][1], signal.SIGKILL)
        self.assertNotEqual(self.exit_code(job), 0)
        self.assertFalse(self.file.exists())


if __name__ == "__main__":
    main()
