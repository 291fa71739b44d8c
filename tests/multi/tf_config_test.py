#!/usr/bin/env python3
"""A job of separate processes that only TF_CONFIG describes, without a launcher or MPI."""
import json
import os
import pathlib
import re
import signal
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from addresses import free_addresses
from longer_jobs import retry_with_longer_job
from job import BIN, CAPSTAN, HOST, LEARNED_MRR, TRAINING_OUTPUT, JobTest, child_of, main, names_parameters, train


def cluster(ps=1, workers=2, chief="chief"):
    addresses = free_addresses(1 + ps + workers)
    return {chief: addresses[:1], "ps": addresses[1 : 1 + ps], "worker": addresses[1 + ps :]}


class TFConfig(JobTest):
    def task(self, tasks, job, index, command, **environment):
        config = {"cluster": tasks, "task": {"type": job, "index": index}}
        return self.start(command, env={**os.environ, "TF_CONFIG": json.dumps(config), **environment})

    def start_all(self, tasks, command, leave_out=(), **environment):
        return {
            (job, index): self.task(tasks, job, index, command, **environment)
            for job, addresses in tasks.items()
            for index in range(len(addresses))
            if (job, index) not in leave_out
        }

    def training(self, *options, epochs=60):
        summary = self.directory / "summary.json"
        return train(self.graph(), "--eval-every", 10, "--summary", summary, *options, epochs=epochs)

    def mrr(self):
        return json.loads((self.directory / "summary.json").read_text())["test"]["mrr"]

    def assert_all_end(self, jobs, code):
        for name, job in jobs.items():
            self.assertEqual(self.exit_code(job), code, f"{name}: {job.stderr}")

    def test_trains(self):
        tasks = cluster(ps=2)
        jobs = self.start_all(tasks, self.training(epochs=300))
        self.assert_all_end(jobs, 0)
        self.assertIn("2 ps, 2 workers", jobs["chief", 0].stderr)
        self.assertGreater(self.mrr(), LEARNED_MRR)

    def test_trains_under_capstan_agent(self):
        """The build of the coordinator's program, not that of its agent, is compared with those of the other tasks."""
        jobs = self.start_all(cluster(workers=1), [BIN / "capstan-agent", "--", *self.training(epochs=300)])
        self.assert_all_end(jobs, 0)
        self.assertIn("1 ps, 1 worker on 1 host", jobs["chief", 0].stderr)
        self.assertGreater(self.mrr(), LEARNED_MRR)

    def test_program_with_its_own_resolver(self):
        tasks = cluster(ps=1, workers=1)
        addresses = [tasks[name][0] for name in ("chief", "ps", "worker")]
        jobs = {(name, 0): self.start([BIN / "resolver_task", name, 0, *addresses, "--capstan-log-level=info"])
                for name in tasks}
        self.assert_all_end(jobs, 0)
        self.assertEqual(jobs["chief", 0].stdout.splitlines(),
                         ["twice 21 is 42", f"this is chief 0 at {addresses[0]}", f"ps 0 is at {addresses[1]}"])

    def test_accepts_coordinator_as_chief_and_any_order_of_starts(self):
        tasks = cluster(chief="coordinator")
        token = {"CAPSTAN_JOB_TOKEN": "5a" * 32}
        command = self.training(epochs=300)
        jobs = {name: self.task(tasks, *name, command, **token) for name in [("worker", 1), ("ps", 0), ("worker", 0)]}
        jobs["coordinator", 0] = self.task(tasks, "coordinator", 0, command, **token)
        self.assert_all_end(jobs, 0)
        self.assertGreater(self.mrr(), LEARNED_MRR)

    def test_killed_worker_and_ps_are_restarted(self):
        retry_with_longer_job(1000, self.worker_and_ps_are_restarted)

    def worker_and_ps_are_restarted(self, epochs):
        jobs = self.start_all(cluster(), self.training("--slice-batches", 1, epochs=epochs))
        chief = jobs["chief", 0]
        self.assertTrue(chief.wait_for_text(TRAINING_OUTPUT), chief.stderr)
        for name in (("worker", 1), ("ps", 0)):
            if child := child_of(jobs[name].command.pid):
                os.kill(child, signal.SIGKILL)
        if not chief.wait_for_text(rf"worker 1 \(rank \d+ on {HOST}\) replaces the previous process"):
            self.assertEqual(self.exit_code(chief), 0, chief.stderr)
            return False  # the job had already ended
        self.assert_all_end(jobs, 0)
        self.assertIn(f"ps 0 (rank 1 on {HOST}) has recovered", chief.stderr)
        self.assertGreater(self.mrr(), LEARNED_MRR)
        return True

    def test_worker_that_joins_replaces_a_dead_one(self):
        run_dir = self.directory / "run"
        jobs = self.start_all(cluster(), self.training("--slice-batches", 1, "--run-dir", run_dir, epochs=1_000_000))
        chief, dead = jobs["chief", 0], jobs.pop(("worker", 1))
        self.assertTrue(chief.wait_for_text(TRAINING_OUTPUT), chief.stderr)
        os.kill(dead.command.pid, signal.SIGKILL)
        self.exit_code(dead)
        self.assertTrue(chief.wait_for_text(rf"worker 1 \(rank \d+ on {HOST}\) is dead"), chief.stderr)
        jobs["worker", 2] = self.start([CAPSTAN, "join", run_dir])
        self.assertTrue(chief.wait_for_text(rf"worker 2 \(rank \d+ on {HOST}\) has joined; live workers: 2"), chief.stderr)
        # Until worker 2 has executed a function, it may be in its handshake and not detect the death of the chief.
        worked = rf"worker 2 +{HOST[:9]} +\S+(?: [kM])? +[1-9]"
        while not re.search(worked, self.run_to_end([CAPSTAN, "top", run_dir, "--once"]).stdout):
            self.assertIsNone(chief.command.poll(), chief.stderr)
        os.kill(chief.command.pid, signal.SIGTERM)
        for name, job in jobs.items():
            self.assertNotEqual(self.exit_code(job), 0, f"{name}: {job.stderr}")

    def test_killed_coordinator_ends_the_job(self):
        jobs = self.start_all(cluster(), self.training(epochs=1_000_000))
        chief = jobs.pop(("chief", 0))
        self.assertTrue(chief.wait_for_text(TRAINING_OUTPUT), chief.stderr)
        os.kill(child_of(chief.command.pid), signal.SIGKILL)
        self.assertEqual(self.exit_code(chief), 128 + signal.SIGKILL)
        for name, job in jobs.items():
            self.assertEqual(self.exit_code(job), 4, f"{name}: {job.stderr}")

    def test_names_missing_tasks(self):
        tasks = cluster()
        # The coordinator sends the message to the other tasks when its own timeout expires.
        others = [("ps", 0), ("worker", 0)]
        jobs = {name: self.task(tasks, *name, self.training()) for name in others}
        jobs["chief", 0] = self.task(tasks, "chief", 0, self.training("--start-timeout", "11s"))
        missing = f"worker 1 at {tasks['worker'][1]}"
        # Unlike the error at the end, the message while the coordinator waits does not name the setting.
        waiting = rf"(?m)^(?!.*--start-timeout).*\b1 of 4\b.*{re.escape(missing)}\b"
        self.assertTrue(jobs["chief", 0].wait_for_text(waiting), "no message after ten seconds")
        self.assert_all_end(jobs, 4)
        for job in jobs.values():
            self.assert_names(job.stderr, "11000 ms", "--start-timeout", "1 of 4", missing)

    def test_names_a_missing_coordinator(self):
        tasks = cluster()
        job = self.task(tasks, "worker", 0, self.training("--start-timeout", "500ms"))
        self.assertEqual(self.exit_code(job), 4, job.stderr)
        self.assert_names(job.stderr, f"worker 0 at {tasks['worker'][0]}", "500 ms", "--start-timeout", tasks["chief"][0])

    def test_rejects_a_task_with_another_cluster(self):
        tasks = cluster()
        other = {**tasks, "ps": ["127.0.0.1:1"]}
        jobs = self.start_all(tasks, self.training(), leave_out=[("worker", 1)])
        rejected = self.task(other, "worker", 1, self.training())
        self.assertEqual(self.exit_code(rejected), 2, rejected.stderr)
        parameters = (f"worker 1 at {tasks['worker'][1]}", "4 tasks", "TF_CONFIG")
        self.assert_names(rejected.stderr, *parameters)
        # The other tasks wait for the correct one.
        jobs["worker", 1] = self.task(tasks, "worker", 1, self.training())
        self.assert_all_end(jobs, 0)
        lines = [line for line in jobs["chief", 0].stderr.splitlines() if names_parameters(line, *parameters)]
        self.assertEqual(len(lines), 1, jobs["chief", 0].stderr)

    def test_rejects_a_task_that_is_started_twice(self):
        tasks = cluster()
        jobs = self.start_all(tasks, self.training(), leave_out=[("worker", 1)])
        second = self.task(tasks, "worker", 0, self.training("--start-timeout", "20s"))
        jobs["worker", 1] = self.task(tasks, "worker", 1, self.training())
        codes = [self.exit_code(job) for job in (jobs["worker", 0], second)]
        # The process that connected last becomes the worker; the other one is rejected, or finds no listener.
        self.assertIn(0, codes, jobs["worker", 0].stderr + second.stderr)
        self.assertIn(sorted(codes)[1], (2, 4), jobs["worker", 0].stderr + second.stderr)
        self.assertEqual(self.exit_code(jobs["chief", 0]), 0, jobs["chief", 0].stderr)

    def wait_until_it_listens(self, job, address):
        host, _, port = address.partition(":")

        def connects():
            try:
                socket.create_connection((host, int(port))).close()
                return True
            except OSError:
                return False

        self.assertTrue(job.wait_for(connects), job.stderr)

    def test_rejects_a_task_with_another_token(self):
        tasks = cluster()
        token = {"CAPSTAN_JOB_TOKEN": "5a" * 32}
        jobs = self.start_all(tasks, self.training(), leave_out=[("worker", 1)], **token)
        self.wait_until_it_listens(jobs["chief", 0], tasks["chief"][0])
        rejected = self.task(tasks, "worker", 1, self.training("--start-timeout", "1s"), CAPSTAN_JOB_TOKEN="a5" * 32)
        self.assertEqual(self.exit_code(rejected), 4, rejected.stderr)
        self.assert_names(rejected.stderr, "token")
        jobs["worker", 1] = self.task(tasks, "worker", 1, self.training(), **token)
        self.assert_all_end(jobs, 0)

    def test_names_missing_entries_of_tf_config(self):
        tasks = cluster()
        for config, parameters in [
            ({"cluster": {**tasks, "ps": []}, "task": {"type": "chief", "index": 0}}, ["one ps"]),
            ({"cluster": tasks}, ['"task"', "TF_CONFIG"]),
            ({"cluster": {"ps": ["h:1"], "worker": ["h:2"]}, "task": {"type": "ps", "index": 0}}, ['"chief"']),
            ({"cluster": tasks, "task": {"type": "evaluator", "index": 0}}, ['"evaluator"']),
            ({"cluster": {**tasks, "chief": ["n1"]}, "task": {"type": "chief", "index": 0}}, ['"n1"', "HOST:PORT"]),
            ({"cluster": tasks, "task": {"type": "worker", "index": 7}}, ["`task_id`", "7", "worker", "1"]),
        ]:
            with self.subTest(parameters):
                job = self.start(self.training(), env={**os.environ, "TF_CONFIG": json.dumps(config)})
                self.assertEqual(self.exit_code(job), 2, job.stderr)
                self.assert_names(job.stderr, *parameters)
        bad_token = self.task(tasks, "chief", 0, self.training(), CAPSTAN_JOB_TOKEN="secret")
        self.assertEqual(self.exit_code(bad_token), 2, bad_token.stderr)
        self.assert_names(bad_token.stderr, "CAPSTAN_JOB_TOKEN", "64", "openssl rand -hex 32")

    def test_bootstrap_alone_ignores_tf_config(self):
        tasks = cluster()
        job = self.task(tasks, "worker", 0, self.training("--bootstrap", "alone"))
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        job = self.start(self.training("--bootstrap", "tf-config"))
        self.assertEqual(self.exit_code(job), 2, job.stderr)
        self.assert_names(job.stderr, "--bootstrap tf-config", "TF_CONFIG")

    def test_rejects_tasks_of_srun_without_mpi(self):
        step = {"SLURM_STEP_NUM_TASKS": "8", "SLURM_PROCID": "0", "SLURM_NTASKS": "8"}
        job = self.start(self.training(), env={**os.environ, **step})
        self.assertEqual(self.exit_code(job), 2, job.stderr)
        self.assert_names(job.stderr, "8 tasks", "--mpi=pmix", "--bootstrap alone")
        job = self.start(self.training("--bootstrap", "alone"), env={**os.environ, **step})
        self.assertEqual(self.exit_code(job), 0, job.stderr)


if __name__ == "__main__":
    main()
