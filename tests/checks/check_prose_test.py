"""check_prose_test.py -- wide lines and long sentences of Markdown are found; code, tables and links are not prose."""
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
    def test_judges_single_texts(self):
        for text, lines in CASES:
            with self.subTest(text=text):
                self.assertEqual([line for line, _ in check_prose.complaints_of(text)], lines)

    def test_says_how_long_a_sentence_is(self):
        self.assertIn("28 words", check_prose.complaints_of(LONG_SENTENCE)[0][1])


if __name__ == "__main__":
    unittest.main()
