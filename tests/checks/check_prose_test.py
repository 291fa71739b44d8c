"""check_prose_test.py -- wide lines and long sentences of Markdown are reported; code, tables and links are exempt."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import check_prose  # noqa: E402

LONG_LINE = "word " * 21
LONG_SENTENCE = "one two three four five six seven\n" * 4

# text, lines of the complaints
CASES = [
    ("A short sentence.\n", []),
    (f"Text.\n{LONG_LINE}\n", [2]),
    (f"```\n{LONG_LINE}\n```\n", []),
    (f"| {LONG_LINE} |\n", []),
    ("# " + LONG_LINE + "\n", []),
    ("* " + "x" * 120 + "\n", []),
    (f"{LONG_SENTENCE}", [1]),
    (f"```\ncode\n```\n\n{LONG_SENTENCE}", [5]),
    ("one two three four five six seven.\nOne " * 4, []),
    ("* one two three four five six seven\n" * 5, []),
    ("`one two three four five six seven`\n" * 6, []),
    ("[one](https://one.two.three/four) two three.\n" * 6, []),
]


class CheckProse(unittest.TestCase):
    def test_reports_lines_that_violate_a_limit(self):
        for text, lines in CASES:
            with self.subTest(text=text):
                self.assertEqual([line for line, _ in check_prose.complaints_of(text)], lines)

    def test_reports_the_length_of_a_sentence(self):
        self.assertIn("28 words", check_prose.complaints_of(LONG_SENTENCE)[0][1])


if __name__ == "__main__":
    unittest.main()
