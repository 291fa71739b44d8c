#!/usr/bin/env python3
"""`capstan checkpoint compact`, `reshard` and `import`: the result is a regular checkpoint."""
# Tests: launch/checkpoint/request.hpp
# Tests: io/hdf5/foreign_dataset.cpp
# Tests: launch/checkpoint/compact.cpp
# Tests: launch/checkpoint/copy.cpp
# Tests: launch/checkpoint/import_source.cpp
# Tests: launch/checkpoint/reshard.cpp
import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import sys

import h5py
import numpy
from checkpoint_files import (DAMAGED, DTYPES, ENVIRONMENT, PROGRAM, USAGE, CheckpointTest, bfloat16, file_limit, flip_byte, main, make,
                              place_of, run, sample_arrays)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import small_graph


class Compact(CheckpointTest):
    def setUp(self):
        super().setUp()
        self.before = sample_arrays()
        self.base = make(self.run_dir, self.before, step=10, parts=2)
        self.after, self.changed = {}, {}
        for (variable, which), (dtype, array) in self.before.items():
            array = array.copy()
            self.changed[variable] = [row for row in range(len(array)) if row % 3 == 1]
            array[self.changed[variable]] = array[::-1][self.changed[variable]]
            self.after[variable, which] = (dtype, array)
        self.state = {"epoch": 3}
        self.increment = make(self.run_dir, self.after, parts=3, user_state=self.state, counters={"n": 4}, base=self.base,
                              changed=self.changed)
        self.whole = make(self.directory / "whole", self.after, parts=3, user_state=self.state, counters={"n": 4})

    def test_increment_equals_a_full_checkpoint(self):
        self.ok("verify", self.increment)
        self.ok("diff", self.increment, self.whole)
        self.assertEqual(run("diff", self.base, self.increment).returncode, 1)
        shown, whole = self.ok_json("show", self.increment), self.ok_json("show", self.whole)
        self.assertEqual((shown["version"], shown["base"], whole["version"], whole["base"]), (2, "checkpoint-00000010", 1, None))
        self.assertEqual(shown["variables"], whole["variables"])
        self.assertIn("rows that changed since checkpoint-00000010: ", self.ok("show", self.increment))
        self.assertIn("complete, changes since checkpoint-00000010, latest", self.ok("list", self.run_dir))
        for directory in (self.increment, self.whole):
            self.ok("export", directory, self.directory / f"{directory.parent.name}.npz", "--slots")
        numbers, expected = (numpy.load(self.directory / f"{name}.npz") for name in (self.run_dir.name, "whole"))
        self.assertEqual(sorted(numbers), sorted(expected))
        for name in numbers:
            self.same(numbers[name], expected[name])
        self.ok("reshard", self.increment, self.directory / "resharded", "--parts", 5)
        self.ok("diff", self.directory / "resharded", self.whole)

    def test_compacts_in_place(self):
        self.assertIn("checkpoint-00000010", self.ok("compact", self.run_dir))
        shutil.rmtree(self.base)
        self.ok("verify", self.run_dir)
        self.ok("diff", self.increment, self.whole)
        shown = self.ok_json("show", self.increment)
        self.assertEqual((shown["version"], shown["user_state"], shown["counters"], shown["parts"]), (1, self.state, {"n": 4}, 3))
        self.assertEqual(sorted(path.name for path in self.run_dir.iterdir()), ["checkpoint-00000012", "latest", "lock"])
        self.assertIsNone(self.ok_json("compact", self.increment)["base"])

    def test_shards_keep_their_rows_and_steps(self):
        before = self.ok_json("show", self.increment)["variables"]
        self.ok("compact", self.increment)
        self.assertEqual(self.ok_json("show", self.increment)["variables"], before)

    def test_rejects_a_copy_with_another_name(self):
        shutil.copytree(self.increment, self.run_dir / "best")
        self.refused(USAGE, "is of step 12", "checkpoint-00000012", words=["compact", self.run_dir / "best"])
        self.assertEqual(self.ok_json("show", self.increment, "--no-norms")["version"], 2)

    def test_damaged_base_changes_nothing(self):
        part, at = place_of(self.base, "entities/embedding")
        flip_byte(part, at)
        self.refused(DAMAGED, part.name, "entities/embedding", words=["compact", self.run_dir])
        self.assertEqual(self.ok_json("show", self.increment, "--no-norms")["version"], 2)
        done = run("verify", self.increment, "--json")
        self.assertEqual(done.returncode, DAMAGED)
        faults = json.loads(done.stdout)["checkpoints"][0]["faults"]
        self.assertEqual([fault["file"] for fault in faults], ["../checkpoint-00000010/" + part.name])

    def test_h5py_merges_the_rows(self):
        with h5py.File(self.base / "checkpoint.h5") as base, h5py.File(self.increment / "checkpoint.h5") as increment:
            self.assertEqual((increment.attrs["version"], increment.attrs["base"]), (2, "checkpoint-00000010"))
            for (variable, which), (dtype, array) in self.after.items():
                path = f"variables/{variable}/{'' if which == 'value' else 'slots/'}{which}"
                whole = base[path][...]
                changes = increment[f"variables/{variable}"]
                whole[changes["changed_rows"][...]] = increment[path][...]
                if dtype != "bfloat16":
                    self.same(whole, array)


