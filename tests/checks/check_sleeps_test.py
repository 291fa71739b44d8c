"""check_sleeps_test.py -- a sleep without a reason is reported in C++, in Python and in scripts."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import check_sleeps  # noqa: E402

# file, text, whether it is allowed
CASES = [
    ("ps/heap_test.cpp", "  std::this_thread::sleep_for(1s);\n", False),
    ("ps/heap_test.cpp", "  usleep(1000);\n", False),
    ("ps/heap_test.cpp", "  std::this_thread::sleep_for(1s);  // the stall\n", True),
    ("ps/heap_test.cpp", "  // The stall.\n  std::this_thread::sleep_for(1s);\n", True),
    ("ps/heap_test.cpp", "  // The stall.\n  stall();\n  std::this_thread::sleep_for(1s);\n", False),
    ("fault/kill_test.py", "time.sleep(1)\n", False),
    ("fault/kill_test.py", "time.sleep(1)  # the stall\n", True),
    ("fault/chaos", "#!/usr/bin/env python3\nimport time\ntime.sleep(1)\n", False),
    ("fuzz/run", "#!/usr/bin/env bash\nsleep 1\n", True),
    ("io/samples/model.txt", "time.sleep(1)\n", True),
]


class CheckSleeps(unittest.TestCase):
    def test_reports_sleeps_without_a_reason(self):
        for path, text, allowed in CASES:
            with self.subTest(path=path, text=text), tempfile.TemporaryDirectory() as directory:
                file = pathlib.Path(directory, "tests", path)
                file.parent.mkdir(parents=True)
                file.write_text(text)
                found = check_sleeps.check(pathlib.Path(directory))
                self.assertEqual(len(found), 0 if allowed else 1, found)


if __name__ == "__main__":
    unittest.main()
