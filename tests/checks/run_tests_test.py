"""run_tests_test.py -- counts results in CTest 3.25's output; shows the command that repeats a failed test."""
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import run_tests  # noqa: E402

LINES = """\
Test project /b
      Start 240: fault.ps_restarted_test
      Start 12: base.log_test
 1/5 Test  #12: base.log_test ....................   Passed    0.06 sec
 2/5 Test #240: fault.ps_restarted_test ..........***Failed   38.10 sec
output of a failed test
      Start 7: base.json_test
 3/5 Test   #7: base.json_test ...................***Timeout  60.03 sec
 4/5 Test   #8: mpi.ranks_test.np3.mpich .........***Skipped   0.11 sec
output of a skipped test
 5/5 Test   #9: io.samples_test ..................***Exception: SegFault  0.44 sec

40% tests passed, 3 tests failed out of 5
""".splitlines()


UNUSUAL = """\
1/7 Test #1: aborted ..........................Subprocess aborted***Exception:   0.10 sec
terminate called
2/7 Test #2: signaled .........................SIGUSR1***Exception:   0.00 sec
3/7 Test #3: mismatched .......................***Failed  Required regular expression not found. Regex=[hell 12
b
]  0.00 sec
4/7 Test #4: matched ..........................***Failed  Error regular expression found in output. Regex=[hello 1.5]  0.00 sec
5/7 Test #5: absent ...........................***Not Run   0.00 sec
6/7 Test #6: off ..............................***Not Run (Disabled)   0.00 sec
""".splitlines()


class RunTests(unittest.TestCase):
    def setUp(self):
        self.progress = run_tests.Progress({"base.log_test": 1, "fault.ps_restarted_test": 30, "io.samples_test": 1,
                                            "base.json_test": 2, "mpi.ranks_test.np3.mpich": 1})
        self.log = io.StringIO()
        self.shown = io.StringIO()
        with contextlib.redirect_stdout(self.shown):
            run_tests.follow(iter(LINES), self.log, self.progress, run_tests.Display(self.progress), "release")

    def test_each_result_is_counted_once(self):
        self.assertEqual(self.progress.failed, ["fault.ps_restarted_test", "base.json_test", "io.samples_test"])
        self.assertEqual(self.progress.skipped, 1)
        self.assertEqual(len(self.progress.done), 5)

    def test_counts_signals_mismatches_and_tests_without_a_result_as_failures(self):
        names = ["aborted", "signaled", "mismatched", "matched", "absent", "off", "never reported"]
        progress = run_tests.Progress(dict.fromkeys(names, 1))
        with contextlib.redirect_stdout(self.shown):
            run_tests.follow(iter(UNUSUAL), self.log, progress, run_tests.Display(progress), "release")
        progress.record_missing()
        self.assertEqual(progress.failed, ["aborted", "signaled", "mismatched", "matched", "absent", "never reported"])
        self.assertEqual(progress.skipped, 1)
        self.assertIn("terminate called", self.shown.getvalue())

    def test_shows_output_and_command_of_failed_tests_only(self):
        shown = self.shown.getvalue()
        self.assertIn("***Failed   38.10 sec\n  run it alone: ctest --preset release -R '^fault\\.ps_restarted_test$'\noutput of a failed test\n", shown)
        self.assertNotIn("output of a skipped test", shown)
        self.assertNotIn("base.log_test", shown)
        self.assertEqual(self.log.getvalue().splitlines(), LINES)

    def test_remaining_time_follows_from_completed_work(self):
        progress = run_tests.Progress({"long": 30, "short": 10})
        self.assertIsNone(progress.seconds_left())
        progress.began -= 60
        progress.record("long", "Passed", 55)
        self.assertAlmostEqual(progress.seconds_left(), 20, delta=1)

    def test_summary_names_the_command_that_repeats_a_failure(self):
        with tempfile.TemporaryDirectory() as build:
            text = "\n".join(run_tests.summary(self.progress, pathlib.Path(build), "asan"))
        self.assertIn("failed: io.samples_test; run it alone: ctest --preset asan -R '^io\\.samples_test$'", text)
        self.assertIn("1 passed, 3 failed, 1 skipped completely", text)


if __name__ == "__main__":
    unittest.main()
