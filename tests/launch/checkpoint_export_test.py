#!/usr/bin/env python3
"""`capstan checkpoint export`: every format is read back by h5py, NumPy and zipfile; invalid outputs are rejected."""
# Tests: io/export/keras.cpp
# Tests: io/export/npz.cpp
# Tests: io/export/zip.cpp
# Tests: launch/checkpoint/export.cpp
import os
import shutil
import subprocess
import zipfile

import h5py
import numpy
from checkpoint_files import DAMAGED, ENVIRONMENT, USAGE, CheckpointTest, file_limit, flip_byte, main, make, place_of, run, sample_arrays, widened


def as_numpy(dtype, array):
    """The array as NumPy stores it: bfloat16 becomes float32."""
    return widened(array).reshape(array.shape) if dtype == "bfloat16" else array


class ExportTest(CheckpointTest):
    def setUp(self):
        super().setUp()
        self.arrays = sample_arrays()
        self.checkpoint = make(self.run_dir, self.arrays, parts=3)

    def export(self, name, *options):
        out = self.directory / name
        self.ok("export", self.checkpoint, out, *options)
        self.nothing_but(name)
        return out

    def nothing_but(self, *names):
        self.assertEqual(sorted(path.name for path in self.directory.iterdir()), sorted([*names, "run"]))


