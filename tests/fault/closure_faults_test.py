#!/usr/bin/env python3
"""Faults of closures, and a ps without memory or disk space, give named errors; the cluster continues and leaves nothing behind."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import BIN, HOST, LONG_TIMEOUTS, JobTest, main

PROGRAM = BIN / "closure_faults"
RANKS, PS = 5, 2


class ClosureFaults(JobTest):
    environment = LONG_TIMEOUTS

    def lines(self, *arguments):
        """Runs the program; returns its lines as (name, rest). Every healthy step must have counted."""
        options = [f"--capstan-ps={PS}", "--capstan-deadline-grace=500ms"]
        self.job = self.run_to_end([PROGRAM, *arguments, *options], RANKS)
        lines = [line.partition(" ")[::2] for line in self.job.stdout.splitlines()]
        works = [int(rest) for what, rest in lines if what == "works"]
        self.assertEqual(works, [50 * (i + 1) for i in range(len(works))])
        self.assertNotIn("wrong", [what for what, _ in lines])
        return [line for line in lines if line[0] != "works"]

    def test_errors_of_functions(self):
        lines = self.lines("errors")
        self.assertEqual([what for what, _ in lines], ["own", "number", "closure-memory"] * 2)
        for own, number, memory in (lines[:3], lines[3:]):
            self.assertEqual(own[1], "unknown: no foot fits shoe 43")
            self.assertEqual(number[1], "unknown: the function threw an object that is not a std::exception")
            self.assertRegex(memory[1], rf"resource_exhausted: .* worker \d \(rank \d on {HOST}\): std::bad_alloc")

    def test_ps_without_memory_for_a_variable(self):
        lines = self.lines("memory", self.directory)
        self.assertEqual([what for what, _ in lines], ["ps-memory", "ps-slots", "half"] * 3 + ["huge", "saved"])
        for memory, slots, half in (lines[0:3], lines[3:6], lines[6:9]):
            rows = 2**31
            self.assertRegex(memory[1], rf'^resource_exhausted: .*shard huge\S* of variable "huge" on ps \d: {rows} rows, '
                                        rf"{rows * 1024 * 4} bytes with ")
            self.assertIn(f"{rows * 128 * 8 * 3} bytes with", slots[1])
            self.assertIn("no foot fits shoe 12", half[1])
        self.assertEqual(lines[9][1], "3 half 4")

    def test_function_that_never_ends(self):
        lines = self.lines("endless")
        self.assertEqual(lines, [("endless", "deadline_exceeded: a function had not ended at its deadline")] * 2)
        given_up = re.findall(r"never_end ran 500 ms past its deadline \(--deadline-grace\) on worker \d", self.job.stderr)
        self.assertGreaterEqual(len(given_up), 2, self.job.stderr)
        self.assertIn("it is started again", self.job.stderr)

    def test_a_full_disk(self):
        disk = self.small_disk("40m")
        lines = self.lines("disk", disk)
        self.assertEqual([what for what, _ in lines], ["closure-disk", "save", "save", "latest", "latest", "weights"])
        self.assertEqual(lines[0][1], f"unknown: {disk}/filler: No space left on device")
        for _, save in lines[1:3]:
            self.assertRegex(save, rf"^resource_exhausted: .*{disk}/checkpoints/\S*2.*No space left on device")
        self.assertEqual([rest for _, rest in lines[3:]], ["1", "3", "2"])

    def test_a_disk_with_space_for_the_part_of_one_ps(self):
        disk = self.small_disk("48m")
        (disk / "filler").write_bytes(bytes(20 << 20))
        lines = self.lines("disk-of-one", disk)
        self.assertEqual([what for what, _ in lines], ["save", "save", "restored", "there", "there", "restored"])
        for _, save in lines[:2]:
            self.assertRegex(save, rf"^resource_exhausted: .*{disk}/checkpoints/checkpoint-00000002.tmp/part-0000\d-of-00002-[0-9a-f]{{16}}.h5: "
                                   "No space left on device")
        self.assertEqual([rest for _, rest in lines[2:]], ["1 1 1", "checkpoint-00000001", "checkpoint-00000003", "3 3 3"])

    def directory_with_quota(self, size):
        if os.geteuid() != 0:
            self.skipTest("a directory with a quota needs root, to mount it")
        if shutil.which("mkfs.btrfs") is None:
            self.skipTest("a directory with a quota needs btrfs (Debian: btrfs-progs)")
        image, disk = self.directory / "image", self.directory / "quota"
        with image.open("wb") as file:
            file.truncate(256 << 20)
        disk.mkdir()
        for command in (["mkfs.btrfs", "--quiet", image], ["mount", "-o", "loop", image, disk]):
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                self.skipTest(f"no btrfs here: {done.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", disk], check=True)
        limited = disk / "limited"
        for command in (["quota", "enable", disk], ["subvolume", "create", limited], ["qgroup", "limit", size, limited]):
            subprocess.run(["btrfs", *command], check=True, capture_output=True)
        return limited

    def test_a_quota_with_space_for_the_part_of_one_ps(self):
        directory = self.directory_with_quota("48M")
        (directory / "filler").write_bytes(bytes(20 << 20))
        os.sync()
        lines = self.lines("disk-of-one", directory)
        self.assertEqual([what for what, _ in lines], ["save", "save", "restored", "there", "there", "restored"])
        for _, save in lines[:2]:
            self.assertRegex(save, rf"^resource_exhausted: .*{directory}/checkpoints/checkpoint-00000002.tmp/part-0000\d-of-00002-[0-9a-f]{{16}}.h5: "
                                   "Disk quota exceeded")
        self.assertEqual([rest for _, rest in lines[2:]], ["1 1 1", "checkpoint-00000001", "checkpoint-00000003", "3 3 3"])


if __name__ == "__main__":
    main()
