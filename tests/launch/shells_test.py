#!/usr/bin/env python3
"""shells_test.py PROGRAM -- help of each command; bash, zsh and fish accept the completions, groff the man pages."""
# Tests: launch/help/completions.cpp
# Tests: launch/help/man_page.cpp
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)


def commands(*path):
    """Yields the words of each command below `path`."""
    yield path
    text = run(PROGRAM, "help", *path).stdout
    listed = re.search(r"^Commands:\n((?:  .*\n)+)", text, re.MULTILINE)
    for name in re.findall(r"^  (\w\S*)", listed[1], re.MULTILINE) if listed else ():
        yield from commands(*path, name)


class Shells(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.share = pathlib.Path(cls.directory.name)
        done = run(PROGRAM, "help", "--install", cls.share)
        assert done.returncode == 0, done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def completed(self, *words):
        """The words that bash offers for the last of `words`."""
        script = self.share / "bash-completion/completions/capstan"
        # Like Readline, sets the words and the index of the last one.
        done = run("bash", "--norc", "-c", f'source {script}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _capstan; echo "${{COMPREPLY[@]}}"',
                   "bash", *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split()

    def test_each_command_has_help_within_the_width(self):
        found = list(commands())
        self.assertIn(("checkpoint", "export"), found)
        for words in found:
            done = run(PROGRAM, *words, "--help", env={**os.environ, "COLUMNS": "80"})
            self.assertEqual((done.returncode, done.stderr), (0, ""), words)
            self.assertTrue(done.stdout.startswith("usage: capstan"), words)
            wide = [line for line in done.stdout.splitlines() if len(line) > 80 and not line.startswith("  ")]
            self.assertEqual(wide, [], words)

    def test_the_error_of_an_unknown_option_names_the_help_of_the_command(self):
        done = run(PROGRAM, "train", "kge", "--no-such")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr.count("hint: "), 1, done.stderr)
        self.assertIn("hint: `capstan train kge --help`", done.stderr)

    def test_bash_completes_commands_options_and_values(self):
        self.assertEqual(self.completed("capstan", "tr"), ["train", "trace"])
        self.assertEqual(self.completed("capstan", "train", "k"), ["kge"])
        self.assertEqual(self.completed("capstan", "train", "kge", "--look"), ["--look-ahead"])
        self.assertEqual(self.completed("capstan", "train", "kge", "--no-look"), ["--no-look-ahead"])
        self.assertEqual(self.completed("capstan", "train", "kge", "--model", "c"), ["complex"])
        self.assertEqual(self.completed("capstan", "train", "kge", "--model", "=", "d"), ["distmult"])
        self.assertEqual(self.completed("capstan", "train", "kge", "--data", "t"), [], "file names by default")
        self.assertEqual(self.completed("capstan", "run", "--", "tr"), [], "the program's own words")

    def test_zsh_accepts_its_script(self):
        if not shutil.which("zsh"):
            self.skipTest("no zsh")
        done = run("zsh", "-n", self.share / "zsh/site-functions/_capstan")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_fish_completes_a_command(self):
        if not shutil.which("fish"):
            self.skipTest("no fish")
        done = run("fish", "-c", f"source {self.share}/fish/vendor_completions.d/capstan.fish; complete -C 'capstan train k'")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("kge", done.stdout)

    def test_man_pages_have_no_warnings(self):
        if not shutil.which("groff"):
            self.skipTest("no groff")
        pages = sorted((self.share / "man/man1").iterdir())
        self.assertEqual(len(pages), len(list(commands())))
        for page in pages:
            done = run("groff", "-ww", "-man", "-Tutf8", "-z", page)
            self.assertEqual((done.returncode, done.stderr), (0, ""), page.name)


if __name__ == "__main__":
    unittest.main()
