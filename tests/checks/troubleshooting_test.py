#!/usr/bin/env python3
"""Every message that docs/troubleshooting.md quotes occurs in the sources, so that a search for it finds the page."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# In the first column of a table: `a message`, not followed by "from mpirun" or the like.
SYMPTOM = re.compile(r"^\| `([^`]+)`(?P<source> from \w+)?", re.M)


def program_text():
    """Returns all sources, with adjacent string literals joined."""
    files = [path for directory in ("src", "io", "launch", "include") for path in sorted((ROOT / directory).rglob("*.[ch]pp"))]
    text = "\n".join(path.read_text() for path in files)
    return re.sub(r'"\s*\n\s*"', "", text)


class Troubleshooting(unittest.TestCase):
    def test_quoted_messages_occur_in_the_sources(self):
        page, program = (ROOT / "docs" / "troubleshooting.md").read_text(), program_text()
        quoted = [match[1] for match in SYMPTOM.finditer(page) if not match["source"]]
        self.assertGreater(len(quoted), 20)
        missing = []
        for message in quoted:
            missing += [(message, part.strip()) for part in message.split("...") if part.strip(" :") and part.strip() not in program]
        self.assertEqual(missing, [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