class Reshard(CheckpointTest):
    def setUp(self):
        super().setUp()
        self.arrays = sample_arrays()
        self.state = {"epoch": 3, "loss": 0.1}
        self.counters = {"examples": 2**53 + 1}
        self.positions = {"splits": {"done": [[0, 4]], "seed": 2**53 + 1}}
        self.checkpoint = make(self.run_dir, self.arrays, parts=3, user_state=self.state, positions=self.positions, settings={"dim": 7},
                               counters=self.counters)
        self.out = self.directory / "out"

    def test_the_same_arrays_in_any_number_of_parts(self):
        for parts in (1, 2, 3, 8, 150):
            with self.subTest(parts=parts):
                out = self.directory / f"out{parts}"
                directory = out / "checkpoint-00000012"
                self.assertEqual(self.ok_json("reshard", self.run_dir, out, "--parts", parts),
                                 {"from": str(self.checkpoint), "path": str(directory), "step": 12, "parts_before": 3, "parts": parts})
                self.assertEqual(len(list(directory.glob("part-*"))), parts)
                self.ok("verify", directory)
                self.ok("diff", self.checkpoint, directory)
                shown = self.ok_json("show", directory)
                self.assertEqual((shown["user_state"], shown["positions"], shown["counters"], shown["settings"]),
                                 (self.state, self.positions, self.counters, {"dim": 7}))
                with h5py.File(directory / "checkpoint.h5") as master:
                    for (variable, which), (dtype, array) in self.arrays.items():
                        if dtype != "bfloat16":
                            self.same(master[f"variables/{variable}/{'' if which == 'value' else 'slots/'}{which}"][...], array)
                self.assertEqual((out / "latest").read_text(), "checkpoint-00000012\n")
                self.assertEqual(sorted(path.name for path in out.iterdir()), ["checkpoint-00000012", "latest", "lock"])

    def test_steps_are_the_maximum_of_the_source_shards(self):
        self.ok("reshard", self.checkpoint, self.out, "--parts", 6)
        shards = self.ok_json("show", self.out, "--no-norms")["variables"]["entities/embedding"]["shards"]
        # Source shards: 34 rows with 1000 steps, 34 with 1001, 33 with 1002.
        self.assertEqual([(s["first_row"], s["rows"], s["steps"]) for s in shards],
                         [(0, 17, 1000), (17, 17, 1000), (34, 17, 1001), (51, 17, 1001), (68, 17, 1002), (85, 16, 1002)])
        self.ok("reshard", self.out, self.out, "--parts", 2, "--force")
        shown = self.ok_json("show", self.out, "--no-norms")
        self.assertEqual([(s["rows"], s["steps"]) for s in shown["variables"]["entities/embedding"]["shards"]], [(51, 1001), (50, 1002)])
        self.assertEqual(shown["variables"]["empty"]["steps"], 1002)
        self.ok("diff", self.checkpoint, self.out)

    def test_training_resumes_from_it(self):
        graph = small_graph.write(self.directory / "graph")
        train = [PROGRAM, "train", "kge", "--data", graph, "--dim", 16, "--negatives", 8, "--batch", 64]
        saved, summary = self.directory / "saved", self.directory / "summary.json"
        self.train([*train, "--epochs", 2, "--checkpoint-dir", saved])
        self.ok("reshard", saved, self.out, "--parts", 3)
        self.train([*train, "--epochs", 3, "--checkpoint-dir", self.out, "--resume", "--summary", summary])
        self.assertIn(str(self.out), json.dumps(json.loads(summary.read_text())))
        self.assertEqual([c["step"] for c in self.ok_json("list", self.out, "--verify")["checkpoints"]], [2, 3])

    def train(self, command):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("CAPSTAN_")}
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60, env=clean)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_overwrites_only_with_force(self):
        make(self.out, self.arrays, step=11)
        make(self.out, {("w", "value"): ("int32", numpy.arange(3))})
        words = ["reshard", self.checkpoint, self.out, "--parts", 2]
        self.refused(USAGE, "checkpoint-00000012", "--force", words=words)
        self.ok(*words, "--force")
        self.ok("diff", self.checkpoint, self.out)
        self.assertEqual([c["step"] for c in self.ok_json("list", self.out)["checkpoints"]], [11, 12])

    def test_directory_locked_by_a_job(self):
        (self.out / "checkpoint-00000099.tmp").mkdir(parents=True)
        words = ["reshard", self.checkpoint, self.out, "--parts", 2]
        with open(self.out / "lock", "w") as lock:
            lock.write("process 7 on node1\n")
            lock.flush()
            fcntl.flock(lock, fcntl.LOCK_EX)
            for force in ([], ["--force"]):
                self.refused(USAGE, "process 7 on node1", words=[*words, *force])
            self.assertTrue((self.out / "checkpoint-00000099.tmp").exists())
        self.ok(*words)
        self.assertFalse((self.out / "checkpoint-00000099.tmp").exists())

    def test_invalid_input(self):
        for parts in (0, -1, 100_000):
            self.refused(USAGE, f"--parts {parts}: expected 1 to", words=["reshard", self.checkpoint, self.out, "--parts", parts])
        self.refused(USAGE, "--parts is required", words=["reshard", self.checkpoint, self.out])
        self.refused(USAGE, f"{self.checkpoint} is a checkpoint", words=["reshard", self.checkpoint, self.checkpoint, "--parts", 2])
        part, offset = place_of(self.checkpoint, "entities/embedding", "accumulator")
        flip_byte(part, offset)
        self.refused(DAMAGED, part.name, "slots/accumulator", words=["reshard", self.checkpoint, self.out, "--parts", 2])
        self.assertFalse(self.out.exists())
        flip_byte(part, offset)
        large = make(self.directory / "large", {("t", "value"): ("float32", numpy.ones((100_000, 4)))})
        self.refused(ENVIRONMENT, "File too large", words=["reshard", large, self.out, "--parts", 1], **file_limit(1_000_000))
        self.assertFalse(self.out.exists())


