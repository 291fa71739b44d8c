"""checkpoint_files.py -- creates checkpoints with known content and runs `capstan checkpoint` on them.

Arguments of a test script: PROGRAM, the `capstan` program, and MAKER, tests/launch/make_checkpoint. A script skips
(77) without numpy and h5py.
"""
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

try:
    import h5py
    import numpy
except ImportError as missing:
    print(f"SKIP: {sys.executable} has no {missing.name} (Debian: python3-h5py, python3-numpy)")
    sys.exit(77)

PROGRAM, MAKER = sys.argv[1], sys.argv[2]

USAGE, ENVIRONMENT, DAMAGED = 2, 3, 5  # docs/errors.md
ADAGRAD = "adagrad(learning_rate=0.1)"


def bfloat16(values):
    """Bits of floats that bfloat16 represents exactly."""
    return (numpy.asarray(values, dtype="<f4").view("<u4") >> 16).astype("<u2")


def widened(bits):
    return (bits.astype("<u4") << 16).view("<f4")


DTYPES = {"float32": "<f4", "float64": "<f8", "int64": "<i8", "int32": "<i4", "float16": "<f2", "bfloat16": "<u2", "bool": "?"}


def sample_arrays():
    """{(variable, which): (dtype, array)}: every dtype, names with slashes, slots, no rows, no columns, rank 3."""
    random = numpy.random.default_rng(7)
    table = random.standard_normal((101, 7)).astype("<f4")
    return {
        ("entities/embedding", "value"): ("float32", table),
        ("entities/embedding", "accumulator"): ("float32", numpy.abs(table)),
        ("entities/relations/röm", "value"): ("float64", random.standard_normal((53,))),
        ("counts", "value"): ("int64", random.integers(-2**62, 2**62, (17, 3))),
        ("small", "value"): ("int32", random.integers(-2**31, 2**31, (5, 2, 3)).astype("<i4")),
        ("half", "value"): ("float16", random.standard_normal((9, 2)).astype("<f2")),
        ("half", "m"): ("float32", random.standard_normal((9, 2)).astype("<f4")),
        ("brain", "value"): ("bfloat16", bfloat16(numpy.arange(-8, 8).reshape(4, 4) / 4)),
        ("flags", "value"): ("bool", random.integers(0, 2, (11,)).astype("?")),
        ("empty", "value"): ("float32", numpy.zeros((0, 4), "<f4")),
        ("no_columns", "value"): ("float32", numpy.zeros((3, 0), "<f4")),
        ("dense/bias", "value"): ("float32", random.standard_normal((4,)).astype("<f4")),
        ("dense/kernel", "value"): ("float32", random.standard_normal((3, 4)).astype("<f4")),
        ("step", "value"): ("int64", numpy.array([12345678901234])),
    }


def make(directory, arrays, step=12, parts=2, user_state=None, positions=None, settings=None, counters=None, optimizer=ADAGRAD,
         base=None, changed=None):
    """Writes a checkpoint below `directory`; returns its path. With `base`, an increment with the rows `changed` per variable."""
    with tempfile.TemporaryDirectory() as raw:
        listed = []
        for number, ((variable, which), (dtype, array)) in enumerate(arrays.items()):
            file = pathlib.Path(raw, str(number))
            file.write_bytes(array.astype(DTYPES[dtype]).tobytes())
            listed.append({"variable": variable, "which": which, "dtype": dtype, "shape": array.shape,
                           "optimizer": optimizer, "file": str(file)})
        description = {"step": step, "parts": parts, "user_state": user_state, "positions": positions or {},
                       "settings": settings or {}, "counters": counters or {}, "arrays": listed}
        if base:
            description |= {"base": base.name, "changed": changed}
        done = subprocess.run([MAKER, str(directory)], input=json.dumps(description), capture_output=True, timeout=60,
                              encoding="utf-8", errors="surrogateescape")
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return pathlib.Path(done.stdout.strip())


def run(*words, env=None, **options):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CAPSTAN_")}
    return subprocess.run([PROGRAM, "checkpoint", *map(str, words)], env={**clean, **(env or {})}, capture_output=True,
                          encoding="utf-8", errors="surrogateescape", timeout=120, **options)


def file_limit(size):
    """Options of `run` that limit the file size, to simulate a full disk."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    return {"preexec_fn": limit}


def flip_byte(file, at):
    with open(file, "r+b") as stream:
        stream.seek(at)
        byte = stream.read(1)[0]
        stream.seek(at)
        stream.write(bytes([byte ^ 0x10]))


def place_of(directory, variable, which="value"):
    """Returns (part, offset) of the first bytes of an array."""
    manifest = json.loads((directory / "manifest.json").read_text())
    for part in manifest["parts"]:
        for dataset in part["datasets"]:
            if (dataset["variable"], dataset["which"], dataset["first_row"]) == (variable, which, 0):
                return directory / part["file"], dataset["offset"]
    raise KeyError(variable)


class CheckpointTest(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="capstan-test-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.run_dir = self.directory / "run"

    def ok(self, *words, code=0):
        done = run(*words)
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def ok_json(self, *words, code=0):
        return json.loads(self.ok(*words, "--json", code=code))

    def refused(self, code, *texts, words, **options):
        done = run(*words, **options)
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        self.assertEqual(done.stdout, "")
        for text in ("capstan: ", *texts):
            self.assertIn(text, done.stderr)
        self.assertEqual(done.stderr.count("capstan: "), 1, done.stderr)

    def same(self, a, b):
        self.assertEqual((a.dtype, a.shape), (b.dtype, b.shape))
        self.assertEqual(a.tobytes(), b.tobytes())


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
