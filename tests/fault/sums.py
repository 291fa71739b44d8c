"""sums.py -- jobs of sums_until_death: closures that count, until a test tells them to end, while it kills ranks."""
import pathlib
import re
import tempfile

from job import BIN, LONG_TIMEOUTS, JobTest

SUMS = BIN / "sums_until_death"
# What every closure counts 1 in.
COUNTED = ("counter", "sharded", "other", "metric")
# In its environment: what closures add to lies in the memory of the ps' GPUs.
ON_GPU = {"SHARD_MEMORY": "device"}


class Connected:
    """Of jobs that say "reached N" again and again."""

    def wait_until_connected(self, job):
        """Until every worker that is there has reached every ps since now."""
        # UCX 1.13 may abort a process that another one is connecting to when that dies: see docs/failures.md.
        last = int((re.findall(r"reached (\d+)", job.stderr) or [0])[-1])
        self.wait_for_stderr(job, rf"reached {last + 2}\n")  # the next one may have begun before


class SumsTest(Connected, JobTest):
    environment = LONG_TIMEOUTS

    def start_sums(self, ranks, *options, closures=None, microseconds=0, words=(), **start):
        """As soon as every worker has reached every ps. Without a number of closures it goes on until it is told to end."""
        end = pathlib.Path(tempfile.mkdtemp(dir=self.directory), "end")
        job = self.start([SUMS, closures or end, microseconds, *words, *options], ranks, **start)
        job.end = end
        self.wait_for_stderr(job, "begins")
        return job

    def assert_exact(self, job, seconds=120):
        """Tells the job to end; what it printed, by name. All that was scheduled has counted once in each place."""
        job.end.touch()
        self.assertEqual(self.exit_code(job, seconds), 0, job.stdout + job.stderr)
        return self.assert_sums(job)

    def assert_sums(self, job):
        """Of a job that has ended."""
        figures = {name: int(figure) for name, figure in re.findall(r"^(\w+) (\d+)$", job.stdout, re.MULTILINE)}
        scheduled = figures["scheduled"]
        self.assertGreater(scheduled, 0)
        self.assertEqual({name: figures[name] for name in COUNTED}, dict.fromkeys(COUNTED, scheduled))
        return figures
