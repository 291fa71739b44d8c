#!/usr/bin/env python3
"""The late door: strangers disturb nothing, workers join and leave, and nothing is left behind."""
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
from job import BIN, CAPSTAN, HOST, JobTest, main

SUMS = BIN / "sums_until_death"
MICROSECONDS = 2500
STRANGERS = 1000
# Of the door, from a connection until its end.
PATIENCE = 5


def until(condition, seconds=30):
    """Whether it has come true within the time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.02)
    return True


class LateDoor(JobTest):
    def setUp(self):
        super().setUp()
        self.run_dir = self.folder / "run"
        self.file = self.run_dir / "cluster.json"

    def start_sums(self, closures, ranks, *options, env=None):
        settings = ["--capstan-ps=1", f"--capstan-run-dir={self.run_dir}", *options]
        job = self.start([SUMS, closures, MICROSECONDS, *settings], ranks, env=env)
        self.assertTrue(job.wait_for_text("begins"), job.stderr)
        self.assertTrue(until(self.file.exists), job.stderr)
        return job

    def check_sums(self, job, closures):
        self.assertEqual(self.exit_code(job, 120), 0, job.stderr)
        figures = dict(line.split() for line in job.stdout.splitlines() if line.count(" ") == 1)
        self.assertEqual({name: int(figures[name]) for name in ("counter", "sharded", "other")},
                         {"counter": closures, "sharded": closures, "other": closures})
        self.assertEqual(list(self.run_dir.iterdir()), [], "the run directory is empty at the end")
        return figures

    def capstan(self, *words):
        return subprocess.run([CAPSTAN, *map(str, words)], capture_output=True, text=True, timeout=60)

    def test_strangers_disturb_nothing(self):
        closures = 6000
        job = self.start_sums(closures, 4)
        self.assertEqual(stat.S_IMODE(self.file.stat().st_mode), 0o600)
        host, port = json.loads(self.file.read_text())["address"].split(":")
        self.assertEqual(host, "127.0.0.1")
        coordinator = job.ranks()[0][1]
        files_before = len(os.listdir(f"/proc/{coordinator}/fd"))
        knock = (41).to_bytes(4, "little") + b"capstan1\1" + bytes(32)
        words = [b"", os.urandom(200), knock, b"GET / HTTP/1.1\r\n\r\n", knock[:20], b"\xff" * 5000]
        strangers = []
        for i in range(STRANGERS):
            stranger = socket.create_connection((host, port), timeout=60)
            try:
                stranger.sendall(words[i % len(words)])
            except OSError:
                pass  # it has been turned away already
            strangers.append(stranger)
            if i % 250 == 249:
                status = self.capstan("status", self.run_dir)
                self.assertEqual(status.returncode, 0, status.stderr)
                self.assertRegex(status.stdout, r"1 ps, 2 workers\nfunctions: \d+ ended")
        self.assertLess(len(os.listdir(f"/proc/{coordinator}/fd")), files_before + 140, "few are held at a time")
        for stranger in strangers:
            stranger.settimeout(PATIENCE + 30)
            try:
                self.assertEqual(stranger.recv(1), b"", "a stranger is told nothing")
            except ConnectionError:
                pass
            stranger.close()
        self.assertIsNone(job.command.poll(), "the job was over before the strangers were")
        self.assertTrue(until(lambda: len(os.listdir(f"/proc/{coordinator}/fd")) <= files_before), "all are closed")
        self.check_sums(job, closures)
        lines = re.findall(r"late door: .*", job.stderr)
        print("\n".join(lines), file=sys.stderr)
        self.assertRegex(lines[0], r"the connection from 127.0.0.1:\d+ is refused: ")
        self.assertLess(len(lines), 10, "one line stands for many")
        self.assertEqual(self.capstan("status", self.run_dir).returncode, 2)

    def test_three_join_and_two_leave(self):
        closures = 8000
        job = self.start_sums(closures, 3, env={"CAPSTAN_WAIT_TIMEOUT": "50s"})
        begin = time.monotonic()
        joined = [self.start([CAPSTAN, "join", self.run_dir]) for _ in range(3)]
        for index in (1, 2, 3):
            self.assertTrue(job.wait_for_text(rf"worker {index} \(rank \d+ on {HOST}\) has joined"), job.stderr)
        print(f"all three had joined after {time.monotonic() - begin:.2f} s", file=sys.stderr)
        self.assertRegex(self.capstan("status", self.run_dir).stdout, r"1 ps, 4 workers\n")
        time.sleep(1)
        for worker in joined[:2]:
            os.kill(worker.command.pid, signal.SIGTERM)
        for worker in joined[:2]:
            self.assertEqual(self.exit_code(worker), 0, worker.stderr)
        self.assertIsNone(job.command.poll(), "the job was over before they left")
        figures = self.check_sums(job, closures)
        self.assertEqual(figures["workers"], "2")
        left = [int(count) for count in re.findall(r"has left after (\d+) functions", job.stderr)]
        self.assertEqual(len(left), 2, job.stderr)
        self.assertGreater(min(left), 0, "work had spread to them")
        self.assertNotIn("is gone", job.stderr)
        self.assertEqual(self.exit_code(joined[2]), 0, "the job's end is its end")

    def test_one_that_joined_is_killed(self):
        closures = 3000
        job = self.start_sums(closures, 3)
        worker = self.start([CAPSTAN, "join", self.run_dir])
        self.assertTrue(job.wait_for_text("has joined"), job.stderr)
        time.sleep(0.5)
        os.kill(worker.command.pid, signal.SIGKILL)
        self.assertTrue(job.wait_for_text(rf"worker 1 \(rank \d+ on {HOST}\) is gone; its \d+ functions run elsewhere"), job.stderr)
        again = self.start([CAPSTAN, "join", self.run_dir])
        self.assertTrue(job.wait_for_text(rf"worker 2 \(rank \d+ on {HOST}\) has joined"), job.stderr)
        self.check_sums(job, closures)
        self.assertEqual(self.exit_code(again), 0, again.stderr)

    def test_who_does_not_fit_is_refused(self):
        job = self.start_sums(20000, 3, "--capstan-late-workers=0")
        self.assertIn("all 0 places", self.capstan("join", self.run_dir).stderr)
        other = self.start([CAPSTAN, "train", "lr", "--data", "none", "--join", self.run_dir])
        self.assertNotEqual(self.exit_code(other), 0)
        self.assertIn("is another build than the job's", other.stderr)
        second = self.start([SUMS, 10, "--capstan-ps=1", f"--capstan-run-dir={self.run_dir}"], 3)
        self.assertNotEqual(self.exit_code(second), 0)
        self.assertIn("another job that runs has it", second.stderr)
        # The coordinator dies; its agent clears the run directory.
        os.kill(job.ranks()[0][1], signal.SIGKILL)
        self.assertNotEqual(self.exit_code(job), 0)
        self.assertFalse(self.file.exists())


if __name__ == "__main__":
    main()