class Model(ExportTest):
    def check(self, out, arrays):
        with h5py.File(out) as model:
            self.assertEqual((model.attrs["format"], model.attrs["version"], model.attrs["step"]), ("capstan-model", 1, 12))
            found = []
            model["variables"].visititems(lambda name, item: found.append(name) if isinstance(item, h5py.Dataset) else None)
            self.assertEqual(len(found), len(arrays))
            for (variable, which), (dtype, array) in arrays.items():
                dataset = model[f"variables/{variable}/{'' if which == 'value' else 'slots/'}{which}"]
                self.assertIsNone(dataset.chunks)
                self.assertEqual(model[f"variables/{variable}"].attrs["shape"].tolist(), list(self.arrays[variable, "value"][1].shape))
                if dtype == "bfloat16":
                    self.assertEqual(dataset[...].tolist(), as_numpy(dtype, array).tolist())
                    continue
                self.same(dataset[...], array)
                if array.size:
                    self.assertEqual(out.read_bytes()[dataset.id.get_offset():][:array.nbytes], array.tobytes())

    def test_complete_arrays_at_the_paths_of_a_checkpoint(self):
        self.check(self.export("model.h5"), {key: value for key, value in self.arrays.items() if key[1] == "value"})

    def test_with_slots(self):
        self.check(self.export("model.h5", "--slots"), self.arrays)

    def test_selected_variables(self):
        out = self.export("model.hdf5", "--variable", "step", "--variable=entities/embedding")
        self.check(out, {key: self.arrays[key] for key in (("step", "value"), ("entities/embedding", "value"))})

    def test_output_is_deterministic(self):
        one = self.export("model.h5").read_bytes()
        other = make(self.directory / "run" / "other", self.arrays, parts=7)
        self.ok("export", other, self.directory / "model.h5", "--force")
        self.assertEqual((self.directory / "model.h5").read_bytes(), one)

    def test_verify_finds_a_flipped_byte_anywhere(self):
        out = self.export("model.h5", "--variable", "half", "--variable", "step")
        self.assertEqual(self.ok("verify", out), f"{out}: complete\n")
        size = out.stat().st_size
        for at in range(0, size, size // 60):
            flip_byte(out, at)
            self.refused_or_damaged(out)
            flip_byte(out, at)
        os.truncate(out, size - 1)
        self.refused_or_damaged(out)

    def refused_or_damaged(self, out):
        done = run("verify", out)
        self.assertEqual(done.returncode, DAMAGED)
        self.assertIn(str(out), done.stdout + done.stderr)


class Numpy(ExportTest):
    def test_npy_of_every_dtype(self):
        for (variable, which), (dtype, array) in self.arrays.items():
            if which != "value":
                continue
            out = self.directory / "one.npy"
            self.ok("export", self.checkpoint, out, "--variable", variable, "--force")
            self.same(numpy.load(out, mmap_mode="r" if array.size else None), as_numpy(dtype, array))
        self.nothing_but("one.npy")

    def test_npy_of_the_only_variable(self):
        single = make(self.directory / "run" / "single", {("w", "value"): ("int32", numpy.arange(3))})
        self.ok("export", single, self.directory / "w.npy")
        self.refused(USAGE, "--variable: brain, counts", words=["export", self.checkpoint, self.directory / "x.npy"])
        self.nothing_but("w.npy")

    def test_npz(self):
        out = self.export("all.npz", "--slots")
        with zipfile.ZipFile(out) as archive:
            self.assertIsNone(archive.testzip())
        loaded = numpy.load(out)
        for (variable, which), (dtype, array) in self.arrays.items():
            self.same(loaded[variable if which == "value" else f"{variable}/slots/{which}"], as_numpy(dtype, array))
        self.assertEqual(len(loaded.files), len(self.arrays))
        self.assertEqual(len(numpy.load(self.export_again("values.npz")).files), 12)
        if shutil.which("unzip"):
            self.assertEqual(subprocess.run(["unzip", "-tq", out], capture_output=True, timeout=60).returncode, 0)

    def export_again(self, name):
        self.ok("export", self.checkpoint, self.directory / name)
        return self.directory / name


class Table(ExportTest):
    """Dynamic tables are exported as one array of rows and one of keys."""

    def setUp(self):
        super().setUp()
        in_use = numpy.int32(-(2**31) + 3)
        self.arrays = {}
        for part, (keys, states) in enumerate((([0, 7, 8, -9], [0, in_use, 0, in_use]), ([0, 1 << 60], [0, in_use]))):
            name = f"user/part_{part}"
            rows = numpy.array([[10 * key % 97, part] for key in keys], numpy.float32)
            self.arrays[name, "value"] = ("float32", rows)
            self.arrays[name, "m"] = ("float32", rows + 1)
            self.arrays[name, "table_key"] = ("int64", numpy.array(keys, numpy.int64))
            self.arrays[name, "table_state"] = ("int32", numpy.array(states, numpy.int32))
        self.checkpoint = make(self.directory / "run" / "table", self.arrays, parts=2)
        self.keys = numpy.array([7, -9, 1 << 60])
        self.rows = numpy.array([[70, 0], [-90 % 97, 0], [10 * (1 << 60) % 97, 1]], numpy.float32)

    def test_hdf5(self):
        out = self.export("model.h5", "--slots")
        with h5py.File(out) as model:
            user = model["variables/user"]
            self.same(user["value"][...], self.rows)
            self.same(user["slots/m"][...], self.rows + 1)
            self.same(user["slots/table_key"][...], self.keys)
            self.assertEqual(sorted(user["slots"]), ["m", "table_index", "table_key"])
        self.assertEqual(self.ok("verify", out), f"{out}: complete\n")

    def test_numpy(self):
        loaded = numpy.load(self.export("user.npz", "--variable", "user"))
        self.assertEqual(sorted(loaded.files), ["user", "user/slots/table_key"])
        self.same(loaded["user"], self.rows)
        self.same(loaded["user/slots/table_key"], self.keys)
        self.refused(USAGE, '"user"', ".npz", words=["export", self.checkpoint, self.directory / "x.npy"])
        self.refused(USAGE, '"user"', words=["export", self.checkpoint, self.directory / "x.npz", "--variable", "user/part_1"])

    def test_keras(self):
        with h5py.File(self.export("weights.h5", "--format", "keras")) as weights:
            self.same(weights["user/user:0"][...], self.rows)
            self.same(weights["user/user/table_key:0"][...], self.keys)


class Keras(ExportTest):
    @staticmethod
    def names(group, name):
        """Reads the names as Keras does."""
        if name in group.attrs:
            return [n.decode() for n in group.attrs[name]]
        found, chunk = [], 0
        while f"{name}{chunk}" in group.attrs:
            found += [n.decode() for n in group.attrs[f"{name}{chunk}"]]
            chunk += 1
        return found

    def test_layers_and_weights(self):
        out = self.export("weights.h5", "--format", "keras")
        with h5py.File(out) as weights:
            self.assertEqual(self.names(weights, "layer_names"),
                             ["brain", "counts", "dense", "empty", "entities", "flags", "half", "no_columns", "small", "step"])
            self.assertEqual(self.names(weights["dense"], "weight_names"), ["dense/kernel:0", "dense/bias:0"])
            self.assertEqual(weights.attrs["keras_version"], "2.0.0")
            for (variable, which), (dtype, array) in self.arrays.items():
                if which == "value":
                    self.same(weights[variable.partition("/")[0]][f"{variable}:0"][...], as_numpy(dtype, array))

    def test_preserves_the_order_of_variables(self):
        out = self.export("weights.h5", "--format", "keras", "--variable", "entities/relations/röm", "--variable", "entities/embedding")
        with h5py.File(out) as weights:
            self.assertEqual(self.names(weights["entities"], "weight_names"), ["entities/relations/röm:0", "entities/embedding:0"])

    def test_splits_names_that_exceed_an_attribute(self):
        layers = [f"{i:04}" + "x" * 150 for i in range(700)]
        many = make(self.directory / "run" / "many", {(name, "value"): ("int32", numpy.array([i])) for i, name in enumerate(layers)})
        out = self.directory / "weights.h5"
        self.ok("export", many, out, "--format", "keras")
        with h5py.File(out) as weights:
            self.assertNotIn("layer_names", weights.attrs)
            self.assertEqual(self.names(weights, "layer_names"), layers)

    def test_rejects_suffixes_of_other_keras_formats(self):
        for name in ("model.weights.h5", "model.keras"):
            self.refused(USAGE, ".h5 or .hdf5", words=["export", self.checkpoint, self.directory / name, "--format", "keras"])


class Outputs(ExportTest):
    def test_overwrites_only_with_force(self):
        out = self.directory / "all.npz"
        out.write_text("mine")
        self.refused(USAGE, f"{out} already exists", "--force", words=["export", self.checkpoint, out])
        self.assertEqual(out.read_text(), "mine")
        self.ok("export", self.checkpoint, out, "--force")
        self.assertEqual(len(numpy.load(out).files), 12)
        self.nothing_but("all.npz")

    def test_unwritable_paths(self):
        self.refused(USAGE, "nowhere", "No such file", words=["export", self.checkpoint, self.directory / "nowhere" / "m.h5"])
        self.refused(USAGE, str(self.run_dir), words=["export", self.checkpoint, self.run_dir, "--format", "npz", "--force"])
        self.nothing_but()

    def test_full_disk_leaves_no_files(self):
        large = make(self.directory / "run" / "large", {("t", "value"): ("float32", numpy.ones((100_000, 4)))})
        for name, options in (("m.h5", []), ("m.npz", []), ("m.npy", []), ("k.h5", ["--format", "keras"])):
            self.refused(ENVIRONMENT, name, "File too large", words=["export", large, self.directory / name, *options], **file_limit(1_000_000))
        self.nothing_but()

    @staticmethod
    def mount(directory):
        directory.mkdir()
        return os.geteuid() == 0 and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", directory], capture_output=True,
                                                    timeout=20).returncode == 0

    def test_full_file_system(self):
        small = self.directory / "run" / "small"
        if not self.mount(small):
            self.skipTest("mounting a tmpfs needs root")
        self.addCleanup(subprocess.run, ["umount", small], timeout=20)
        large = make(self.directory / "run" / "large", {("t", "value"): ("float32", numpy.ones((100_000, 4)))})
        for name in ("m.h5", "m.npz"):
            self.refused(ENVIRONMENT, str(small / name), "No space left on device", words=["export", large, small / name])
        self.refused(ENVIRONMENT, "No space left on device", words=["reshard", large, small / "out", "--parts", 2])
        self.assertEqual(list(small.iterdir()), [])

    def test_damaged_checkpoint_leaves_no_files(self):
        part, offset = place_of(self.checkpoint, "half")
        flip_byte(part, offset)
        for name, options in (("m.h5", []), ("m.npz", []), ("m.npy", ["--variable", "half"]), ("k.h5", ["--format", "keras"])):
            self.refused(DAMAGED, part.name, "variables/half/value", words=["export", self.checkpoint, self.directory / name, *options])
        self.ok("export", self.checkpoint, self.directory / "flags.npy", "--variable", "flags")
        part.unlink()
        self.refused(DAMAGED, f"{part} is missing", words=["export", self.checkpoint, self.directory / "m.h5"])
        self.nothing_but("flags.npy")

    def test_unknown_formats_and_variables(self):
        out = self.directory / "m"
        for words, text in (([out], str(out)), ([out, "--format", "onnx"], "expected model, npy, npz, keras"),
                            ([f"{out}.h5", "--variable", "missing"], 'no variable "missing"; it has "brain"'),
                            ([f"{out}.h5", "--variable", "half", "--variable", "half"], "given twice"),
                            ([f"{out}.npy", "--variable", "half", "--slots"], "--slots")):
            self.refused(USAGE, text, words=["export", self.checkpoint, *words])
        self.nothing_but()


if __name__ == "__main__":
    main()
