#!/usr/bin/env python3
"""`capstan report`: planted names and secrets occur nowhere in the file; the doctor, the system and the job do."""
# Tests: launch/report/report.cpp
# Tests: launch/report/document.hpp
# Tests: launch/report/machine.hpp
# Tests: launch/report/request.hpp
# Tests: launch/report/command_line.cpp
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import CAPSTAN, HOST, JobTest, main

USAGE = 2  # exit code, docs/errors.md
PLANTED = {
    "host": "plantedhost", "worker": "plantedworker", "ps": "plantedps", "late": "plantedlate", "sibling": "nid00817", "user": "plantedlogin", "account": "plantedproject", "secret": "planted+secret",
    "token": "0f" * 32, "reversed token": "f0" * 32, "address": "10.77.66.55", "ipv6": "fe80::77:66", "hardware": "0c:42:a1:77:66:55", "home": "plantedthesis",
    "mail": "planted.name@example.org",
}  # fmt: skip
ENVIRONMENT = {
    "UCX_TLS": "tcp,self,sysv,posix",  # the same results on a cluster
    "USER": PLANTED["user"],
    "SLURM_JOB_ACCOUNT": PLANTED["account"],
    "SLURM_SUBMIT_HOST": "nid00012",
    "SLURM_LAUNCH_NODE_IPADDR": PLANTED["address"],
    "SITE_API_KEY": PLANTED["secret"],
    "LD_LIBRARY_PATH": f"/home/{PLANTED['user']}/{PLANTED['home']}/lib:/opt/kept/lib",
}




def write_run_directory(run, filler):
    """Writes the files of a job, with planted names; the log has `filler` lines before them."""
    (run / "log").mkdir(parents=True)
    (run / "cluster.json").write_text(json.dumps({"token": PLANTED["reversed token"], "host": PLANTED["host"]}))
    (run / "metrics.jsonl").write_text(json.dumps({"ps": [{"host": PLANTED["ps"]}]}) + "\n")
    (run / "summary.txt").write_text(f"{PLANTED['worker']}: 3 shards kept in /scratch/{PLANTED['user']}\n")
    (run / "log" / "rank-00001.log").write_text(
        "a first line\n" * filler
        + f"[2026-11-30 10:00:00.000] [rank 1] [worker 0@{PLANTED['worker']}] [info] ps 1 (rank 2 on {PLANTED['late']}) joined\n"
          f"[info] {PLANTED['ps']}, {PLANTED['host']} at {PLANTED['address']}, {PLANTED['ipv6']}, {PLANTED['hardware']}\n"
          f"[info] {PLANTED['sibling']}: token={PLANTED['token']}, {PLANTED['reversed token']}, secret {PLANTED['secret']}\n"
          f"[info] /home/{PLANTED['user']}/{PLANTED['home']}/run, {PLANTED['mail']}, a kept line\n")
    (run / "trace.json").write_text("a trace that is left out")
    return run


