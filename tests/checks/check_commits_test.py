"""check_commits_test.py -- malformed subjects are reported, and every commit of a range is checked."""
import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import check_commits  # noqa: E402

# subject, number of complaints
CASES = [
    ("Reject GPU use before Cluster::join", 0),
    ("store: Bring the heap up to date", 0),
    ("coordinator, ps: Use one membership", 0),
    ("x" * 73, 2),
    ("store: add a heap", 1),
    ("Added a heap", 1),
    ("Adds a heap", 1),
    ("Adding a heap.", 2),
    ("Process rows in order", 0),
]


def git(root, *arguments):
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
    subprocess.run(["git", "-C", root, *identity, *arguments], check=True, capture_output=True)


class CheckCommits(unittest.TestCase):
    def run_main(self, *arguments):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            status = check_commits.main(*map(str, arguments))
        return status, printed.getvalue()

    def test_reports_each_fault_of_a_subject(self):
        for subject, count in CASES:
            with self.subTest(subject=subject):
                self.assertEqual(len(check_commits.complaints_of(subject)), count)

    def test_checks_every_commit_of_a_range(self):
        with tempfile.TemporaryDirectory() as root:
            git(root, "init", "--quiet")
            for subject in ("Add a file", "Adds a file", "Add a test"):
                git(root, "commit", "--quiet", "--allow-empty", "--message", subject)
            status, printed = self.run_main(root)
            self.assertEqual(status, 1)
            self.assertIn("Adds a file", printed)
            self.assertEqual(self.run_main(root, "HEAD~1..HEAD"), (0, "1 subjects are well formed\n"))
            self.assertEqual(self.run_main(root, "no-such-range")[0], 2)

    def test_skips_outside_of_a_work_tree(self):
        with tempfile.TemporaryDirectory() as root:
            self.assertEqual(self.run_main(pathlib.Path(root))[0], 77)


if __name__ == "__main__":
    unittest.main()
