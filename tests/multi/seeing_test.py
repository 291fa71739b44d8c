#!/usr/bin/env python3
"""The output of a job with --run-dir, during the job and afterwards: logs, metrics, a table of ranks."""
# Tests: launch/running_job.cpp
# Tests: launch/top.cpp
# Tests: launch/trace.cpp
# Tests: src/cluster/bootstrap/run_files.cpp
# Tests: src/telemetry/metrics_writer.cpp
# Tests: src/telemetry/trace.cpp
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import CAPSTAN, HOST, TRAINING_OUTPUT, JobTest, Roles, main, train

RANKS, PS = 5, 2
ROLES = Roles(RANKS, PS)
REQUEUE = 85  # docs/errors.md
LINE = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}\] \[rank (\d+)\] \[(\w+) \d+@" + HOST + r"\] \[(\w+)\] .+")


class Seeing(JobTest):
    def setUp(self):
        super().setUp()
        self.run_dir = self.directory / "run"

    def log_of(self, rank):
        return (self.run_dir / "log" / f"rank-{rank:05}.log").read_text()

    def records(self):
        return [json.loads(line) for line in (self.run_dir / "metrics.jsonl").read_text().splitlines()]

    def test_writes_metrics_of_a_training(self):
        command = train(self.graph(), "--ps", PS, "--run-dir", self.run_dir, "--metrics-every", "50ms", "--prometheus-file", "now.prom")
        job = self.run_to_end([*command, "--epochs", 1500, "--checkpoint-dir", self.directory / "checkpoints",
                               "--checkpoint-every", 500], RANKS)
        last = self.records()[-1]
        self.assertEqual(last["functions"]["ended"], last["functions"]["scheduled"])
        self.assertEqual(last["workers"], len(ROLES.workers))
        self.assertGreater(last["scalars"]["test/mrr"], 0.5)
        self.assertEqual(last["scalars"]["epoch"], 1500)
        self.assertEqual([ps["rank"] for ps in last["ps"]], ROLES.ps)
        # The coordinator assigns the names of the graph, which no worker pushes.
        newest = max((self.directory / "checkpoints").glob("checkpoint-*"))
        variables = json.loads((newest / "manifest.json").read_text())["variables"]
        assigned = sum(variables[name]["shape"][0] for name in ("entity_names", "relation_names"))
        # A row that occurs twice in a push is pushed once.
        pushed = sum(ps["rows_pushed"] for ps in last["ps"]) - assigned
        self.assertGreater(pushed, 0)
        self.assertLessEqual(pushed, last["push"]["rows"])
        self.assertGreater(last["checkpoints"]["saved"], 0)
        self.assertEqual(last["lost"], {"workers": 0, "ps": 0})
        self.assertIn("  functions       ", job.stderr)
        self.assertIn("\ncapstan_workers 2\n", (self.run_dir / "now.prom").read_text())
        self.assertIn("hottest shard   ", (self.run_dir / "summary.txt").read_text())

    def start_endless(self, *options):
        """Starts a job that runs until `end`."""
        command = train(self.graph(), "--ps", PS, "--run-dir", self.run_dir, "--eval-every", 50, "--checkpoint-dir",
                        self.directory / "checkpoints", "--checkpoint-every", 1_000_000, *options, epochs=1_000_000)
        job = self.start(command, RANKS)
        self.assertTrue(job.wait_for_text(TRAINING_OUTPUT), job.stderr)
        return job

    def end(self, job):
        job.signal_launcher(signal.SIGUSR1)
        self.assertEqual(self.exit_code(job), REQUEUE, job.stderr)

    def test_metrics_are_written_during_the_job_and_never_decrease(self):
        job = self.start_endless("--metrics-every", "50ms")
        file = self.run_dir / "metrics.jsonl"
        self.assertTrue(job.wait_for(lambda: file.exists() and file.read_text().count("\n") >= 4), job.stderr)
        self.end(job)
        records = self.records()
        self.assertGreaterEqual(len(records), 4)
        for before, now in zip(records, records[1:]):
            for call in "pull", "push", "flush":
                self.assertGreaterEqual(now[call]["calls"], before[call]["calls"])

    def test_tensorboard_reads_the_event_files(self):
        sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "build" / "tensorboard"))
        try:
            from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader
        except ImportError as error:
            self.skipTest(f"TensorBoard is not installed ({error}); launch/setup --tests installs it from PyPI")
        command = train(self.graph(), "--ps", PS, "--run-dir", self.run_dir, "--metrics-every", "200ms", "--eval-every", 500)
        self.run_to_end([*command, "--epochs", 1500], RANKS)
        (path,) = (self.run_dir / "events").iterdir()
        events = list(LegacyEventFileLoader(str(path)).Load())
        self.assertEqual(events[0].file_version, "brain.Event:2")
        found = {}
        for event in events[1:]:
            (value,) = event.summary.value
            found.setdefault(value.tag, []).append((event.wall_time, event.step, value.simple_value))
        last = self.records()[-1]
        self.assertAlmostEqual(found["loss"][-1][2], last["scalars"]["loss"], places=5)
        self.assertAlmostEqual(found["test/mrr"][-1][2], last["scalars"]["test/mrr"], places=5)
        self.assertEqual(len(found["valid/mrr"]), 3)
        steps = [step for _, step, _ in found["loss"]]
        self.assertEqual(steps, sorted(steps))
        self.assertEqual([value for *_, value in found["capstan/workers"]][-1], 2)
        self.assertEqual(found["capstan/functions/per_second"][-1][1], last["functions"]["ended"])
        self.assertLess(abs(found["loss"][-1][0] - last["time"]), 60)

    def capstan(self, *words):
        return subprocess.run([CAPSTAN, *map(str, words)], capture_output=True, text=True, timeout=60)

    def test_top_shows_every_rank_of_a_running_job(self):
        job = self.start_endless()
        rows = [rf"\n +{rank} {role} {index} +{HOST[:9]} .*[1-9]"
                for role, ranks in (("worker", ROLES.workers), ("ps", ROLES.ps)) for index, rank in enumerate(ranks)]
        while True:  # until each rank has worked
            self.assertIsNone(job.command.poll(), job.stderr)
            top = self.capstan("top", self.run_dir, "--once")
            self.assertEqual(top.returncode, 0, top.stderr)
            self.assertRegex(top.stdout, r"^up \S+ s.*\n2 workers, 2 ps; lost: 0 workers, 0 ps\nfunctions  [\d.]+(?: [kM])?/s, ")
            self.assertLess(max(map(len, top.stdout.splitlines())), 80)
            if all(re.search(row, top.stdout) for row in rows):
                break
        self.end(job)
        ended = self.capstan("top", self.run_dir)
        self.assertEqual(ended.returncode, 2)
        self.assertIn("no job runs in", ended.stderr)

    def test_trace_is_one_timeline_of_all_ranks(self):
        command = train(self.graph(), "--ps", PS, "--run-dir", self.run_dir, "--trace", "--checkpoint-dir", self.directory / "c")
        job = self.run_to_end([*command, "--epochs", 200, "--checkpoint-every", 100], RANKS)
        self.assertRegex(job.stderr, r"trace\.json: \d+ events of 5 ranks")
        events = json.loads((self.run_dir / "trace.json").read_text())["traceEvents"]
        names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
        self.assertEqual(sorted(names), list(range(RANKS)))
        self.assertEqual(names[ROLES.ps[1]], f"ps 1 (rank {ROLES.ps[1]} on {HOST})")
        functions = [event for event in events if event.get("cat") == "function"]
        self.assertEqual(len(functions), self.records()[-1]["functions"]["ended"])
        self.assertEqual({event["pid"] for event in functions}, set(ROLES.workers))
        self.assertIn("train_slice", {event["name"].rpartition("::")[2].lstrip("&") for event in functions})
        calls = [event for event in events if event.get("cat") == "call"]
        self.assertLessEqual({"lookup", "compute", "push", "flush"}, {event["name"] for event in calls})
        for call in calls[:1000]:  # within the function
            self.assertTrue(any(function["pid"] == call["pid"] and function["ts"] <= call["ts"]
                                and call["ts"] + call["dur"] <= function["ts"] + function["dur"] + 1 for function in functions), call)
        saves = [event for event in events if event["name"] == "checkpoint"]
        self.assertEqual([event["args"]["step"] for event in saves], [100, 200])
        parts = [event for event in events if event["name"] == "write part"]
        self.assertEqual({event["pid"] for event in parts}, set(ROLES.ps))
        dispatched = sum(event["args"]["functions"] for event in events if event["name"] == "dispatch")
        self.assertGreaterEqual(dispatched, len(functions), "functions that were returned are dispatched again")
        # All ranks share one clock: no function runs before it is dispatched, or after the last event of the job.
        times = [event["ts"] for event in events if event["ph"] != "M"]
        self.assertEqual(min(times), 0)
        first = min(event["ts"] for event in events if event["name"] == "dispatch")
        self.assertGreaterEqual(min(event["ts"] for event in functions), first)
        size = len((self.run_dir / "trace.json").read_text())
        again = self.capstan("trace", self.run_dir)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(len((self.run_dir / "trace.json").read_text()), size)

    def test_trace_needs_a_run_directory(self):
        job = self.start(train(self.graph(), "--ps", PS, "--trace"), RANKS)
        self.assertEqual(self.exit_code(job), 2, job.stderr)
        self.assertIn("--trace: traces go into the run directory; give --run-dir DIR", job.stderr)
        self.assertIn("no traces in", self.capstan("trace", self.directory).stderr)

    def test_every_rank_has_a_log(self):
        command = train(self.graph(), "--ps", PS, "--run-dir", self.run_dir, "--epochs", 5)
        job = self.run_to_end(command, RANKS)
        self.assertEqual(len(list((self.run_dir / "log").iterdir())), RANKS)
        roles = {0: "coordinator", **{rank: "worker" for rank in ROLES.workers}, **{rank: "ps" for rank in ROLES.ps}}
        for rank, role in roles.items():
            lines = self.log_of(rank).splitlines()
            self.assertIn("started", lines[0])
            for line in lines:
                self.assertEqual(LINE.fullmatch(line).groups()[:2], (str(rank), role))
        # A worker's paths to the ps are in its own log only.
        self.assertRegex(self.log_of(ROLES.workers[0]), r"\[info\] ps on this host: ")
        self.assertNotRegex(job.stderr, r"\[worker \d+@.*\[info\]")

    def test_restarted_worker_appends_to_its_log(self):
        job = self.start_endless()
        victim = ROLES.workers[0]
        os.kill(job.ranks()[victim][1], signal.SIGKILL)
        self.assertTrue(job.wait_for_text("replaces the previous process"), job.stderr)
        self.end(job)
        self.assertEqual(len(re.findall(r"process \d+ started", self.log_of(victim))), 2)
        self.assertEqual(len(list((self.run_dir / "log").iterdir())), RANKS)
        last = self.records()[-1]
        self.assertEqual((last["lost"]["workers"], last["restarts"]["workers"]), (1, 1))
        self.assertRegex(self.log_of(0), r"\[warning\] worker 0 \(rank \d+ on .*\) is dead")

    def test_job_survives_a_log_that_cannot_be_written(self):
        self.run_dir.mkdir()
        (self.run_dir / "log").write_text("a file where the directory should be")
        job = self.run_to_end(train(self.graph(), "--ps", PS, "--run-dir", self.run_dir, "--epochs", 3), RANKS)
        self.assertEqual(len(re.findall(r"rank-\d{5}\.log: open: Not a directory", job.stderr)), RANKS, job.stderr)


if __name__ == "__main__":
    main()
