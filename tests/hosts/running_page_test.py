#!/usr/bin/env python3
"""Runs every shell block of docs/howto/ unchanged: on one host, on two hosts, and on Slurm.

A block is ```sh after a line `<!-- tested: PLACE -->`. A test runs the "everywhere" blocks of laptop.md, then the
blocks of a page for one place, as one script. The script runs in a directory that looks like the source tree after
launch/setup.
"""
import os
import pathlib
import re
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import two_hosts
import two_node_slurm
from job import BIN, MPIEXEC, JobTest, main

SCRATCH = pathlib.Path(sys.argv[3])
del sys.argv[3]
ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = {path.stem: path.read_text() for path in sorted((ROOT / "docs" / "howto").glob("*.md"))}
PLACES = ("everywhere", "one", "hosts", "slurm")
BLOCK = re.compile(r"^<!-- tested: (\w+) -->\n```sh\n(.*?)^```$", re.S | re.M)


def blocks(page, place):
    return [text for name, text in BLOCK.findall(PAGES[page]) if name == place]


class HowToPages(JobTest):
    def setUp(self):
        super().setUp()
        self.tree = self.directory / "tree"
        (self.tree / "build" / "release").mkdir(parents=True)
        for name in ("launch", "tests"):
            (self.tree / name).symlink_to(ROOT / name)
        (self.tree / "build" / "release" / "bin").symlink_to(BIN.resolve())

    def script(self, page, place):
        path = self.directory / "blocks.sh"
        script = blocks("laptop", "everywhere") + blocks(page, place)
        path.write_text("set -euxo pipefail\ncd " + str(self.tree) + "\n" + "".join(script))
        return path

    def run_page(self, command, **environment):
        job = self.start(command, env={"PATH": f"{pathlib.Path(MPIEXEC).absolute().parent}:{os.environ['PATH']}", **environment})
        self.assertEqual(self.exit_code(job, 150), 0, job.stderr)
        return job

    def test_every_shell_block_has_a_known_place(self):
        places = set()
        for page, text in PAGES.items():
            self.assertEqual(text.count("```sh\n"), len(BLOCK.findall(text)), page)
            places |= {name for name, _ in BLOCK.findall(text)}
        self.assertEqual(places, set(PLACES))

    def test_laptop(self):
        job = self.run_page(["bash", self.script("laptop", "one")])
        self.assertEqual(job.stdout.count("test, filtered"), 4, job.stdout)
        self.assertIn("resumed from run/checkpoint-00000060 after epoch 60", job.stderr)
        self.assertRegex(job.stdout, r"(?m)^CAPSTAN_PS=2 CAPSTAN_WORKERS=4 .*-n 7 ")

    def test_checkpoint(self):
        job = self.run_page(["bash", self.script("checkpoint", "one")])
        self.assertIn("resumed from saved/checkpoint-00000010 after epoch 10", job.stderr)

    def test_monitor(self):
        job = self.run_page(["bash", self.script("monitor", "one")])
        self.assertIn("metrics of the job", job.stdout)

    def test_serve(self):
        self.run_page(["bash", self.script("serve", "one")])
        self.assertTrue((self.tree / "model.h5").is_file())
        self.assertTrue((self.tree / "entities.npy").is_file())

    @unittest.skipIf(two_hosts.reason_to_skip(MPIEXEC), two_hosts.reason_to_skip(MPIEXEC) or "")
    def test_on_two_hosts(self):
        two_hosts.clean(SCRATCH)
        hosts = self.enterContext(two_hosts.TwoHosts(SCRATCH))
        subnet = f"{two_hosts.NETWORK}.0/24"
        job = self.run_page(hosts.on_first("bash", self.script("hosts", "hosts")), OMPI_MCA_plm_rsh_agent=str(hosts.directory / "agent.sh"),
                            OMPI_MCA_oob_tcp_if_include=subnet, OMPI_MCA_btl_tcp_if_include=subnet, **hosts.environment)
        self.assertEqual(job.stdout.count("test, filtered"), 1, job.stdout)
        self.assertIn("@host1] [info] ps on another host", job.stderr)

    @unittest.skipIf(two_node_slurm.reason_to_skip(), two_node_slurm.reason_to_skip() or "")
    def test_on_slurm(self):
        two_node_slurm.clean()
        slurm = self.enterContext(two_node_slurm.TwoNodeSlurm(BIN, SCRATCH))
        job = self.run_page(["bash", self.script("slurm", "slurm")], SBATCH_WAIT="1", **slurm.environment)
        outputs = {path.name: path.read_text() for path in self.tree.glob("capstan-*.out")}
        self.assertEqual(len(outputs), 4, outputs)
        for name, text in outputs.items():
            self.assertRegex(text, r"capstan run: the job ended after \S+ s with exit code 0: ", name)
        self.assertEqual(len(list((self.tree / "sweep").iterdir())), 2)
        self.assertIn("test, filtered", job.stdout, "output of salloc")


if __name__ == "__main__":
    # All hosts and nodes see this directory.
    SCRATCH.mkdir(parents=True, exist_ok=True)
    tempfile.tempdir = str(SCRATCH)
    main()
