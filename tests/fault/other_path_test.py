#!/usr/bin/env python3
"""A closure whose worker died runs again on a worker with another path to the ps: its pushes count exactly once."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from gpu import gpu_flags
from job import BIN, LONG_TIMEOUTS, JobTest, main
from sums import ON_GPU

# Workers are ranks 1 and 2.
BY_RANK = """
case "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" in
1) export PATH_NAME=one $ONE ;;
2) export PATH_NAME=other $OTHER ;;
esac
exec "$0" "$@"
"""


class OtherPath(JobTest):
    environment = LONG_TIMEOUTS

    def check(self, one, other, *options, **environment):
        """`one` and `other`: an environment variable of one worker and of the other."""
        directory = self.directory / f"{one}-{other}"
        directory.mkdir()
        command = ["sh", "-c", BY_RANK, BIN / "large_pushes", directory, "--capstan-ps=1", *options]
        job = self.run_to_end(command, 4, env={"ONE": one, "OTHER": other, **environment})
        self.assertEqual(sorted(path.name for path in directory.iterdir()), ["one", "other"], "each worker died once")
        total, expected = re.search(r"^sum (\d+) of (\d+)$", job.stdout, re.MULTILINE).groups()
        self.assertEqual(total, expected, job.stderr)
        return job

    def test_mapped_memory_and_messages(self):
        self.check("CAPSTAN_WINDOW=auto", "CAPSTAN_WINDOW=am")

    def test_mapped_memory_and_remote_access(self):
        self.check("CAPSTAN_WINDOW=auto", "CAPSTAN_WINDOW=rma")

    def test_pinned_memory_and_none(self):
        job = self.check("CAPSTAN_GPU_TRANSFER=auto", "CAPSTAN_GPU_TRANSFER=staged", "--capstan-log-level=debug",
                         *gpu_flags(prefix="--capstan-"), **ON_GPU)
        self.assertRegex(job.stderr, r"worker 0\S* \[debug\] GPU 0 copies gradients into the GPU of ps 0")
        self.assertNotRegex(job.stderr, r"worker 1\S* \[debug\] GPU 0 copies gradients")


if __name__ == "__main__":
    main()