class Import(CheckpointTest):
    def setUp(self):
        super().setUp()
        self.out = self.directory / "out"
        self.file = self.directory / "array.npy"

    def imported(self, file, *options, variable="pre/trained"):
        directory = self.ok_json("import", file, self.out, "--variable", variable, "--force", *options)["path"]
        self.ok("verify", directory)
        with h5py.File(pathlib.Path(directory, "checkpoint.h5")) as master:
            return master[f"variables/{variable}/value"][...]

    def test_npy_of_every_dtype(self):
        for (_, which), (dtype, array) in sample_arrays().items():
            if which == "value" and dtype != "bfloat16":
                numpy.save(self.file, array)
                self.same(self.imported(self.file), array)
        numpy.save(self.file, numpy.float64(2.5))
        self.same(self.imported(self.file), numpy.array([2.5]))
        with open(self.file, "wb") as stream:
            numpy.lib.format.write_array(stream, numpy.arange(6).reshape(2, 3), version=(3, 0))
        self.same(self.imported(self.file), numpy.arange(6).reshape(2, 3))

    def test_content_of_the_checkpoint(self):
        numpy.save(self.file, numpy.ones((5, 2), "<f4"))
        self.imported(self.file, "--step", 7)
        shown = self.ok_json("show", self.out)
        self.assertEqual((shown["step"], shown["parts"], shown["user_state"], shown["settings"]), (7, 1, None, {}))
        variable = shown["variables"]["pre/trained"]
        self.assertEqual((variable["dtype"], variable["shape"], variable["optimizer"], variable["slots"], variable["steps"]),
                         ("float32", [5, 2], "sgd(imported)", {}, 0))

    def test_slots_of_an_optimizer(self):
        numpy.save(self.file, numpy.ones((5, 2), "<f2"))
        self.imported(self.file, "--optimizer", "ftrl", "--initial-accumulator", 0.5)
        variable = self.ok_json("show", self.out)["variables"]["pre/trained"]
        self.assertEqual(variable["optimizer"], "ftrl(imported)")
        self.assertEqual({name: (slot["dtype"], slot["shape"], slot["norms"]["min"], slot["norms"]["max"])
                          for name, slot in variable["slots"].items()},
                         {"accumulator": ("float32", [5, 2], 0.5, 0.5), "linear": ("float32", [5, 2], 0, 0)})
        words = ["import", self.file, self.out, "--variable", "w", "--force"]
        self.refused(USAGE, "--optimizer adagard: expected sgd, momentum, adagrad", words=[*words, "--optimizer", "adagard"])
        numpy.save(self.file, numpy.arange(3))
        self.refused(USAGE, "--optimizer adam: the array is int64", words=[*words, "--optimizer", "adam"])

    def test_round_trip_with_export(self):
        arrays = sample_arrays()
        make(self.run_dir, {("t", "value"): arrays["entities/embedding", "value"]})
        self.ok("export", self.run_dir, self.file)
        self.imported(self.file, variable="t", *[])
        self.ok("diff", self.run_dir, self.out, code=1)  # the optimizer
        self.assertEqual([d["what"] for d in self.ok_json("diff", self.run_dir, self.out, code=1)["differences"]], ["optimizer"])

    def test_unsupported_npy_files(self):
        for array, text in ((numpy.ones((2, 2), complex), "'<c16'"), (numpy.ones(3, ">f4"), "'>f4'"), (numpy.ones(3, "u1"), "'|u1'"),
                            (numpy.zeros(2, [("a", "i4")]), "structured"),
                            (numpy.asfortranarray(numpy.ones((2, 3))), "ascontiguousarray")):
            numpy.save(self.file, array)
            self.refused(USAGE, str(self.file), text, words=["import", self.file, self.out, "--variable", "w"])
        numpy.save(self.file, numpy.ones(3, "?"))
        flip_byte(self.file, self.file.stat().st_size - 1)
        self.refused(DAMAGED, "neither 0 nor 1", words=["import", self.file, self.out, "--variable", "w"])
        numpy.save(self.file, numpy.ones(300))
        whole = self.file.read_bytes()
        for length in (0, 5, 9, 40, 127, 200, len(whole) - 1):
            self.file.write_bytes(whole[:length])
            self.refused(DAMAGED, str(self.file), words=["import", self.file, self.out, "--variable", "w"])
        self.file.write_bytes(whole + b"x")
        self.refused(DAMAGED, "2401 bytes", "2400", "(300)", words=["import", self.file, self.out, "--variable", "w"])
        self.file.write_bytes(whole.replace(b"(300,)", b"(3e0,)"))
        self.refused(DAMAGED, str(self.file), "(3e0,)", words=["import", self.file, self.out, "--variable", "w"])
        self.assertFalse(self.out.exists())

    def test_hdf5_types_and_layouts(self):
        random = numpy.random.default_rng(3)
        table = random.standard_normal((3000, 20)).astype("<f4")
        file = self.directory / "file.h5"
        with h5py.File(file, "w") as to:
            to["deep/table"] = table
            to.create_dataset("packed", data=table, chunks=(100, 20), compression="gzip", shuffle=True)
            to["big_endian"] = table.astype(">f8")
            to["bytes"] = numpy.arange(256, dtype="u1")
            to["words"] = numpy.array([2**32 - 1, 0], "u4")
            to["half"] = table[:7].astype("<f2")
            to["flags"] = numpy.array([True, False, True])
            to["scalar"] = 4.5
            to["none"] = numpy.zeros((0, 3), "<f4")
            brain = h5py.h5t.IEEE_F32LE.copy()
            brain.set_fields(15, 7, 8, 0, 7)
            brain.set_ebias(127)
            brain.set_size(2)
            dataset = h5py.h5d.create(to.id, b"brain", brain, h5py.h5s.create_simple((16,)))
            dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, numpy.arange(-8, 8, dtype="<f4") / 4)
            to["texts"] = [b"a", b"b"]
            to["huge"] = numpy.array([2**64 - 1], "u8")
            to["link"] = h5py.SoftLink("/nowhere")
        for name, expected in (("deep/table", table), ("/packed", table), ("big_endian", table.astype("<f8")),
                               ("bytes", numpy.arange(256, dtype="<i4")), ("words", numpy.array([2**32 - 1, 0])),
                               ("half", table[:7].astype("<f2")), ("flags", numpy.array([True, False, True])),
                               ("scalar", numpy.array([4.5])), ("none", numpy.zeros((0, 3), "<f4"))):
            with self.subTest(name):
                self.same(self.imported(file, "--dataset", name), expected)
        self.imported(file, "--dataset", "brain")
        raw, offset = place_of(self.out / "checkpoint-00000000", "pre/trained")
        self.assertEqual(raw.read_bytes()[offset:][:32], bfloat16(numpy.arange(-8, 8) / 4).tobytes())
        self.assertEqual(self.ok_json("show", self.out)["variables"]["pre/trained"]["dtype"], "bfloat16")
        words = ["import", file, self.out, "--variable", "w", "--force"]
        self.refused(USAGE, "12 datasets", "--dataset", "deep/table", words=words)
        self.refused(USAGE, 'no dataset "tabel"', "deep/table", words=[*words, "--dataset", "tabel"])
        for name in ("texts", "huge"):
            self.refused(USAGE, f'"{name}"', "element", words=[*words, "--dataset", name])
        self.refused(USAGE, 'no dataset "deep"', words=[*words, "--dataset", "deep"])

    def test_the_only_dataset_of_a_file_and_of_a_model(self):
        file = self.directory / "file.hdf5"
        with h5py.File(file, "w") as to:
            to["a/b"] = numpy.arange(4)
        self.same(self.imported(file), numpy.arange(4))
        model = self.directory / "model.h5"
        self.ok("export", self.out, model)
        self.same(self.imported(model, variable="again"), numpy.arange(4))

    def test_invalid_files(self):
        text = self.directory / "text"
        text.write_text("no array")
        self.refused(DAMAGED, f"{text}: ", "HDF5", words=["import", text, self.out, "--variable", "w"])
        text.rename(self.file)
        self.refused(DAMAGED, f"{self.file}: ", ".npy", words=["import", self.file, self.out, "--variable", "w"])
        self.refused(USAGE, "No such file", words=["import", self.directory / "nowhere.h5", self.out, "--variable", "w"])
        numpy.save(self.file, numpy.arange(3))
        self.refused(USAGE, "--dataset a: ", words=["import", self.file, self.out, "--variable", "w", "--dataset", "a"])
        self.refused(USAGE, "--variable is required", words=["import", self.file, self.out])
        self.refused(USAGE, '"a//b"', words=["import", self.file, self.out, "--variable", "a//b"])
        self.refused(USAGE, "a checkpoint of step -1", words=["import", self.file, self.out, "--variable", "w", "--step", -1])
        self.assertEqual([path for path in self.directory.iterdir() if path != self.file], [])

    def test_existing_checkpoint(self):
        numpy.save(self.file, numpy.arange(3))
        self.imported(self.file)
        words = ["import", self.file, self.out, "--variable", "w"]
        self.refused(USAGE, "checkpoint-00000000", "--force", words=words)
        self.ok(*words, "--step", 1)


