#!/usr/bin/env python3
"""`capstan train kge` on two hosts, with ps on both and active messages between them; ranks of host2 die and join."""
import json
import os
import pathlib
import re
import signal
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import two_hosts
from longer_jobs import kill_child, retry_with_longer_job
from job import CAPSTAN, LEARNED_MRR, MPIEXEC, SECONDS_TO_END, TRAINING_OUTPUT, JobTest, agent_of, main, in_shell, train
from small_models import write_libsvm

SCRATCH = pathlib.Path(sys.argv[3])
del sys.argv[3]

SLOTS = 3
RANKS = 2 * SLOTS
# Ranks 0 to 2 are on host1, ranks 3 to 5 on host2; each host's highest rank is a ps.
PS = {2: "ps 0 (rank 2 on host1)", 5: "ps 1 (rank 5 on host2)"}
WORKERS = {1: "worker 0 (rank 1 on host1)", 3: "worker 1 (rank 3 on host2)", 4: "worker 2 (rank 4 on host2)"}


class OnTwoHosts(JobTest):
    reason = two_hosts.reason_to_skip(MPIEXEC)

    @classmethod
    def setUpClass(cls):
        if not cls.reason:
            two_hosts.clean(SCRATCH)
            cls.hosts = cls.enterClassContext(two_hosts.TwoHosts(SCRATCH))

    def setUp(self):
        if self.reason:
            self.skipTest(self.reason)
        super().setUp()

    def start_training(self, *options, epochs, under_shell=False):
        options = ["--ps", 2, "--eval-every", 10, "--summary", self.directory / "summary.json", *options]
        command = train(self.graph(), *options, epochs=epochs)
        return self.start(
            in_shell(command) if under_shell else command,
            RANKS,
            launcher=self.hosts.launcher(MPIEXEC, SLOTS),
            env=self.hosts.environment,
        )

    def assert_paths(self, job):
        """Checks the path of each client to each ps: mapped memory on the same host, messages elsewhere."""
        line = r"\[(\w+) (\d)@(host\d)\] \[debug\] ps (\d) \(rank \d on (host\d)\): (mapped memory|active messages over tcp)"
        seen = re.findall(line, job.stderr)
        for role, index, host, ps, ps_host, path in seen:
            expected = "mapped memory" if host == ps_host else "active messages over tcp"
            self.assertEqual(path, expected, f"{role} {index} on {host} to ps {ps} on {ps_host}")
        pairs = {(role, index, ps) for role, index, _, ps, _, _ in seen}
        clients = [("coordinator", "0"), *(("worker", str(index)) for index in range(len(WORKERS)))]
        self.assertEqual(pairs, {(*client, ps) for client in clients for ps in "01"}, job.stderr)

    def test_trains_with_ps_on_both_hosts(self):
        job = self.start_training("--log-level", "debug", epochs=300)
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        self.assert_paths(job)
        summary = self.summary()
        self.assertEqual((summary["cluster"]["ps"], summary["cluster"]["workers"]), (2, 3))
        self.assertEqual(summary["training"]["triples"], 300 * summary["data"]["train"])
        self.assertGreater(summary["test"]["mrr"], LEARNED_MRR)

    def test_result_equals_that_of_one_host(self):
        write_libsvm(self.directory / "train.txt", 300)
        program = [CAPSTAN, "train", "lr", "--data", self.directory / "train.txt", "--mode", "synchronous", "--epochs", 20,
                   "--ps", 2, "--workers", 3, "--summary", self.directory / "summary.json"]
        self.run_to_end(program, RANKS)
        on_one = self.summary()["train"]["objective"]
        (self.directory / "summary.json").unlink()
        self.run_to_end(program, RANKS, launcher=self.hosts.launcher(MPIEXEC, SLOTS), env=self.hosts.environment)
        self.assertAlmostEqual(self.summary()["train"]["objective"], on_one, delta=1e-9)

    def examine(self, *options, code):
        """Runs `capstan doctor --json`; returns ({check: its lines}, measurements)."""
        job = self.start([CAPSTAN, "doctor", "--json", *options], RANKS, launcher=self.hosts.launcher(MPIEXEC, SLOTS),
                         env=self.hosts.environment)
        self.assertEqual(self.exit_code(job), code, job.stdout + job.stderr)
        found = json.loads(job.stdout)
        self.assertEqual(found["hosts"], ["host1", "host2"])
        lines = {}
        for line in found["checks"]:
            lines.setdefault(line["check"], []).append(line)
        return lines, found["measurements"]

    def test_doctor_checks_both_hosts(self):
        lines, measured = self.examine("--only", "dev-shm,clock,ipc,transports,rma,speed", code=0)
        self.assertEqual(lines["dev-shm"][0]["hosts"], ["host1", "host2"])
        self.assertEqual((lines["clock"][0]["verdict"], lines["ipc"][0]["verdict"]), ("PASS", "PASS"), lines)
        same, other = lines["transports"]
        self.assertRegex(same["observed"], r"^same host: mapped memory, calls over tcp/\S+ \(6 pairs, ")
        self.assertRegex(other["observed"], r"^other host: active messages over tcp/\S+ \(9 pairs, ")
        self.assertRegex(lines["rma"][0]["observed"], r"^other host: .* within 200 ms")
        self.assertEqual(lines["rma"][0]["verdict"], "WARN")
        self.assertEqual(sorted(pair["class"] for pair in measured), ["other host", "same host", "same host"])

    def test_doctor_reports_unknown_host_names(self):
        # Neither the hosts nor the machine's resolver can resolve these names.
        lines, _ = self.examine("--only", "ports", code=0)
        self.assertEqual(lines["ports"][0]["verdict"], "WARN")
        self.assertIn("host1 -> host2: the name host2 is ", lines["ports"][0]["observed"])

    def test_doctor_checks_whether_hosts_share_the_checkpoint_directory(self):
        shared, _ = self.examine("--only", "shared-dir", "--checkpoint-dir", SCRATCH, code=0)
        self.assertEqual(shared["shared-dir"][0]["verdict"], "PASS", shared)
        # Each host has its own /dev/shm.
        apart, _ = self.examine("--only", "shared-dir", "--checkpoint-dir", "/dev/shm", code=3)
        self.assertIn("1 of 2 hosts", apart["shared-dir"][0]["observed"])
        self.assertRegex(apart["shared-dir"][0]["observed"], r": host2$")

    def test_settings_command_shows_the_paths(self):
        job = self.start(
            [CAPSTAN, "settings", "--transports", "--ps", 2],
            RANKS,
            launcher=self.hosts.launcher(MPIEXEC, SLOTS),
            env=self.hosts.environment,
        )
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        paragraphs = re.findall(r"ps on (this|another) host +(\w+ \w+).*\n(?:  .*\n)*?  routes +(.*)", job.stdout)
        paths = {kind: (path, names) for kind, path, names in paragraphs}
        self.assertEqual({kind: path for kind, (path, _) in paths.items()},
                         {"this": "mapped memory", "another": "active messages"}, job.stdout)
        self.assertEqual(paths["this"][1], "4: coordinator 0 on host1 -> ps 0 on host1, worker 0 on host1 -> ps 0 on host1, "
                         "worker 1 on host2 -> ps 1 on host2, worker 2 on host2 -> ps 1 on host2")
        self.assertTrue(paths["another"][1].startswith("4: coordinator 0 on host1 -> ps 1 on host2, "), job.stdout)
        self.assertRegex(job.stdout, r"UCX \S+ on host1, host2, with ")

    def test_resumes_from_a_checkpoint(self):
        directory = self.directory / "checkpoints"
        job = self.start_training("--checkpoint-dir", directory, epochs=150)
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        job = self.start_training("--checkpoint-dir", directory, "--resume", epochs=240)
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        self.assertEqual(self.summary()["training"]["first_epoch"], 151)
        self.assertGreater(self.summary()["test"]["mrr"], LEARNED_MRR)

    def kill_in_time(self, rank, noticed, *options):
        """Kills the rank during training; repeats with a longer job until standard error contains `noticed`."""
        def run(epochs):
            job = self.start_training("--slice-batches", 1, *options, epochs=epochs)
            self.assertTrue(job.wait_for_text(TRAINING_OUTPUT), job.stderr)
            kill_child(job, rank)
            self.assertEqual(self.exit_code(job), 0, job.stderr)
            return noticed in job.stderr

        retry_with_longer_job(1000, run)
        self.assertGreater(self.summary()["test"]["mrr"], LEARNED_MRR)

    def test_job_continues_without_a_killed_worker_of_the_other_host(self):
        self.kill_in_time(4, f"{WORKERS[4]} is dead", "--max-restarts", 0)
        self.assertEqual(self.summary()["training"]["workers_lost"], 1)

    def test_killed_ps_of_the_other_host_is_restarted(self):
        self.kill_in_time(5, f"{PS[5]} has recovered")

    def test_spare_replaces_a_ps_that_is_lost_on_the_other_host(self):
        # The spare is rank 1, on the first host; the workers, ranks 3 and 4, are on the second.
        directory = self.directory / "checkpoints"
        options = ["--checkpoint-dir", directory, "--checkpoint-every", 100, "--spares", 1, "--ps-wait", "300ms"]
        job = self.start_training("--slice-batches", 1, *options, epochs=1000, under_shell=True)
        self.assertTrue(job.wait_for_text(r"epoch +1[0-4]0\b"), job.stderr)
        # The checkpoint is written in the background.
        self.assertTrue(job.wait_for(lambda: (directory / "latest").exists()), job.stderr)
        os.kill(agent_of(job, 5), signal.SIGKILL)
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        self.assertIn(f"{PS[5]} is lost; spare 0 (rank 1 on host1) takes its shards over from checkpoint {directory}", job.stderr)
        self.assertIn("ps 1 (rank 5 on host1) has recovered", job.stderr)
        self.assertGreater(self.summary()["test"]["mrr"], LEARNED_MRR)

    def test_job_ends_when_a_ps_of_the_other_host_is_killed(self):
        job = self.start_training("--ps-restart", "off", epochs=1_000_000)
        self.assertTrue(job.wait_for_text(TRAINING_OUTPUT), job.stderr)
        os.kill(job.ranks()[5][1], signal.SIGKILL)
        self.assertEqual(self.exit_code(job, SECONDS_TO_END), 4, job.stderr)
        # A read in flight adds what the ps was asked to do.
        self.assertRegex(job.stderr, rf"capstan: {re.escape(PS[5])} is dead")

    def join(self, job, run_dir, index):
        """Starts a worker on the second host, which joins the job with this index."""
        worker = self.start(self.hosts.on_second(CAPSTAN, "join", run_dir), env=self.hosts.environment)
        joined = rf"worker {index} \(rank \d+ on host2\) has joined; live workers: {index + 1}"
        self.assertTrue(job.wait_for_text(joined), job.stderr + worker.stderr)
        return worker

    def test_joined_workers_leave_or_end_with_a_killed_launcher(self):
        run_dir = self.directory / "run"
        job = self.start_training("--run-dir", run_dir, epochs=1_000_000)
        self.assertTrue(job.wait_for_text(TRAINING_OUTPUT), job.stderr)
        leaver, stayer = self.join(job, run_dir, 3), self.join(job, run_dir, 4)
        os.kill(leaver.command.pid, signal.SIGTERM)
        self.assertEqual(self.exit_code(leaver), 0, leaver.stderr)
        self.assertRegex(job.stderr, r"worker 3 \(rank \d+ on host2\) has left; executed functions: \d+, live workers: 4")
        job.signal_launcher(signal.SIGKILL)
        self.assertNotEqual(self.exit_code(job, SECONDS_TO_END), 0, job.stderr)
        self.assertEqual(self.exit_code(stayer, SECONDS_TO_END), 4, stayer.stderr)


if __name__ == "__main__":
    # Both hosts see this directory.
    SCRATCH.mkdir(parents=True, exist_ok=True)
    tempfile.tempdir = str(SCRATCH)
    main()
