#!/usr/bin/env python3
"""`capstan doctor`: alone and under mpirun, as a table and as JSON; it finds injected faults."""
# Tests: launch/doctor/pair_messages.hpp
# Tests: launch/doctor/request.hpp
# Tests: launch/doctor/command_line.cpp
# Tests: launch/doctor/finding.cpp
# Tests: launch/doctor/rank_group.cpp
# Tests: launch/doctor/rank_group_mpi.cpp
# Tests: launch/doctor/pair_measure.cpp
# Tests: launch/doctor/pair_tester.cpp
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import BIN, CAPSTAN, HOST, MPIEXEC, JobTest, main

ENVIRONMENT = 3  # exit code of a failed check, docs/errors.md
# Excludes adapters, so that the results are the same on a cluster.
NO_ADAPTERS = {"UCX_TLS": "tcp,self,sysv,posix"}


class Doctor(JobTest):
    def examine(self, *options, ranks=0, env=NO_ADAPTERS, code=0, shell=None):
        """{check: [line, ...]} of --json. `shell` runs first, in the same process."""
        command = [CAPSTAN, "doctor", "--json", *options]
        if shell:
            command = ["sh", "-c", f"{shell}; exec {shlex.join(map(str, command))}"]
        job = self.start(command, ranks, env=env)
        self.assertEqual(self.exit_code(job), code, job.stdout + job.stderr)
        self.found = json.loads(job.stdout)
        self.assertEqual(self.found["exit_code"], code)
        lines = {}
        for line in self.found["checks"]:
            self.assertIn(line["verdict"], ("PASS", "WARN", "FAIL", "SKIP"))
            self.assertTrue(line["observed"], line)
            self.assertEqual("fix" in line, line["verdict"] in ("WARN", "FAIL"), line)
            lines.setdefault(line["check"], []).append(line)
        return lines

    def only(self, check, *options, **how):
        """The single line of a check that runs alone."""
        lines = self.examine("--only", check, *options, **how)
        self.assertEqual(list(lines), [check])
        (line,) = lines[check]
        return line

    def shown_on_a_terminal(self, **environment):
        terminal, end = os.openpty()
        with open(terminal, "rb", buffering=0, closefd=True) as shown, open(end, "wb", buffering=0) as output:
            subprocess.run([CAPSTAN, "doctor", "--only", "memlock"], stdout=output, timeout=60, check=False,
                           env={**os.environ, "TERM": "xterm", **environment})
            return shown.read(4096)

    def test_verdicts_have_colors_on_a_terminal_only(self):
        self.assertRegex(self.shown_on_a_terminal(), rb"\x1b\[\d\dm(PASS|WARN|FAIL)\x1b\[0m  memlock")
        self.assertNotIn(b"\x1b", self.shown_on_a_terminal(NO_COLOR="1"))
        self.assertNotIn(b"\x1b", self.shown_on_a_terminal(TERM="dumb"))
        piped = subprocess.run([CAPSTAN, "doctor", "--only", "memlock"], capture_output=True, text=True, timeout=60, check=False)
        self.assertNotIn("\x1b", piped.stdout)

    def listed(self):
        return [line.split()[0] for line in self.run_to_end([CAPSTAN, "doctor", "--list"]).stdout.splitlines()]

    def test_documentation_lists_every_check(self):
        page = (pathlib.Path(__file__).resolve().parents[2] / "docs/doctor.md").read_text()
        names = self.listed()
        self.assertGreater(len(names), 20)
        self.assertEqual([name for name in names if f"`{name}`" not in page.partition("## Checks")[2]], [])

    def test_alone(self):
        lines = self.examine("--checkpoint-dir", self.directory)
        self.assertEqual(list(lines), self.listed())
        self.assertEqual((self.found["ranks"], self.found["hosts"]), (1, [HOST]))
        for check in ("mpi", "ucx", "hdf5", "hwloc", "settings"):
            self.assertEqual(lines[check][0]["verdict"], "PASS", lines[check])
        for check in ("ranks", "ports", "clock"):
            self.assertEqual(lines[check][0]["verdict"], "SKIP", lines[check])
        self.assertRegex(lines["checkpoint-dir"][0]["observed"], r"free, [\d.]+ [kMG]B/s for 16 MiB with fsync, locks work$")
        self.assertEqual(os.listdir(self.directory), [])

    def test_table(self):
        text = self.run_to_end([CAPSTAN, "doctor", "--only", "hdf5,ranks"], env=NO_ADAPTERS).stdout
        self.assertRegex(text, rf"^capstan doctor \S+: 1 process on {HOST}\n\n"
                               r"PASS  hdf5           built with (\S+), runs with \1\n"
                               r"SKIP  ranks          started without a launcher.*\n\n1 PASS, 0 WARN, 0 FAIL, 1 SKIP\n$")

    def test_under_mpirun(self):
        lines = self.examine(ranks=3)
        self.assertEqual(list(lines), self.listed())
        self.assertEqual(self.found["ranks"], 3)
        for check in ("ranks", "binary", "ipc"):
            self.assertEqual(lines[check][0]["verdict"], "PASS", lines[check])
        # Equal findings of all ranks share a line.
        for check in ("mpi", "memlock", "ucx-devices"):
            (line,) = lines[check]
            self.assertEqual((line["ranks"], line["hosts"]), ([0, 1, 2], [HOST]))
        # Checks with the scope host run on one rank per host.
        (line,) = lines["dev-shm"]
        self.assertEqual(line["ranks"], [0])

    def assert_mapped(self, lines, pairs):
        (link,) = lines["transports"]
        self.assertEqual(link["verdict"], "PASS", link)
        self.assertRegex(link["observed"], rf"^same host: mapped memory, calls over tcp/\S+ \({pairs}, for example rank 0 -> 1\)$")
        # UCX emulates RMA over TCP, which does not matter if memory is mapped.
        (probe,) = lines["rma"]
        self.assertEqual(probe["verdict"], "PASS", probe)
        self.assertIn("UCX emulates RMA", probe["observed"])
        (speed,) = self.found["measurements"]
        self.assertEqual((speed["class"], speed["from"], speed["to"]), ("same host", 0, 1))
        self.assertRegex(speed["route"], r"^mapped memory, calls over tcp/")
        # Compares the line with the JSON; the speed of this machine is not asserted.
        (line,) = lines["speed"]
        self.assertIn(f"latency {speed['latency_us']:.3g} us", line["observed"])
        self.assertRegex(line["observed"], r"bandwidth [\d.]+ [MG]B/s")
        self.assertGreater(speed["latency_us"], 0)
        self.assertGreater(speed["bytes_per_second"], 0)
        self.assertIn("the rate of memcpy in this rank", speed["expected"]["source"])

    def test_pairs_alone(self):
        self.assert_mapped(self.examine("--only", "transports,rma,speed"), "1 pair")

    def test_pairs_under_mpirun(self):
        # Repeated, since of two processes that connect to each other at once one cannot map.
        for ranks, pairs in ((3, "3 pairs"), (4, "6 pairs"), (3, "3 pairs")):
            self.assert_mapped(self.examine("--only", "transports,rma,speed", ranks=ranks), pairs)

    def test_pairs_without_shared_memory(self):
        for ranks in (0, 3):
            lines = self.examine("--only", "transports,rma,speed", ranks=ranks, env={"UCX_TLS": "tcp,self"})
            self.assertRegex(lines["transports"][0]["observed"], r"^same host: active messages over tcp/")
            self.assertIn("UCX_TLS", lines["transports"][0]["fix"])
            self.assertEqual(lines["rma"][0]["verdict"], "WARN")
            self.assertIn("within 200 ms", lines["rma"][0]["observed"])
            (speed,) = self.found["measurements"]
            self.assertRegex(speed["route"], r"^active messages over tcp/")
            self.assertGreater(speed["bytes_per_second"], 0)

    def test_pairs_in_two_ipc_namespaces(self):
        if os.geteuid() != 0:
            self.skipTest("an IPC namespace needs root")
        rank = '"${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"'
        command = shlex.join([CAPSTAN, "doctor", "--json", "--only", "ipc,transports"])
        script = f"if [ {rank} = 1 ]; then exec unshare -i {command}; fi; exec {command}"
        job = self.start(["sh", "-c", script], ranks=2, env=NO_ADAPTERS)
        self.assertEqual(self.exit_code(job), 0, job.stdout + job.stderr)
        lines = {line["check"]: line for line in json.loads(job.stdout)["checks"]}
        self.assertEqual(lines["ipc"]["verdict"], "WARN", lines)
        self.assertIn("2 ranks", lines["ipc"]["observed"])
        self.assertEqual(lines["transports"]["verdict"], "WARN", lines)

    def test_pairs_without_network_transport(self):
        lines = self.examine("--only", "transports", env={"UCX_TLS": "posix,self"}, code=ENVIRONMENT)
        self.assertIn("does not answer over UCX", lines["transports"][0]["observed"])

    def test_differing_rank_has_its_own_line(self):
        rank = '"${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"'
        lines = self.examine("--only", "open-files", ranks=3, code=ENVIRONMENT, shell=f"test {rank} != 1 || ulimit -n 62")
        failed, passed = lines["open-files"]
        self.assertEqual((failed["verdict"], failed["ranks"]), ("FAIL", [1]))
        self.assertEqual((passed["verdict"], passed["ranks"]), ("PASS", [0, 2]))

    def test_reports_after_a_rank_died(self):
        version = subprocess.run([MPIEXEC, "--version"], capture_output=True, text=True).stdout
        if "Open MPI" not in version and "OpenRTE" not in version:
            self.skipTest("the test depends on how Open MPI's launcher ends ranks")
        rank = '"${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"'
        table = self.directory / "table"
        command = shlex.join([CAPSTAN, "doctor", "--json", "--only", "hdf5,ranks,transports"])
        # mpirun may send SIGKILL within milliseconds after SIGTERM. setsid shields rank 0 from both; it receives SIGTERM when
        # its shell dies, and its report may follow the end of mpirun.
        script = (f"case {rank} in 0) setsid setpriv --pdeathsig TERM {command} > {table} & wait ;;"
                  f" 1) exec {BIN / 'dies_in_mpi'} ;; *) exec {command} ;; esac")
        job = self.start(["sh", "-c", script], ranks=3, env=NO_ADAPTERS)
        self.assertNotEqual(self.exit_code(job), 0)
        lines = {line["check"]: line for line in json.loads(table.read_text())["checks"]}
        self.assertEqual(lines["hdf5"]["verdict"], "PASS", lines)
        self.assertEqual(lines["ranks"]["verdict"], "FAIL", lines)
        self.assertIn("the launcher terminated all ranks", lines["ranks"]["observed"])

    def test_limits(self):
        line = self.only("memlock", shell="ulimit -l 64")
        self.assertIn(line["verdict"], ("WARN", "FAIL"), line)  # FAIL where there is an adapter
        self.assertIn("64 KiB", line["observed"])
        self.assertIn("LimitMEMLOCK", line["fix"])
        line = self.only("open-files", shell="ulimit -n 55", code=ENVIRONMENT)
        self.assertIn("at most 55", line["observed"])
        self.assertEqual(self.only("open-files", shell="ulimit -n 150")["verdict"], "WARN")

    def test_ucx_variables(self):
        line = self.only("ucx-variables", env={**NO_ADAPTERS, "UCX_TLX": "tcp", "CAPSTAN_UCX_NONSENSE": "1"})
        self.assertEqual(line["verdict"], "WARN")
        self.assertIn("UCX_TLX is not used", line["observed"])
        self.assertIn("CAPSTAN_UCX_NONSENSE is not used", line["observed"])
        self.assertIn("did you mean UCX_TLS?", line["fix"])
        # Also if the log of UCX is disabled or redirected.
        for name, value in (("UCX_LOG_LEVEL", "fatal"), ("UCX_LOG_FILE", self.directory / "log")):
            line = self.only("ucx-variables", env={**NO_ADAPTERS, "UCX_TLX": "tcp", name: str(value)})
            self.assertEqual(line["verdict"], "WARN", name)
        line = self.only("ucx-variables", env={**NO_ADAPTERS, "UCX_RNDV_THRESH": "abc"}, code=ENVIRONMENT)
        self.assertIn("RNDV_THRESH", line["observed"])

    def test_ucx_devices(self):
        line = self.only("ucx-devices", env={**NO_ADAPTERS, "UCX_NET_DEVICES": "lo,mlx9_0:1"})
        self.assertEqual(line["verdict"], "WARN")
        self.assertIn("'mlx9_0:1' is not available", line["observed"])
        line = self.only("ucx-devices", env={**NO_ADAPTERS, "UCX_NET_DEVICES": "mlx9_0:1"}, code=ENVIRONMENT)
        self.assertIn("no network", line["observed"])
        line = self.only("ucx-devices", env={"UCX_TLS": "tcp,self,posux"})
        self.assertIn("'posux' is not available", line["observed"])

    def test_settings(self):
        line = self.only("settings", env={"CAPSTAN_WINDOV": "am"}, code=ENVIRONMENT)
        self.assertIn("did you mean CAPSTAN_WINDOW?", line["observed"])

    def test_singleton_worlds(self):
        for variable in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE"):
            line = self.only("ranks", env={variable: "4"}, code=ENVIRONMENT)
            self.assertIn(f"4 ranks ({variable}), MPI sees 1", line["observed"])
            self.assertIn("--mpi=pmix", line["fix"])
        line = self.only("ranks", env={"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "0"}, code=ENVIRONMENT)
        self.assertIn("MPI sees none", line["observed"])

    def test_checkpoint_directory(self):
        line = self.only("checkpoint-dir", "--checkpoint-dir", self.directory / "missing")
        self.assertEqual(line["verdict"], "WARN")
        self.assertIn("does not exist", line["observed"])
        line = self.only("checkpoint-dir", "--checkpoint-dir", "/proc/missing", code=ENVIRONMENT)
        self.assertIn("cannot be written", line["observed"])
        line = self.only("checkpoint-dir", env={"CAPSTAN_CHECKPOINT_DIR": "/proc/missing"}, code=ENVIRONMENT)
        self.assertIn("/proc/missing", line["observed"])

    def test_read_only_or_full_checkpoint_directory(self):
        disk = self.small_disk("4m")
        line = self.only("checkpoint-dir", "--checkpoint-dir", disk, code=ENVIRONMENT)
        self.assertIn("No space left", line["observed"])
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        line = self.only("checkpoint-dir", "--checkpoint-dir", disk, code=ENVIRONMENT)
        self.assertIn("Read-only", line["observed"])

    def test_time_left(self):
        squeue = self.directory / "squeue"
        squeue.write_text('#!/bin/sh\n[ "$*" = "-h -j 7 -o %L" ] || exit 1\necho $LEFT\n')
        squeue.chmod(0o755)
        job = {"SLURM_JOB_ID": "7", "PATH": f"{self.directory}:{os.environ['PATH']}"}
        for left, verdict in (("1-00:00:00", "PASS"), ("05:00", "WARN"), ("INVALID", "SKIP")):
            self.assertEqual(self.only("time-left", env={**job, "LEFT": left})["verdict"], verdict, left)
        self.assertEqual(self.only("time-left", env={**job, "SLURM_JOB_END_TIME": "1000"})["verdict"], "WARN")

    def test_bad_options(self):
        for options, said in ((["--only", "memlok"], "did you mean memlock?"), (["--jsom"], "did you mean --json?")):
            job = self.start([CAPSTAN, "doctor", *options])
            self.assertEqual(self.exit_code(job), 2)
            self.assertRegex(job.stderr, re.escape(said))


if __name__ == "__main__":
    main()
