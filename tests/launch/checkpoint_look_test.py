#!/usr/bin/env python3
"""`capstan checkpoint list`, `show`, `verify` and `diff`, on intact and damaged checkpoints."""
# Tests: io/progress_callback.hpp
# Tests: launch/checkpoint/byte_progress.hpp
# Tests: launch/checkpoint/command_line.cpp
# Tests: launch/checkpoint/compare.cpp
# Tests: launch/checkpoint/diff.cpp
# Tests: launch/checkpoint/find.cpp
# Tests: launch/checkpoint/list.cpp
# Tests: launch/checkpoint/norms.cpp
# Tests: launch/checkpoint/output.cpp
# Tests: launch/checkpoint/run.cpp
# Tests: launch/checkpoint/show.cpp
# Tests: launch/checkpoint/verify.cpp
import json
import os
import shutil
import subprocess

import numpy
from checkpoint_files import ADAGRAD, DAMAGED, PROGRAM, USAGE, CheckpointTest, flip_byte, main, make, place_of, run, sample_arrays


class List(CheckpointTest):
    def test_lists_every_checkpoint(self):
        for step in (1, 2, 12):
            make(self.run_dir, sample_arrays(), step=step, parts=2)
        text = self.ok("list", self.run_dir)
        lines = text.splitlines()
        self.assertEqual(lines[0].split(), ["step", "written", "bytes", "parts", "variables", "state"])
        self.assertEqual([line.split()[0] for line in lines[1:]], ["1", "2", "12"])
        self.assertEqual([line.endswith(", latest") for line in lines[1:]], [False, False, True])
        found = self.ok_json("list", self.run_dir, "--verify")["checkpoints"]
        self.assertEqual([(c["step"], c["parts"], c["variables"], c["whole"], c["verified"], c["latest"]) for c in found],
                         [(1, 2, 12, True, True, False), (2, 2, 12, True, True, False), (12, 2, 12, True, True, True)])
        directory = self.run_dir / "checkpoint-00000012"
        self.assertEqual(found[2]["bytes"], sum(file.stat().st_size for file in directory.iterdir()))
        self.assertEqual(found[2]["path"], str(directory))
        self.assertRegex(found[2]["written"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")

    def test_reports_damaged_and_leftover_checkpoints(self):
        make(self.run_dir, sample_arrays(), step=1)
        directory = make(self.run_dir, sample_arrays(), step=2)
        flipped = make(self.run_dir, sample_arrays(), step=3)
        (directory / "part-00001-of-00002.h5").unlink()
        part, offset = place_of(flipped, "half")
        flip_byte(part, offset)
        for name in ("checkpoint-00000004.tmp", "checkpoint-00000001.deleted", "checkpoint-00000003.replaced", "other.tmp"):
            (self.run_dir / name).mkdir()
        shutil.copytree(self.run_dir / "checkpoint-00000001", self.run_dir / "checkpoint-00000005.replaced")
        text = self.ok("list", self.run_dir)
        self.assertIn("checkpoint-00000002: ", text)
        self.assertIn("part-00001-of-00002.h5 is missing", text)
        self.assertIn("checkpoint-00000004.tmp: being written, or left", text)
        self.assertIn("checkpoint-00000001.deleted: ", text)
        self.assertNotIn("other.tmp", text)
        cheap = self.ok_json("list", self.run_dir)
        self.assertEqual([(c["step"], c["whole"]) for c in cheap["checkpoints"]], [(1, True), (2, False), (3, True), (5, True)])
        self.assertEqual([left["name"] for left in cheap["leftovers"]],
                         ["checkpoint-00000001.deleted", "checkpoint-00000003.replaced", "checkpoint-00000004.tmp"])
        dear = self.ok_json("list", self.run_dir, "--verify")["checkpoints"]
        self.assertEqual([c["whole"] for c in dear], [True, False, False, True])
        self.assertIn("variables/half/value", dear[2]["fault"])

    def test_marks_retained_checkpoints(self):
        for step in (1, 2):
            make(self.run_dir, sample_arrays(), step=step)
        (self.run_dir / "kept.json").write_text(json.dumps({"last": 1.5, "kept": ["checkpoint-00000001"]}))
        self.assertEqual([line.partition("complete")[2] for line in self.ok("list", self.run_dir).splitlines()[1:]], [", kept", ", latest"])
        self.assertEqual([c["kept"] for c in self.ok_json("list", self.run_dir)["checkpoints"]], [True, False])

    def test_rejects_paths_without_checkpoints(self):
        self.refused(USAGE, f"{self.directory}/nowhere", words=["list", self.directory / "nowhere"])
        directory = make(self.run_dir, sample_arrays())
        self.refused(USAGE, f"{directory} is one checkpoint", "show", words=["list", directory])
        empty = self.directory / "empty"
        empty.mkdir()
        self.assertEqual(self.ok("list", empty), f"no checkpoints in {empty}\n")
        self.assertEqual(self.ok_json("list", empty)["checkpoints"], [])


class Show(CheckpointTest):
    def test_prints_all_content(self):
        arrays = sample_arrays()
        state, positions, settings = {"epoch": 3, "name": "ü"}, {"splits": {"done": [[0, 4]]}}, {"dim": 7, "text": "x y"}
        counters = {"examples": 2**40, "läufe": -1}
        directory = make(self.run_dir, arrays, parts=3, user_state=state, positions=positions, settings=settings, counters=counters)
        shown = self.ok_json("show", directory)
        self.assertEqual((shown["format"], shown["version"], shown["step"], shown["parts"]), ("capstan-checkpoint", 1, 12, 3))
        self.assertEqual((shown["user_state"], shown["positions"], shown["settings"], shown["counters"]),
                         (state, positions, settings, counters))
        self.assertRegex(shown["written_by"], r"^\d+\.\d+\.\d+ \(commit \w+\)$")
        self.assertEqual(sorted(shown["variables"]), sorted({name for name, _ in arrays}))
        for (name, which), (dtype, array) in arrays.items():
            variable = shown["variables"][name]
            found = variable if which == "value" else variable["slots"][which]
            self.assertEqual((found["dtype"], found["shape"], found["bytes"]), (dtype, list(array.shape), array.nbytes))
            if which == "value":
                self.assertEqual((variable["optimizer"], variable["steps"]), (ADAGRAD, 1002 if array.shape[0] > 2 else 1000)
                                 if array.shape[0] > 0 else (ADAGRAD, 1002))
        self.assertEqual(shown["variables"]["entities/embedding"]["shards"],
                         [{"name": f"entities/embedding/part_{i}", "first_row": 34 * i, "rows": rows, "steps": 1000 + i}
                          for i, rows in enumerate((34, 34, 33))])
        text = self.ok("show", self.run_dir)
        for word in ("step        12", "entities/relations/röm", "  accumulator", "(101, 7)", ADAGRAD, '"epoch":3', "dim=7",
                     "splits: ", f"examples: {2**40}", "written by  capstan ", "capstan-checkpoint version 1"):
            self.assertIn(word, text)

    def test_counts_the_keys_of_dynamic_tables(self):
        arrays = {}
        for part, keys in enumerate((3, 2)):
            name = f"users/part_{part}"
            states = numpy.zeros((8,), "<i4")
            states[1 : 1 + keys] = numpy.int32(-(2**31)) + 5  # bit 31: the row has a key
            arrays[name, "value"] = "float32", numpy.ones((8, 4), "<f4")
            arrays[name, "table_key"] = "int64", numpy.arange(8, dtype="<i8")
            arrays[name, "table_state"] = "int32", states
        make(self.run_dir, arrays)
        self.assertEqual(self.ok_json("show", self.run_dir)["tables"], {"users": {"keys": 5, "parts": 2}})
        self.assertIn("table       users: 5 keys in 2 parts", self.ok("show", self.run_dir))

    def test_norms(self):
        values = numpy.array([[3, -4], [numpy.nan, numpy.inf], [-numpy.inf, 0.5]])
        arrays = {("w", "value"): ("float32", values.astype("<f4")), ("d", "value"): ("float64", values * 1e150),
                  ("none", "value"): ("float32", numpy.full((2,), numpy.nan)), ("flags", "value"): ("bool", numpy.array([True, False])),
                  ("empty", "value"): ("int32", numpy.zeros((0,)))}
        arrays.update({(name, "value"): array for (name, which), array in sample_arrays().items() if name in ("half", "brain", "counts")
                       and which == "value"})
        make(self.run_dir, arrays)
        shown = {name: v["norms"] for name, v in self.ok_json("show", self.run_dir)["variables"].items()}
        self.assertEqual(shown["w"], {"l2": 25.25**0.5, "min": -4, "max": 3, "nan": 1, "inf": 2})
        self.assertAlmostEqual(shown["d"]["l2"] / 1e150, 25.25**0.5)
        self.assertEqual(shown["none"], {"l2": None, "min": None, "max": None, "nan": 2, "inf": 0})
        self.assertEqual(shown["flags"], {"l2": 1, "min": 0, "max": 1, "nan": 0, "inf": 0})
        self.assertEqual(shown["empty"]["max"], None)
        half = arrays["half", "value"][1].astype("f8")
        self.assertAlmostEqual(shown["half"]["l2"], numpy.sqrt((half**2).sum()))
        self.assertEqual((shown["half"]["min"], shown["half"]["max"]), (half.min(), half.max()))
        self.assertEqual((shown["brain"]["min"], shown["brain"]["max"]), (-2, 1.75))
        counts = arrays["counts", "value"][1].astype("f8")
        self.assertAlmostEqual(shown["counts"]["l2"] / numpy.sqrt((counts**2).sum()), 1)
        bare = self.ok_json("show", self.run_dir, "--no-norms")["variables"]["w"]
        self.assertNotIn("norms", bare)
        self.assertNotIn("L2", self.ok("show", self.run_dir, "--no-norms"))

    def test_detects_damage_while_reading(self):
        directory = make(self.run_dir, sample_arrays())
        part, offset = place_of(directory, "counts")
        flip_byte(part, offset + 5)
        self.refused(DAMAGED, part.name, "variables/counts/value", words=["show", directory])
        self.ok("show", directory, "--no-norms")

    def test_rejects_other_paths(self):
        self.refused(USAGE, "no checkpoint at", words=["show", self.directory / "nowhere"])
        self.refused(USAGE, f"no checkpoint in {self.directory}", "manifest.json", words=["show", self.directory])
        directory = make(self.run_dir, sample_arrays())
        self.refused(DAMAGED, "is one file of a checkpoint", words=["show", directory / "checkpoint.h5"])
        self.ok("show", f"{self.run_dir}/")


class Verify(CheckpointTest):
    def setUp(self):
        super().setUp()
        self.checkpoint = make(self.run_dir, sample_arrays(), parts=2)

    def faults(self, path=None):
        found = self.ok_json("verify", path or self.checkpoint, code=DAMAGED)["checkpoints"]
        self.assertEqual([c["whole"] for c in found], [False])
        return [(fault["file"], fault["dataset"]) for fault in found[0]["faults"]]

    def test_complete(self):
        self.assertEqual(self.ok("verify", self.checkpoint), f"{self.checkpoint}: complete\n")
        self.assertEqual(self.ok_json("verify", self.run_dir),
                         {"checkpoints": [{"path": str(self.checkpoint), "whole": True, "faults": []}]})

    def test_names_every_damaged_dataset_and_file(self):
        part, offset = place_of(self.checkpoint, "entities/embedding", "accumulator")
        flip_byte(part, offset + 3)
        self.assertEqual(self.faults(), [(part.name, "variables/entities/embedding/slots/accumulator")])
        other, offset = place_of(self.checkpoint, "flags")
        flip_byte(other, offset)
        self.assertEqual(len(self.faults()), 2)
        flip_byte(self.checkpoint / "checkpoint.h5", 200)
        self.assertEqual(self.faults()[0], ("checkpoint.h5", ""))
        last = self.checkpoint / "part-00001-of-00002.h5"
        os.truncate(last, last.stat().st_size - 1)
        self.assertIn((last.name, ""), self.faults())
        last.unlink()
        self.assertIn((last.name, ""), self.faults())
        done = run("verify", self.checkpoint)
        self.assertEqual(done.returncode, DAMAGED)
        self.assertIn(f"{self.checkpoint}: 4 faults", done.stdout)
        self.assertIn(f"{last} is missing", done.stdout)

    def test_detects_any_flipped_byte(self):
        for file in sorted(self.checkpoint.iterdir()):
            size = file.stat().st_size
            for at in (0, size // 3, size - 1):
                flip_byte(file, at)
                self.ok("verify", self.checkpoint, code=DAMAGED)
                flip_byte(file, at)
        self.ok("verify", self.checkpoint)

    def test_damaged_manifest(self):
        manifest = self.checkpoint / "manifest.json"
        manifest.write_text(manifest.read_text().replace('"step": 12', '"step": 13'))
        self.assertEqual(self.faults(), [("manifest.json", "")])
        manifest.unlink()
        self.assertEqual(self.faults(), [("manifest.json", "")])

    def test_one_of_several(self):
        make(self.run_dir, sample_arrays(), step=13)
        flip_byte(*place_of(self.checkpoint, "small"))
        found = self.ok_json("verify", self.run_dir, code=DAMAGED)["checkpoints"]
        self.assertEqual([c["whole"] for c in found], [False, True])

    def test_rejects_other_paths(self):
        self.refused(USAGE, "no checkpoint at", words=["verify", self.directory / "nowhere"])
        self.refused(USAGE, "no checkpoint in", words=["verify", self.directory])
        file = self.directory / "text"
        file.write_text("text")
        self.refused(DAMAGED, str(file), "manifest.json", words=["verify", file])


class Diff(CheckpointTest):
    def setUp(self):
        super().setUp()
        self.a = make(self.directory / "a", sample_arrays(), parts=2)

    def differences(self, b, *options):
        found = self.ok_json("diff", self.a, b, *options, code=1)
        self.assertFalse(found["equal"])
        return {(d["variable"], d["which"], d["what"]): d for d in found["differences"]}

    def test_ignores_parts_and_step(self):
        b = make(self.directory / "b", sample_arrays(), parts=5, step=77)
        self.assertIn("equal: 14 arrays", self.ok("diff", self.a, b))
        self.assertEqual(self.ok_json("diff", self.a, b)["differences"], [])

    def test_rows_and_the_largest_difference(self):
        arrays = sample_arrays()
        dtype, table = arrays["entities/embedding", "value"]
        table = table.copy()
        table[100, 6] += 2
        table[100, 0] += 1
        table[3] -= 0.5
        table[50, 1] = numpy.nan
        arrays["entities/embedding", "value"] = dtype, table
        counts = arrays["counts", "value"][1].copy()
        counts[0, 0], counts[16, 2] = -2**63, 2**63 - 1
        arrays["counts", "value"] = "int64", counts
        arrays["half", "m"] = "float32", arrays["half", "m"][1] + 1
        arrays["flags", "value"] = "bool", ~arrays["flags", "value"][1]
        b = make(self.directory / "b", arrays, parts=3)
        found = self.differences(b)
        self.assertEqual(len(found), 4)
        rows = found["entities/embedding", "value", "values"]
        self.assertEqual((rows["rows"], rows["of_rows"], rows["not_finite"]), (3, 101, 1))
        self.assertAlmostEqual(rows["max_abs_difference"], 2, places=5)
        self.assertEqual(found["half", "m", "values"]["rows"], 9)
        self.assertEqual(found["flags", "value", "values"]["max_abs_difference"], 1)
        before = sample_arrays()["counts", "value"][1]
        most = max(int(before[0, 0]) + 2**63, 2**63 - 1 - int(before[16, 2]))
        self.assertEqual(found["counts", "value", "values"]["max_abs_difference"], float(most))
        self.assertNotIn(("half", "m", "values"), self.differences(b, "--no-slots"))
        text = self.ok("diff", self.a, b, code=1)
        self.assertIn("3 of 101 rows differ, by at most 2, by NaN or infinity in 1 element", text)

    def test_many_rows_in_many_pieces(self):
        table = numpy.arange(3_000_000, dtype="<f4").reshape(-1, 3)
        a = make(self.directory / "large", {("t", "value"): ("float32", table)}, parts=3)
        changed = table.copy()
        changed[::1000, 1] += 1
        b = make(self.directory / "changed", {("t", "value"): ("float32", changed)}, parts=7)
        (difference,) = self.ok_json("diff", a, b, code=1)["differences"]
        self.assertEqual((difference["rows"], difference["of_rows"], difference["max_abs_difference"]), (1000, 1_000_000, 1))

    def test_variables_shapes_dtypes_and_optimizers(self):
        arrays = sample_arrays()
        del arrays["small", "value"], arrays["half", "m"]
        arrays["new", "value"] = "int32", numpy.arange(3)
        arrays["flags", "value"] = "int32", numpy.arange(11)
        arrays["counts", "value"] = "int64", numpy.zeros((17, 4))
        b = make(self.directory / "b", arrays, optimizer="SGD")
        found = self.differences(b)
        self.assertEqual({key for key in found if key[2] != "optimizer"},
                         {("small", "value", "only in A"), ("half", "m", "only in A"), ("new", "value", "only in B"),
                          ("flags", "value", "dtype"), ("counts", "value", "shape")})
        self.assertEqual((found["flags", "value", "dtype"]["a"], found["flags", "value", "dtype"]["b"]), ("bool", "int32"))
        self.assertEqual(found["counts", "value", "shape"]["b"], "(17, 4)")
        self.assertEqual(found["half", "value", "optimizer"]["b"], "SGD")

    def test_errors_exit_with_2(self):
        self.refused(2, "no checkpoint at", words=["diff", self.a, self.directory / "nowhere"])
        b = make(self.directory / "b", sample_arrays())
        part, offset = place_of(b, "half")
        flip_byte(part, offset)
        self.refused(2, "is damaged", "variables/half/value", words=["diff", self.a, b])
        self.refused(2, "B is required", words=["diff", self.a])


class Program(CheckpointTest):
    def test_help_has_an_example(self):
        for verb in ("list", "show", "verify", "diff", "export", "import", "reshard"):
            done = run(verb, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertIn(f"Examples:\n  capstan checkpoint {verb} ", done.stdout)
            self.assertIn("--json", done.stdout)

    def test_unknown_words(self):
        self.refused(USAGE, "did you mean list?", words=["lst"])
        self.refused(USAGE, "reshard", words=[])
        self.refused(USAGE, "did you mean --norms?", words=["show", "x", "--norm"])
        self.refused(USAGE, '"y": there is no such argument', words=["show", "x", "y"])

    def test_other_ranks_print_nothing(self):
        make(self.run_dir, sample_arrays())
        done = run("list", self.run_dir, env={"OMPI_COMM_WORLD_RANK": "1"})
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_erases_the_bar_on_a_terminal(self):
        make(self.run_dir, sample_arrays())
        master, slave = os.openpty()
        done = subprocess.run([PROGRAM, "checkpoint", "verify", str(self.run_dir)], stdout=subprocess.PIPE, stderr=slave, timeout=60)
        os.close(slave)
        shown = os.read(master, 1 << 16).decode()
        os.close(master)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(shown, r"verify \[[#.]+\] +\d+%  .*B/s")
        self.assertTrue(shown.endswith("\r\x1b[K"), repr(shown))

    def test_paths_that_are_not_utf8(self):
        directory = self.directory / os.fsdecode(b"r\xff")
        make(directory, {("w", "value"): ("int32", numpy.arange(3))})
        done = run("list", directory, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["checkpoints"][0]["step"], 12)

    def test_full_standard_output(self):
        make(self.run_dir, sample_arrays())
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, "checkpoint", "list", str(self.run_dir)], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 3)
        self.assertIn("standard output", done.stderr)


if __name__ == "__main__":
    main()
