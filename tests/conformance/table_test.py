#!/usr/bin/env python3
"""table_test.py -- table.py generates the page from markers and lists, and rejects invalid ones."""
import contextlib
import io
import pathlib
import tempfile
import unittest

import table

ROWS = "## First\nA1.1: one\nA1.2: two\n## Second\nB1-B4: cases\nB7: seven\n"
GOOD = """
// Text that is no marker.
// A1.1, B1-B2: same.
// B3: better: it continues
// for a second line; A1.2: is not a marker there.
static_assert(true);
TEST_P(Suite_, First) {

// own: better: nothing like it.
TEST(Other,
     Second) {
"""


class TableTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.root = pathlib.Path(self.directory.name)
        (self.root / "tests/conformance").mkdir(parents=True)
        (self.root / "docs").mkdir()
        self.write("rows.txt", ROWS)
        self.write("not_applicable.txt", "# why not\nA1.2: not here.\nB1: not all.\n")
        self.write("a_test.cpp", GOOD)

    def write(self, name, text):
        (self.root / "tests/conformance" / name).write_text(text)

    def run_table(self, *arguments):
        """Returns the exit code and the output."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = table.main(*arguments, str(self.root))
        return code, out.getvalue()

    def page(self):
        return (self.root / "docs/conformance.md").read_text()

    def expect_refused(self, text):
        code, out = self.run_table("--check")
        self.assertEqual(code, 1)
        self.assertIn(text, out)

    def test_scripts_have_markers_too(self):
        other = self.root / "tests/fault"
        other.mkdir()
        (other / "c_test.py").write_text(
            "# Of a run.\nLIMIT = 3\n\n\nclass Killed(JobTest):\n    def test_plain(self):\n        pass\n\n"
            "    # B4, B7: better: the worker returns.\n    def test_marked(self):\n        # B3: a comment inside.\n        pass\n")
        self.assertEqual(self.run_table(), (0, ""))
        self.assertIn("| B4 | cases | better: the worker returns | `fault/c_test: Killed.test_marked` |", self.page())

    def test_markers_are_optional_in_other_directories(self):
        other = self.root / "tests/coordinator"
        other.mkdir()
        (other / "b_test.cpp").write_text("TEST(B, Plain) {\n\n// B4, B7: same.\nTEST(B, Marked) {\n")
        self.assertEqual(self.run_table(), (0, ""))
        self.assertIn("| B4 | cases | same | `coordinator/b_test: B.Marked` |", self.page())
        (other / "b_test.cpp").write_text("// B9: same.\nTEST(B, Marked) {\n")
        self.expect_refused("B.Marked names B9, which is not in rows.txt")

    def test_rows_by_number_and_range(self):
        self.assertEqual(self.run_table(), (0, "not yet covered: B4, B7\n"))
        page = self.page()
        self.assertIn("| A1.1 | one | same | `a_test: Suite.First` |", page)
        self.assertIn("| A1.2 | two | not applicable: not here | - |", page)
        self.assertIn("| B1 | cases | same; in part not applicable: not all | `a_test: Suite.First` |", page)
        self.assertIn("| B2 | cases | same |", page)
        self.assertIn("| B3 | cases | better: it continues for a second line; A1.2: is not a marker there |", page)
        self.assertIn("| B4 | cases | not yet covered | - |", page)
        self.assertIn("| nothing like it | `a_test: Other.Second` |", page)
        self.assertIn("Of 7 numbers: 3 same, 1 better, 1 not applicable, 2 not yet covered.", page)
        self.assertIn("* B7: seven\n", page)

    def test_check_compares(self):
        self.expect_refused("docs/conformance.md is out of date")
        self.run_table()
        self.assertEqual(self.run_table("--check")[0], 0)
        self.write("a_test.cpp", GOOD.replace("B1-B2", "B1-B2, B7"))
        self.expect_refused("docs/conformance.md is out of date")

    def test_list_of_numbers_may_span_lines(self):
        self.write("a_test.cpp", "// A1.1, A1.2,\n// B1, B2-B4, B7: same.\nTEST(A, B) {\n")
        self.assertEqual(self.run_table(), (0, ""))
        self.assertIn("| B2-B4 | cases | same | `a_test: A.B` |", self.page())

    def test_equal_rows_share_a_line(self):
        self.write("not_applicable.txt", "B1-B4: with checkpoints.\n")
        self.write("a_test.cpp", "")
        self.run_table()
        self.assertIn("| B1-B4 | cases | with checkpoints | - |", self.page())

    def test_names_invalid_markers(self):
        for text, complaint in (
            ("TEST(A, B) {\n", "a_test.cpp:1: A.B has no marker above it"),
            ("// A1.1: same.\n\nTEST(A, B) {\n", "a_test.cpp:1: a marker without a test below it"),
            ("// A9.1: same.\nTEST(A, B) {\n", "A.B names A9.1, which is not in rows.txt"),
            ("// A1.1: alike.\nTEST(A, B) {\n", "a_test.cpp:1: expected `<numbers>: same.`"),
            ("// A1.1-B2: same.\nTEST(A, B) {\n", "a_test.cpp:1: A1.1-B2 is not a range"),
            ("// B3-B2: same.\nTEST(A, B) {\n", "a_test.cpp:1: B3-B2 runs backwards"),
        ):
            with self.subTest(text):
                self.write("a_test.cpp", text)
                self.expect_refused(complaint)

    def test_lists_are_checked(self):
        self.write("not_applicable.txt", "B9: no.\n")
        self.expect_refused("not_applicable.txt: B9 is not in rows.txt")
        self.write("not_applicable.txt", "B1: no.\nB1: not at all.\n")
        self.expect_refused("not_applicable.txt:2: B1 occurs twice")
        self.write("rows.txt", ROWS + "B2: again\n")
        self.expect_refused("rows.txt: B2 occurs twice")


if __name__ == "__main__":
    unittest.main()
