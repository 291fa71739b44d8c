"""sums.py -- jobs of sums_until_death: closures that count until a test ends them, while it kills ranks."""
import pathlib
import re
import tempfile

from job import BIN, LONG_TIMEOUTS, JobTest

SUMS = BIN / "sums_until_death"
# The places in which every closure counts 1.
COUNTED = ("counter", "sharded", "other", "metric", "table", "combined", "narrow")
# Environment in which the variables lie in the memory of the ps' GPUs.
ON_GPU = {"SHARD_MEMORY": "device"}


class Connected:
    """For jobs that print "reached N" repeatedly."""

    def wait_until_connected(self, job):
        """Waits until every current worker has reached every ps since the call."""
        # UCX 1.13 may abort a process to which a dying process is connecting; see docs/failures.md.
        last = int((re.findall(r"reached (\d+)", job.stderr) or [0])[-1])
        self.wait_for_stderr(job, rf"reached {last + 2}\n")  # the next one may have begun before the call


class SumsTest(Connected, JobTest):
    environment = LONG_TIMEOUTS

    def start_sums(self, ranks, *options, closures=None, microseconds=0, words=(), under=(), **start):
        """Returns once every worker has reached every ps. Without `closures`, the job runs until it is told to end. `under`: the
        beginning of a command that runs the program."""
        end = pathlib.Path(tempfile.mkdtemp(dir=self.directory), "end")
        job = self.start([*under, SUMS, closures or end, microseconds, *words, *options], ranks, **start)
        job.end = end
        self.wait_for_stderr(job, "begins")
        return job

    def assert_exact(self, job, seconds=120):
        """Tells the job to end; returns its output by name. Each closure must have counted once in each place."""
        job.end.touch()
        self.assertEqual(self.exit_code(job, seconds), 0, job.stdout + job.stderr)
        return self.assert_sums(job)

    def assert_sums(self, job):
        """Checks the sums of a job that has ended."""
        figures = {name: int(figure) for name, figure in re.findall(r"^(\w+) (\d+)$", job.stdout, re.MULTILINE)}
        scheduled = figures["scheduled"]
        self.assertGreater(scheduled, 0)
        self.assertEqual({name: figures[name] for name in COUNTED}, dict.fromkeys(COUNTED, scheduled))
        return figures
