#!/usr/bin/env python3
"""Checkpoints of 1, 2, 3 and 5 ps are restored bit for bit by each of these and by one process, with other shards.

Also checks the cost of a restore for a ps: its memory, and the bytes that it reads.
"""
import hashlib
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from gpu import gpu_flags
from job import BIN, JobTest, main

COUNTS = (1, 2, 3, 5)
# Number of shards of a variable for each number of ps; 0 ps is one process.
SHARDS = {0: 4, 1: 1, 2: 3, 3: 3, 5: 7}
MIB = 1 << 20
VALUES = 64 * MIB  # of the large variable; with Adam's slots, it takes three times as much


def arrays_of(checkpoint):
    """Returns {(variable, "value" or slot): (checksum of its bytes, maximum number of steps)}, from all parts."""
    manifest = json.loads((checkpoint / "manifest.json").read_text())
    pieces = {}
    for part in manifest["parts"]:
        content = (checkpoint / part["file"]).read_bytes()
        for dataset in part["datasets"]:
            elements = dataset["rows"]
            for size in dataset["shape"][1:]:
                elements *= size
            width = {"float32": 4, "float64": 8, "int64": 8, "int32": 4, "bfloat16": 2}[dataset["dtype"]]
            rows = content[dataset["offset"] : dataset["offset"] + elements * width]
            key = (dataset["variable"], dataset["which"])
            pieces.setdefault(key, []).append((dataset["first_row"], rows, dataset.get("steps", 0)))
    return {
        key: (hashlib.sha256(b"".join(rows for _, rows, _ in sorted(found))).hexdigest(), max(f[2] for f in found))
        for key, found in pieces.items()
    }


def status(pid, field):
    """Returns the bytes of a field that /proc/PID/status gives in kB."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"/proc/{pid}/status has no {field}")


def bytes_read(pid):
    return int(pathlib.Path(f"/proc/{pid}/io").read_text().split()[1])


class CheckpointCounts(JobTest):
    def counts(self, ps, shards, *words, memory="host"):
        """Runs the program with this number of ps; returns the lines that it prints."""
        command = [BIN / "checkpoint_counts", shards, *words]
        if ps:
            command += [f"--capstan-ps={ps}", *gpu_flags(prefix="--capstan-")]
        job = self.run_to_end(command, 2 + ps if ps else 0, env={"SHARD_MEMORY": memory})
        return job.stdout.split()

    def test_checkpoint_is_restored_by_any_number_of_ps(self):
        saved, later = {}, {}
        for ps in COUNTS:
            directory = self.directory / f"saved-{ps}"
            [later[ps]] = self.counts(ps, SHARDS[ps], "save", directory)
            saved[ps] = arrays_of(directory / "checkpoint-00000001")
        self.assertEqual(len(saved[1]), 14, "six values, and eight slots")
        self.assertEqual(saved[1][("table/rows", "value")][1], 3, "Adam counts one push for each step")
        for ps in COUNTS[1:]:
            self.assertEqual(saved[ps], saved[1], "the same steps give the same bits")
            self.assertEqual(later[ps], later[1])
        for ps in (0, *COUNTS):
            pairs = [(self.directory / f"saved-{n}", self.directory / f"again-{ps}-{n}") for n in COUNTS]
            lines = self.counts(ps, SHARDS[ps], "restore", *[directory for pair in pairs for directory in pair])
            self.assertEqual(lines, [later[1]] * len(COUNTS), f"{ps} ps trained on")
            for source, again in pairs:
                self.assertEqual(arrays_of(again / "checkpoint-00000001"), saved[1], f"{source.name} by {ps} ps")

    def test_gpu_and_host_memory_restore_each_other(self):
        saved = {}
        for memory, ps in (("host", 2), ("device", 1), ("device", 3)):
            directory = self.directory / f"{memory}-{ps}"
            self.counts(ps, SHARDS[ps], "save", directory, memory=memory)
            saved[memory, ps] = arrays_of(directory / "checkpoint-00000001")
        self.assertEqual(saved["device", 3], saved["device", 1], "the same steps give the same bits")
        for (memory, ps), (other, others) in ((("device", 3), ("host", 2)), (("host", 2), ("device", 3))):
            again = self.directory / f"again-{memory}-{ps}"
            self.counts(others, SHARDS[others], "restore", self.directory / f"{memory}-{ps}", again, memory=other)
            self.assertEqual(arrays_of(again / "checkpoint-00000001"), saved[memory, ps])

    def large(self, what, ps):
        # The heap allocates complete slabs; small ones take little more memory than the shards.
        flags = [f"--capstan-ps={ps}", "--capstan-heap-slab-bytes=2MiB"]
        return [BIN / "checkpoint_memory", self.directory, VALUES // MIB, what, *flags]

    def cost(self, ps):
        """Returns two lists, by ps: peak memory less that before its variable was created, and bytes that it read."""
        job = self.start(self.large("restore", ps), 2 + ps)
        pids, base, read = [], [], []
        for step in ("create", "restore", "end"):
            self.assertIsNotNone(job.wait_for_text(f"before {step}"), job.stderr)
            if step == "create":
                ranks = job.ranks()
                pids = [ranks[rank][1] for rank in range(2, 2 + ps)]
                base = [status(pid, "VmRSS") for pid in pids]
            if step == "restore":
                read = [bytes_read(pid) for pid in pids]
            if step == "end":
                read = [bytes_read(pid) - before for pid, before in zip(pids, read, strict=True)]
                peak = [status(pid, "VmHWM") - before for pid, before in zip(pids, base, strict=True)]
            (self.directory / step).touch()
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        for step in ("create", "restore", "end"):
            (self.directory / step).unlink()
        return peak, read

    def test_restore_needs_little_memory_and_reads_each_byte_at_most_twice(self):
        for writers in (2, 1):
            self.run_to_end(self.large("save", writers), 2 + writers)
            for readers in (2, 3):
                shards = 3 * VALUES / readers
                peak, read = self.cost(readers)
                for bytes_of_ps in peak:
                    self.assertGreater(bytes_of_ps, 0.95 * shards, "it holds its shards")
                    self.assertLess(bytes_of_ps, 1.2 * shards, f"{writers} ps wrote, {readers} restore")
                # Read once for the checksums, which one ps compares for all readers of the dataset, and once in place.
                self.assertLess(sum(read), 2 * 3 * VALUES + 2 * MIB)
                if readers == writers:
                    self.assertLess(max(read), 2 * shards + MIB)


if __name__ == "__main__":
    main()
