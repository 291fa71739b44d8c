"""no_process_left_test.py -- orphaned processes are found, named and killed."""
import pathlib
import subprocess
import sys
import unittest

SUPPORT = pathlib.Path(__file__).resolve().parents[1] / "support"
sys.path.insert(0, str(SUPPORT))
from no_process_left import Job  # noqa: E402
from poll import poll_until  # noqa: E402

DETACHED = "setsid sleep 300 > /dev/null 2>&1 < /dev/null &"


def run(script, *options):
    return subprocess.run([sys.executable, SUPPORT / "no_process_left.py", *options, "--", "sh", "-c", script],
                          capture_output=True, text=True, timeout=30, check=False)


def alive(pid):
    """A killed orphan may stay a zombie until init reaps it; a zombie counts as dead."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


class NoProcessLeft(unittest.TestCase):
    def test_forwards_the_exit_code(self):
        self.assertEqual(run("exit 7").returncode, 7)
        self.assertEqual(run("kill -9 $$").returncode, 128 + 9)

    def test_finds_a_detached_child(self):
        done = run(DETACHED + " exit 0", "--grace", "0.3")
        self.assertEqual(done.returncode, 125)
        self.assertIn("sleep 300", done.stderr)

    def test_waits_for_a_child_that_ends_in_time(self):
        self.assertEqual(run("setsid sleep 0.5 & exit 0", "--grace", "10").returncode, 0)

    def test_kills_a_command_that_hangs(self):
        done = run(DETACHED + " sleep 300", "--timeout", "0.3")
        self.assertEqual(done.returncode, 124)
        self.assertIn("sh -c", done.stderr)

    def test_kills_all_processes_at_the_end(self):
        with Job(["sh", "-c", DETACHED + " sleep 300"]) as job:
            self.assertTrue(poll_until(lambda: len(job.processes()) >= 3, 20))
            pids = list(job.processes())
        self.assertEqual(job.processes(), {})
        for pid in pids:
            self.assertFalse(alive(pid), pid)


if __name__ == "__main__":
    unittest.main()
