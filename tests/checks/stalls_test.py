"""stalls_test.py -- a watcher that is stopped reports a stall of each processor."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SUPPORT = pathlib.Path(__file__).resolve().parents[1] / "support"
sys.path.insert(0, str(SUPPORT))
import stalls  # noqa: E402
from die_with_parent import die_with_parent  # noqa: E402
from poll import poll_until  # noqa: E402

TRIES = 20


class Stalls(unittest.TestCase):
    def processors_in(self, output):
        output.seek(0)
        return {int(number) for number in re.findall(r"(?m)^a sleep on processor (\d+) took \d+\.\d s longer", output.read())}

    def test_reports_a_stall_of_each_processor(self):
        with tempfile.TemporaryFile("w+") as output:
            watcher = subprocess.Popen([sys.executable, "-B", SUPPORT / "stalls.py", __file__], stdout=output, start_new_session=True,
                                       preexec_fn=die_with_parent)
            self.addCleanup(watcher.wait)
            self.addCleanup(os.killpg, watcher.pid, signal.SIGKILL)
            for _ in range(TRIES):  # the first SIGSTOP may arrive before the watcher runs
                os.killpg(watcher.pid, signal.SIGSTOP)
                time.sleep(stalls.TOO_LONG + 2 * stalls.PERIOD)  # the stall
                os.killpg(watcher.pid, signal.SIGCONT)
                if poll_until(lambda: self.processors_in(output) == os.sched_getaffinity(0), 5 * stalls.PERIOD):
                    break
            self.assertEqual(self.processors_in(output), os.sched_getaffinity(0))


if __name__ == "__main__":
    unittest.main()