class Memory(CheckpointTest):
    def peak(self, *words, code=0):
        """Peak resident memory of the program in MiB."""
        with open(os.devnull, "w") as nothing:
            child = subprocess.Popen([PROGRAM, "checkpoint", *map(str, words)], stdout=nothing)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(child.returncode, code)
        return usage.ru_maxrss / 1024

    def test_memory_does_not_grow_with_the_table(self):
        if any(word in pathlib.Path(PROGRAM).read_bytes() for word in (b"__asan_init", b"__tsan_init")):
            self.skipTest("a sanitizer uses additional memory")
        table = numpy.arange(30 << 20, dtype="<f4").reshape(-1, 64)  # 120 MiB
        make(self.run_dir, {("t", "value"): ("float32", table), ("t", "m"): ("float32", table[:10])} , parts=2)
        file, out = self.directory / "t.npy", self.directory / "out"
        base = self.peak("list", self.run_dir)
        for words in (("show", self.run_dir), ("verify", self.run_dir), ("diff", self.run_dir, self.run_dir), ("export", self.run_dir, file),
                      ("export", self.run_dir, self.directory / "m.h5"), ("export", self.run_dir, self.directory / "m.npz"),
                      ("reshard", self.run_dir, out, "--parts", 3), ("import", file, out, "--variable", "t")):
            with self.subTest(words):
                self.assertLess(self.peak(*words), base + 30)


if __name__ == "__main__":
    main()
