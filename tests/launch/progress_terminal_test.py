#!/usr/bin/env python3
"""progress_terminal_test.py BIN MPIEXEC -- the progress bar of a job under mpirun is drawn on the user's terminal."""
# Tests: launch/progress_terminal.cpp
import os
import pathlib
import pty
import select
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import MPIEXEC, JobTest, main, train

BAR = b"\r\x1b[K"
LIMIT = 60


class ProgressTerminal(JobTest):
    def shown(self, *options, redirect=None, environment=None):
        """What a terminal shows on which a shell runs the job, with its standard error in `redirect` if given."""
        command = [str(word) for word in train(self.graph(), *options, epochs=200)]
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ.update({"TERM": "xterm", **(environment or {})})
            if not environment:
                os.environ.pop("CI", None)
            if redirect:
                os.dup2(os.open(redirect, os.O_WRONLY | os.O_CREAT), 2)
            os.execv(MPIEXEC, [MPIEXEC, "-n", "3", *command])
        output, deadline = b"", time.monotonic() + LIMIT
        while time.monotonic() < deadline:
            if select.select([terminal], [], [], 1)[0]:
                try:
                    read = os.read(terminal, 65536)
                except OSError:  # the terminal has no process any more
                    break
                if not read:
                    break
                output += read
        os.close(terminal)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self.assertEqual(status, 0, output.decode(errors="replace"))
        return output

    def test_bar_is_drawn_on_the_terminal_of_the_launcher(self):
        output = self.shown()
        self.assertIn(BAR, output)
        self.assertRegex(output, rb"epoch \d+/200 \[#*\.*\]")
        self.assertEqual(output.count(b"epoch 200/200: "), 1, "the summary line must stay")

    def test_off_draws_no_bar(self):
        self.assertNotIn(BAR, self.shown("--progress", "off"))

    def test_redirected_output_has_no_bar(self):
        log = self.directory / "log"
        self.assertNotIn(BAR, self.shown(redirect=log))
        self.assertIn("epoch 200/200: ", log.read_text())

    def test_ci_has_no_bar(self):
        self.assertNotIn(BAR, self.shown(environment={"CI": "true"}))


if __name__ == "__main__":
    main()
