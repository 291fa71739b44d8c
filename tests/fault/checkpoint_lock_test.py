#!/usr/bin/env python3
"""Two jobs with one checkpoint directory: until the first ends or is killed, the second is rejected, and its error names the first."""
import pathlib
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import BIN, JobTest, kill_and_await_death, main


class CheckpointLock(JobTest):
    def command(self, what):
        return [BIN / "checkpoint_memory", self.directory, 1, what, "--capstan-ps=1"]

    def holder(self):
        """Starts a job that has restored and waits; returns it and the pid of its coordinator."""
        self.run_to_end(self.command("save"), 3)
        (self.directory / "create").touch()
        job = self.start(self.command("restore"), 3)
        self.assertIsNotNone(job.wait_for_text("before restore"), job.stderr)
        return job, job.ranks()[0][1]

    def refused(self, pid):
        second = self.start(self.command("save"), 3)
        self.assertNotEqual(self.exit_code(second), 0)
        self.assertIn(f"another job writes checkpoints to {self.directory}/checkpoints: process {pid} on "
                      f"{socket.gethostname()} since 20", second.stderr)

    def test_second_job_is_rejected_until_the_first_ends(self):
        first, pid = self.holder()
        self.refused(pid)
        (self.directory / "restore").touch()
        (self.directory / "end").touch()
        self.assertEqual(self.exit_code(first), 0, first.stderr)
        self.run_to_end(self.command("save"), 3)

    def test_killed_coordinator_releases_the_lock(self):
        first, pid = self.holder()
        kill_and_await_death(pid)
        self.run_to_end(self.command("save"), 3)  # the first job's other ranks may still be running
        self.assertNotEqual(self.exit_code(first), 0)


if __name__ == "__main__":
    main()
