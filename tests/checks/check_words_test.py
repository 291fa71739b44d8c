"""check_words_test.py -- listed phrases and names are reported; words that contain them are not."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import check_words  # noqa: E402

WORDS = "# comment\n\nwhat is | a noun\nPulse|ps_life | Heartbeat\n"

# text, lines of the complaints
CASES = [
    ("// Returns what is left.\n", [1]),
    ("// What is left.\n", [1]),
    ("// Returns what\n// is left.\n", [1]),
    ("# Prints what\n# is left.\n", [1]),
    ("somewhat isolated\n", []),
    ("\nclass Pulse;\n", [2]),
    ("Pulsed, impulse, pulse\n", []),
    ("int ps_life = 0;\n", [1]),
]


class CheckWords(unittest.TestCase):
    def complaints(self, text, words=WORDS):
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            (root / "tests").mkdir()
            (root / check_words.LIST).write_text(words)
            (root / "file.cpp").write_text(text)
            return check_words.check(root)

    def test_finds_phrases_and_names(self):
        for text, lines in CASES:
            with self.subTest(text=text):
                found = self.complaints(text)
                self.assertEqual([complaint.split(":")[:2] for complaint in found],
                                 [["file.cpp", str(line)] for line in lines])

    def test_names_the_replacement(self):
        self.assertIn("use Heartbeat", self.complaints("Pulse\n")[0])

    def test_rejects_malformed_list(self):
        with self.assertRaisesRegex(ValueError, "words.txt:1"):
            self.complaints("", "what is a noun\n")


if __name__ == "__main__":
    unittest.main()