class Report(JobTest):
    environment = ENVIRONMENT

    def setUp(self):
        super().setUp()
        self.output = self.directory / "report.txt"

    def report(self, *options, prefix=(), **how):
        return self.run_to_end([*prefix, CAPSTAN, "report", "--output", self.output, *options], **how)

    def refused(self, *options, env=None):
        job = self.start([CAPSTAN, "report", *options], env=env)
        self.assertEqual(self.exit_code(job), USAGE, job.stderr)
        return job.stderr

    def assert_anonymous(self, text):
        for kind, value in PLANTED.items():
            self.assertNotIn(value.lower(), text.lower(), kind)
        self.assertNotRegex(text, rf"(?<![A-Za-z0-9]){HOST}(?![A-Za-z0-9])")

    def host_name_prefix(self):
        """Returns a command that gives a program the planted host name; empty without root."""
        unshare = ["unshare", "--uts", "sh", "-c", f'hostname {PLANTED["host"]} && exec "$@"', "sh"]
        allowed = os.geteuid() == 0 and subprocess.run([*unshare, "true"], capture_output=True).returncode == 0
        return unshare if allowed else []

    def test_describes_the_host_and_the_job_without_planted_names(self):
        prefix = self.host_name_prefix()
        job = self.report(write_run_directory(self.directory / "run", 10000), prefix=prefix)
        self.assertIn(str(self.output), job.stdout)
        self.assertEqual(sorted(path.name for path in self.directory.iterdir()), ["report.txt", "run"])
        text = self.output.read_text()
        self.assert_anonymous(text)
        self.assertRegex(text, r"\[rank 1\] \[worker 0@host-\d+\] \[info\] ps 1 \(rank 2 on host-\d+\) joined")
        for kept in ("a kept line", "logs: 1 found, 0 left out, 0 unreadable", "3 shards kept", "/opt/kept/lib", "compiler", "UCX_TLS=tcp", "MemTotal", "Max open files",
                     "transparent_hugepage", "$ lscpu"):
            self.assertIn(kept, text)
        self.assertNotIn("a trace", text)
        # The doctor's report is complete.
        checks = self.run_to_end([CAPSTAN, "doctor", "--list"]).stdout.splitlines()
        self.assertGreater(len(checks), 20)
        for line in checks:
            self.assertIn(f'"check": "{line.split()[0]}"', text)
        # Of a long log, only the end is there.
        self.assertLess(text.count("a first line"), 6000)
        self.assertRegex(text, r"rank-00001.log .* bytes; the first \d+ bytes are left out")
        # The file ends with its contents and the replaced names.
        end = text.partition("== contents of this file")[2]
        for part in ("capstan doctor --json", "environment variables", "RUN_DIR/log/rank-00001.log", "RUN_DIR/metrics.jsonl"):
            self.assertIn(part, end)
        numbers = dict(re.findall(r"(?m)^([a-z-]+)-N +(\d+)$", end))
        self.assertEqual(len(numbers), 9)
        for kind in ("host", "user", "account", "home-path", "address", "hardware-address", "login", "secret"):
            self.assertGreater(int(numbers[kind]), 0, kind)

    def test_large_report_is_compressed(self):
        run = write_run_directory(self.directory / "run", 10000)
        for rank in range(2, 20):
            shutil.copy(run / "log" / "rank-00001.log", run / "log" / f"rank-{rank:05}.log")
        self.report(run)
        self.assertFalse(self.output.exists())
        text = gzip.decompress(pathlib.Path(f"{self.output}.gz").read_bytes()).decode()
        self.assert_anonymous(text)
        self.assertIn("RUN_DIR/log/rank-00019.log", text)

    def test_under_a_launcher(self):
        self.report(ranks=2)
        self.assertIn('"ranks": 2', self.output.read_text())

    @unittest.skipUnless(os.environ.get("CAPSTAN_TESTS_LONG"), "CAPSTAN_TESTS_LONG is not set")
    def test_perf(self):
        self.report("--perf")
        self.assertRegex(self.output.read_text(), r"(?s)== benchmarks\n\$ .*perf_lookup.*rows/s.*perf_push.*rows/s")

    def test_force_replaces_the_output(self):
        self.output.write_text("mine")
        self.report("--force")
        self.assertIn("== build", self.output.read_text())

    def test_rejects_bad_arguments(self):
        self.output.write_text("mine")
        self.assert_names(self.refused("--output", self.output), self.output, "--force")
        self.assertEqual(self.output.read_text(), "mine")
        self.assert_names(self.refused("--output", self.directory / "none" / "r"), self.directory / "none")
        self.assert_names(self.refused(self.directory / "none"), self.directory / "none")
        self.assert_names(self.refused(self.output, "--output", self.directory / "new"), self.output)
        self.assert_names(self.refused("--perf", env={"OMPI_COMM_WORLD_SIZE": "1"}), "--perf", "OMPI_COMM_WORLD_SIZE")
        self.assertEqual([path.name for path in self.directory.iterdir()], ["report.txt"])


if __name__ == "__main__":
    main()
