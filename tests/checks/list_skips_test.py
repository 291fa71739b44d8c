"""list_skips_test.py -- skips of all test frameworks are listed with their reasons."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from list_skips import skips  # noqa: E402


def entry(name, command, *output):
    """Returns the entry of one test in LastTest.log, as CTest 3.25 writes it."""
    text = "".join(line + "\n" for line in output)
    rule = "-" * 58
    return (f'1/9 Testing: {name}\n1/9 Test: {name}\nCommand: {command}\nDirectory: /b\n"{name}" start time: now\n'
            f"Output:\n{rule}\n{text}<end of output>\nTest time =   0.00 sec\n{rule}\nTest Passed.\n"
            f'"{name}" end time: now\n"{name}" time elapsed: 00:00:00\n{rule}\n\n')


LOG = (
    entry("base.log_test", '"/b/log_test"', "[ RUN      ] Log.Fine", "[       OK ] Log.Fine (0 ms)")
    + entry("device.gpu_test", '"/b/gpu_test"',
            "[ RUN      ] Gpu.Adds", "/s/gpu_test.cpp:2: Skipped", "needs a GPU:", "none here",
            "[  SKIPPED ] Gpu.Adds (0 ms)", "[ RUN      ] Gpu.Fine", "[       OK ] Gpu.Fine (0 ms)",
            "[  SKIPPED ] 1 test, listed below:", "[  SKIPPED ] Gpu.Adds")
    + entry("store.mpi_test.np3", '"mpiexec"', "\x1b[0;32m[ RUN      ] \x1b[mRing.Wraps\r", "/s/r.cpp:5: Skipped\r",
            "one host only\r", "\x1b[0;32m[  SKIPPED ] \x1b[mRing.Wraps (0 ms)\r")
    + entry("check.format", '"python3"', "SKIP: clang-format 14 is not installed")
    + entry("io.h5py", '"python3"', "test_reads (h5py_test.Read.test_reads) ... skipped 'no h5py'", "OK (skipped=1)")
    + entry("off", '""')
)


class ListSkips(unittest.TestCase):
    def test_lists_skipped_tests_only(self):
        self.assertEqual(skips(LOG), [
            ("device.gpu_test Gpu.Adds", "needs a GPU: none here"),
            ("store.mpi_test.np3 Ring.Wraps", "one host only"),
            ("check.format", "clang-format 14 is not installed"),
            ("io.h5py test_reads", "no h5py"),
            ("off", "disabled"),
        ])

    def test_an_empty_log_has_no_skips(self):
        self.assertEqual(skips(""), [])


if __name__ == "__main__":
    unittest.main()
