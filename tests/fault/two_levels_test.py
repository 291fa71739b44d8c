#!/usr/bin/env python3
"""Checkpoints through --checkpoint-fast-dir: the job or a ps is killed, or the disk space of either level is exhausted."""
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import BIN, CAPSTAN, HOST, LONG_TIMEOUTS, JobTest, Roles, child_of, main

PROGRAM = BIN / "two_levels"
SLOW = "--capstan-checkpoint-bandwidth=2MiB"
# Draining a part takes four seconds with SLOWER, and longer than any test with CRAWLING.
SLOWER, CRAWLING = "--capstan-checkpoint-bandwidth=1MiB", "--capstan-checkpoint-bandwidth=32KiB"


class TwoLevels(JobTest):
    environment = LONG_TIMEOUTS

    def setUp(self):
        super().setUp()
        self.durable, self.fast = self.directory / "run", self.directory / "fast"

    def begin_on_two_hosts(self, first, last, *options):
        """Gives ps 1 its own disk for the fast level, as on another host."""
        if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
            self.skipTest("mounting a disk that only one rank sees needs root")
        self.fast.mkdir(exist_ok=True)
        script = ('[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" != 3 ] && exec "$@"; '
                  'exec unshare -m sh -c \'mount -t tmpfs tmpfs "$0" && exec "$@"\' "$0" "$@"')
        return self.start(["sh", "-c", script, self.fast, PROGRAM, self.durable, first, last, 4, "--capstan-ps=2",
                           f"--capstan-checkpoint-fast-dir={self.fast}", *options], 4)

    def begin(self, first, last, *options, ps=2, fast=None, durable=None, mebibytes=4):
        """Each of two ps drains 4 MiB (4 MiB of rows and as much of a slot in all), which takes 2 s when it is SLOW."""
        level = f"--capstan-checkpoint-fast-dir={fast or self.fast}"
        return self.start([PROGRAM, durable or self.durable, first, last, mebibytes, f"--capstan-ps={ps}", level, *options], ps + 2)

    def lines(self, job):
        self.assertEqual(self.exit_code(job, 120), 0, job.stdout + job.stderr)
        return job.stdout.splitlines()

    def wait_for_file(self, job, directory, pattern):
        found = job.wait_for(lambda: list(directory.glob(pattern)))
        self.assertTrue(found, job.stderr)
        return found[0]

    def kill_all(self, job):
        os.kill(job.command.pid, signal.SIGSTOP)  # the launcher, so that it does not shut the job down
        for pid in set(job.processes()) - {job.command.pid}:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        os.kill(job.command.pid, signal.SIGKILL)
        job.wait(30)
        self.assert_all_gone(job)

    def killed_between_levels(self, first=1, last=2):
        self.lines(self.begin(first, first))
        job = self.begin(last, last, CRAWLING)
        self.wait_for_stderr(job, f"begins to save {last}")
        checkpoint = self.wait_for_file(job, self.fast, f"checkpoints-*/checkpoint-{last:08}/manifest.json").parent
        self.kill_all(job)
        self.assertEqual(sorted(path.name for path in self.durable.glob("checkpoint-*")),
                         [f"checkpoint-{first:08}", f"checkpoint-{last:08}.tmp"])
        return checkpoint

    def assert_durable(self, *steps, directory=None):
        """Checks that the durable level has exactly these steps, complete, and that the fast level is empty."""
        directory = directory or self.durable
        self.assertEqual(sorted(path.name for path in directory.glob("checkpoint-*")), [f"checkpoint-{step:08}" for step in steps])
        verified = subprocess.run([CAPSTAN, "checkpoint", "verify", directory], capture_output=True, text=True, timeout=60)
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)
        self.assertEqual(list(self.fast.glob("*")), [])

    def test_healthy_job(self):
        job = self.begin(1, 3)
        self.assertEqual(self.lines(job), ["restored -1 complete 0", "again 3 complete 30"])
        self.assert_durable(1, 2, 3)
        self.assertEqual(job.warnings(), [])

    def test_job_with_one_ps(self):
        self.assertEqual(self.lines(self.begin(1, 1, ps=1)), ["restored -1 complete 0", "again 1 complete 10"])
        self.assert_durable(1)

    def test_next_job_completes_a_checkpoint_of_a_killed_job(self):
        self.killed_between_levels()
        job = self.begin(3, 3, ps=3)
        self.assertEqual(self.lines(job), ["restored 2 complete 20", "again 3 complete 30"])
        self.assert_durable(1, 2, 3)

    def test_next_job_skips_a_damaged_checkpoint_of_a_killed_job(self):
        checkpoint = self.killed_between_levels()
        part = next(checkpoint.glob("part-00001-of-00002-*.h5"))
        with open(part, "r+b") as file:
            file.seek(part.stat().st_size // 2)
            byte = file.read(1)[0]
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte ^ 4]))
        job = self.begin(3, 3)
        self.assertEqual(self.lines(job), ["restored 1 complete 10", "again 3 complete 20"])
        self.assertIn(f"{checkpoint}: {part} is damaged", job.stderr)
        self.assert_durable(1, 3)

    def test_job_is_killed_at_any_time(self):
        last = 0
        for delay in (0, 0.02, 0.1, 0.4, 1.5):
            step = last + 1
            job = self.begin(step, step, SLOW)
            self.wait_for_stderr(job, f"begins to save {step}")
            time.sleep(delay)  # the kill falls before, during and after the drain
            self.kill_all(job)
            expected = f"restored {last} complete" if last else "restored -1 complete"
            self.assertTrue(job.stdout.startswith(expected), job.stdout)
            # The next job finds this checkpoint, or the one before.
            job = self.begin(step + 1, step + 1)
            restored, again = self.lines(job)
            self.assertRegex(restored, rf"restored ({step}|{last or -1}) complete")
            last = step + 1
            self.assertRegex(again, rf"again {last} complete")
            self.assertEqual(list(self.fast.glob("*")), [])
            self.assertEqual(list(self.durable.glob("*.tmp")), [])

    def test_ps_dies_while_it_drains(self):
        job = self.begin(1, 2, SLOWER)
        self.wait_for_stderr(job, "begins to save 1")
        self.wait_for_file(job, self.fast, "checkpoints-*/checkpoint-00000001/manifest.json")
        os.kill(child_of(job.ranks()[Roles(4, 2).ps[1]][0]), signal.SIGKILL)
        self.assertEqual(self.lines(job), ["restored -1 complete 0", "again 2 complete 20"])
        self.assertRegex(job.stderr, rf"ps 1 \(rank \d on {HOST}\) has recovered")
        self.assert_durable(1, 2)

    def test_fast_level_that_the_coordinator_does_not_see(self):
        self.assertEqual(self.lines(self.begin_on_two_hosts(1, 2)), ["restored -1 complete 0", "again 2 complete 20"])
        self.assert_durable(1, 2)
        job = self.begin_on_two_hosts(3, 3, CRAWLING)
        self.wait_for_stderr(job, "begins to save 3")
        self.wait_for_file(job, self.durable, "checkpoint-00000003.tmp/part-00001-of-00002-*.h5")
        time.sleep(0.3)  # the coordinator must not publish the checkpoint meanwhile
        self.assertEqual([path.name for path in self.fast.glob("checkpoints-*/checkpoint-*")], ["checkpoint-00000003.tmp"])
        self.kill_all(job)
        job = self.begin_on_two_hosts(4, 4)
        self.assertEqual(self.lines(job), ["restored 2 complete 20", "again 4 complete 30"])
        self.assertEqual(job.warnings(), [])
        self.assert_durable(1, 2, 4)

    def test_full_fast_level(self):
        # No space for any part, then space for the part of one of two ps. Each ps warns once.
        disk = self.small_disk("6m")
        for fast, ps in ((disk / "a", 1), (disk / "b", 2)):
            durable = self.directory / fast.name
            job = self.begin(1, 3, ps=ps, fast=fast, durable=durable)
            self.assertEqual(self.lines(job), ["restored -1 complete 0", "again 3 complete 30"])
            self.assertIn(job.stderr.count("cannot use --checkpoint-fast-dir"), range(1, ps + 1), job.stderr)
            self.assertRegex(job.stderr, rf"--checkpoint-fast-dir on {HOST}.*{fast}.*No space left on device")
            self.assert_durable(1, 2, 3, directory=durable)
            self.assertEqual(list(fast.glob("*")), [])

    def test_fast_level_that_cannot_be_created(self):
        (self.directory / "file").write_text("")
        for name, fast in ("a", "/proc/none"), ("b", self.directory / "file" / "fast"):
            durable = self.directory / name
            job = self.begin(1, 2, fast=fast, durable=durable)
            self.assertEqual(self.lines(job), ["restored -1 complete 0", "again 2 complete 20"])
            self.assertEqual(job.stderr.count("--checkpoint-fast-dir"), 3, job.stderr)
            self.assert_durable(1, 2, directory=durable)

    def test_full_durable_level(self):
        # There is space for the first checkpoint only. The second stays in the fast level until there is space.
        disk = self.small_disk("12m")
        job = self.begin(1, 2, durable=disk / "run")
        self.assertRegex(self.lines(job)[-1],
                         rf"resource_exhausted: .* {disk}/run/checkpoint-00000002.tmp/part-\S+: No space left on device")
        checkpoint = self.wait_for_file(job, self.fast, "checkpoints-*/checkpoint-00000002")
        self.assertRegex(self.lines(self.begin(3, 3, durable=disk / "run"))[-1],
                         rf"resource_exhausted: .*{checkpoint}.* newer .*{disk}/run.*No space left on device")
        subprocess.run(["mount", "-o", "remount,size=40m", disk], check=True)
        self.assertEqual(self.lines(self.begin(3, 3, durable=disk / "run")), ["restored 2 complete 20", "again 3 complete 30"])
        self.assert_durable(1, 2, 3, directory=disk / "run")


if __name__ == "__main__":
    main()
