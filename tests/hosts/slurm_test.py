#!/usr/bin/env python3
"""The batch scripts of launch/slurm on two nodes: jobs train, requeue themselves, are canceled, and lose a node."""
import contextlib
import json
import os
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import two_node_slurm
from longer_jobs import retry_with_longer_job
from job import BIN, LEARNED_MRR, TRAINING_OUTPUT, JobTest, main, train
from poll import poll_until
from small_models import write_libsvm
from two_node_slurm import NODES

SCRATCH = pathlib.Path(sys.argv[3])
del sys.argv[3]
SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "launch" / "slurm"
PATH = f"{BIN.resolve()}:{os.environ['PATH']}"
FOREVER = 1_000_000
ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL"}
# Time limit of a job that trains for a second; Slurm scans its queue every two seconds.
SECONDS_TO_FINISH = 120
# scancel sends SIGTERM, and SIGKILL after KillWait (5 s). Agents check every 0.5 s whether their launcher is alive.
SECONDS_TO_END = 20
SECONDS_TO_SIGNAL = 75  # every 30 s, Slurm looks for jobs whose signal is due


class Slurm(JobTest):
    reason = two_node_slurm.reason_to_skip()

    @classmethod
    def setUpClass(cls):
        if not cls.reason:
            two_node_slurm.clean()
            cls.slurm = cls.enterClassContext(two_node_slurm.TwoNodeSlurm(BIN, SCRATCH))

    def setUp(self):
        if self.reason:
            self.skipTest(self.reason)
        super().setUp()
        self.jobs = []
        self.addCleanup(self.cancel_all)

    def cancel_all(self):
        for job in self.jobs:
            self.slurm.run("scancel", job, check=False)
        self.assert_nothing_runs()

    def submit(self, script, *words, **environment):
        """Submits a job; returns its id. sbatch receives the words before "--run", the script those after it."""
        split = words.index("--run")
        done = self.slurm.run("sbatch", "--parsable", "-D", self.directory, "-o", self.directory / "job-%j.out", *words[:split],
                              SCRIPTS / script, *words[split + 1:], PATH=PATH, **environment)
        self.jobs.append(done.stdout.strip())
        return self.jobs[-1]

    def shown(self, job):
        """Returns {name: value} from `scontrol show job`."""
        line = self.slurm.run("scontrol", "show", "job", "-o", job).stdout.splitlines()[0]
        return dict(re.findall(r"(\w+)=(\S*)", line))

    def output(self, job):
        path = self.directory / f"job-{job}.out"
        return path.read_text(errors="replace") if path.exists() else ""

    def wait_for(self, look, seconds, job):
        found = poll_until(look, seconds, period=0.2)
        self.assertTrue(found, f"{self.shown(job)}\n{self.output(job)}")
        return found

    def wait_for_text(self, job, pattern, seconds=SECONDS_TO_FINISH):
        def printed():
            ended = self.shown(job)["JobState"] in ENDED
            found = re.search(pattern, self.output(job))
            self.assertFalse(ended and not found, self.output(job))
            return found

        return self.wait_for(printed, seconds, job)

    def end_of(self, job, seconds=SECONDS_TO_FINISH):
        """Waits until the job has ended; returns its final {name: value}."""
        self.wait_for(lambda: self.shown(job)["JobState"] in ENDED, seconds, job)
        return self.shown(job)

    def assert_completed(self, job, seconds=SECONDS_TO_FINISH):
        end = self.end_of(job, seconds)
        self.assertEqual((end["JobState"], end["ExitCode"]), ("COMPLETED", "0:0"), self.output(job))

    def left(self):
        """Returns the processes and shared memory that are left on the nodes."""
        found = []
        for node in set(NODES) & set(self.slurm.daemons):
            found += [(node, pid, pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()) for pid in self.slurm.processes_of(node)
                      if pathlib.Path(f"/proc/{pid}").exists()]
            found += [(node, name) for name in self.slurm.on_node(node, "ls", "/dev/shm").split()]
            found += [(node, line) for line in self.slurm.on_node(node, "ipcs", "-m").splitlines() if line.startswith("0x")]
        return found

    def ranks_of(self, program):
        """Returns the command lines of the processes on the nodes that run `program`, except launchers."""
        words = []
        for pid in [pid for node in NODES for pid in self.slurm.processes_of(node)]:
            with contextlib.suppress(OSError):  # the process has ended
                words.append(pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        return [line for line in words if line.partition(" ")[0].endswith("/capstan") and program in line.replace(f"{BIN}/", "")]

    def assert_nothing_runs(self):
        gone = poll_until(lambda: not self.left(), SECONDS_TO_END, period=0.2)
        self.assertTrue(gone, f"left behind: {self.left()}")

    def graph_training(self, *options, epochs=60):
        return train(self.graph(), "--summary", self.directory / "summary.json", *options, epochs=epochs)

    def assert_learned(self, ps, workers):
        summary = self.summary()
        self.assertEqual((summary["cluster"]["ps"], summary["cluster"]["workers"]), (ps, workers))
        self.assertGreater(summary["test"]["mrr"], LEARNED_MRR)


class TrainingJobs(Slurm):
    def test_srun_reaches_the_result_of_one_host(self):
        write_libsvm(self.directory / "train.txt", 300)
        program = [BIN / "capstan", "train", "lr", "--data", self.directory / "train.txt", "--mode", "synchronous",
                   "--epochs", 20, "--summary", self.directory / "summary.json"]
        self.run_to_end([BIN / "capstan", "run", "--ps", 2, "--workers", 3, "--", *program])
        alone = self.summary()["train"]["objective"]
        (self.directory / "summary.json").unlink()
        job = self.submit("cpu.sbatch", "--nodes=2", "--ntasks-per-node=3", "--run", "--launcher", "srun", "--ps", 2, "--", *program)
        self.assert_completed(job)
        self.assertIn(" srun --mpi=pmix ", self.output(job))
        self.assertAlmostEqual(self.summary()["train"]["objective"], alone, delta=1e-9)

    def test_mpirun_trains_on_both_nodes(self):
        job = self.submit("cpu.sbatch", "--nodes=2", "--ntasks-per-node=3", "--run", "--ps", 2, "--", *self.graph_training())
        self.assert_completed(job)
        self.assertRegex(self.output(job), r"capstan run: CAPSTAN_PS=2 mpirun .*-n 6 ")
        self.assertIn("@n1] [info] ps on another host", self.output(job))
        self.assert_learned(2, 3)

    def test_srun_starts_python_programs(self):
        python = os.environ.get("CAPSTAN_TESTS_PYTHON")
        if not python:
            self.skipTest("the Python package is not built")
        program = pathlib.Path(__file__).resolve().parents[1] / "python/programs/sums.py"
        job = self.submit("cpu.sbatch", "--nodes=2", "--ntasks-per-node=3", "--run", "--launcher", "srun", "--ps", 2, "--", python,
                          program, 3, PYTHONPATH=os.environ["CAPSTAN_TESTS_PACKAGE"])
        self.assert_completed(job)
        self.assertIn("sums are right", self.output(job))

    def test_heterogeneous_job_places_ps_in_the_second_component(self):
        """Both ps are in the second component, which cannot share a node with the first."""
        job = self.submit("het.sbatch", "--nodes=1", "--ntasks=3", "--ntasks-per-node=3", ":", "--nodes=1", "--ntasks=2", "--mem=100",
                          "--run", "--ps", 2, "--", *self.graph_training())
        self.wait_for_text(job, "summary: ")
        # The job may outlive its ranks: srun of Slurm 22.05 hangs in one of fifteen heterogeneous steps, when its components
        # stop the abort agent of mpi/pmix at the same time (pmixp_abort_agent_stop).
        self.wait_for(lambda: not self.ranks_of("capstan train"), SECONDS_TO_END, job)
        output = self.output(job)
        self.assertIn(" --het-group=0-1 ", output)
        self.assertIn("[coordinator 0@n1] [warning] no RDMA to ps 0 (rank 3 on n2)", output)
        self.assertNotIn("ps on this host", output)
        self.assert_learned(2, 2)

    def test_array_task_uses_its_line_of_the_sweep(self):
        (self.directory / "sweep.txt").write_text("--epochs 3\n--epochs 5 --dim 16\n")
        self.submit("array.sbatch", "--array=1-2", "--ntasks-per-node=3", "--run", "sweep.txt", "--ps", 1, "--",
                    *train(self.graph()))
        results = [self.directory / "sweep" / f"{task}.json" for task in (1, 2)]
        self.wait_for(lambda: all(path.exists() and path.stat().st_size for path in results), SECONDS_TO_FINISH, self.jobs[0])
        used = [json.loads(path.read_text())["used"] for path in results]
        self.assertEqual([(one["epochs"], one["dim"]) for one in used], [(3, 32), (5, 16)])

    def test_rejects_too_few_tasks(self):
        job = self.submit("cpu.sbatch", "--nodes=1", "--ntasks-per-node=2", "--run", "--", *self.graph_training())
        self.assertEqual(self.end_of(job)["ExitCode"], "2:0", self.output(job))
        self.assertIn(f"Slurm job {job} has 2 slots, expected at least 3", self.output(job))


class Doctor(Slurm):
    def srun(self, *words):
        """Runs a step of two tasks on each node; returns its JSON, {check: its lines}, and its exit code."""
        done = self.slurm.run("srun", "--nodes=2", "--ntasks-per-node=2", "-D", self.directory, *words, check=False, PATH=PATH)
        self.assertTrue(done.stdout.startswith("{"), done.stdout + done.stderr)
        found = json.loads(done.stdout)
        lines = {}
        for line in found["checks"]:
            lines.setdefault(line["check"], []).append(line)
        return found, lines, done.returncode

    def test_doctor_treats_a_step_as_one_job(self):
        checks = "ranks,binary,dev-shm,ports,checkpoint-dir,shared-dir,time-left,transports"
        found, lines, code = self.srun("--mpi=pmix", "--time=5", "capstan", "doctor", "--json", "--only", checks,
                                       "--checkpoint-dir", self.directory)
        self.assertEqual(code, 0, found)
        self.assertEqual(found["hosts"], list(NODES))
        for check in ("ranks", "binary", "dev-shm", "checkpoint-dir", "shared-dir"):
            self.assertEqual([line["verdict"] for line in lines[check]], ["PASS"], lines[check])
        same, other = lines["transports"]
        self.assertRegex(same["observed"], r"^same host: mapped memory")
        self.assertRegex(other["observed"], r"^other host: active messages over tcp")
        self.assertRegex(lines["time-left"][0]["observed"], r"job \d+ has 0 h 0[45] min left", lines["time-left"])

    def test_doctor_reports_tasks_without_mpi(self):
        done = self.slurm.run("srun", "--mpi=none", "--nodes=2", "--ntasks-per-node=2", "capstan", "doctor", "--only", "ranks",
                              check=False, PATH=PATH)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn("--mpi=pmix", done.stdout + done.stderr)


class EndsOfJobs(Slurm):
    def saved(self):
        manifests = sorted((self.directory / "checkpoints").glob("checkpoint-*[0-9]/manifest.json"))
        return json.loads(manifests[-1].read_text())["user_state"] if manifests else None

    def set_time_limit(self, job, minutes):
        """Returns whether Slurm has accepted the limit; it does not while a job is completing."""
        return self.slurm.run("scontrol", "update", f"JobId={job}", f"TimeLimit={minutes}", check=False).returncode == 0

    def test_requeued_job_continues_to_its_end(self):
        """Run 1 ends on Slurm's signal, run 2 because little time is left, run 3 after its last epoch."""
        program = self.graph_training("--eval-every", 10, "--slice-batches", 1, "--checkpoint-dir", self.directory / "checkpoints",
                                      "--checkpoint-every", FOREVER, "--resume")

        def let_start(number, words):
            """Sets the last options of start `number`, whose ranks wait for them."""
            (self.directory / "words").write_text(words)
            (self.directory / "words").rename(self.directory / f"words-{number}")

        words = f"{self.directory}/words-${{SLURM_RESTART_COUNT:-0}}"
        command = f"until [ -e {words} ]; do sleep 0.1; done; exec {' '.join(str(word) for word in program)} $(cat {words})"
        let_start(0, f"--epochs {FOREVER} --save-before-limit 0s")
        job = self.submit("requeue.sbatch", "--nodes=2", "--ntasks-per-node=2", "--time=20", "--signal=B:USR1@600",
                          "--run", "--ps", 1, "--", "sh", "-c", command)
        # The signal ends a rank that has not installed its handler yet, so it must not be due before the training begins,
        # nor in the other runs.
        self.wait_for_text(job, TRAINING_OUTPUT)
        self.slurm.run("scontrol", "update", f"JobId={job}", "TimeLimit=10")
        first = self.wait_for(self.saved, SECONDS_TO_SIGNAL, job)
        self.wait_for(lambda: self.set_time_limit(job, 20), SECONDS_TO_FINISH, job)
        let_start(1, f"--epochs {FOREVER} --save-before-limit 30min")
        self.wait_for(lambda: self.saved() != first, SECONDS_TO_FINISH, job)
        second = self.saved()
        let_start(2, f"--epochs {second['epoch'] + 60} --save-before-limit 0s")
        self.assert_completed(job, SECONDS_TO_FINISH)
        output = self.output(job)
        self.assertEqual(output.count("with exit code 85: "), 2, output)
        self.assertEqual(output.count(f"requeueing job {job} after "), 2, output)
        self.assertIn("a signal requested it: saved", output)
        self.assertRegex(output, r"\d+ s of the job's time are left: saved")
        self.assertEqual(self.shown(job)["Restarts"], "2")
        self.assertEqual(self.summary()["training"]["first_epoch"], second["epoch"] + 1)
        self.assertGreater(self.summary()["test"]["mrr"], LEARNED_MRR)

    def test_canceled_job_leaves_nothing_behind(self):
        for launcher in ("mpirun", "srun"):
            with self.subTest(launcher=launcher):
                job = self.submit("cpu.sbatch", "--nodes=2", "--ntasks-per-node=3", "--run", "--launcher", launcher, "--ps", 2, "--",
                                  *self.graph_training("--eval-every", 10, epochs=FOREVER))
                self.wait_for_text(job, TRAINING_OUTPUT)
                self.assertGreater(len(self.slurm.processes_of("n2")), 3)
                self.assertGreaterEqual(len(self.ranks_of("capstan train")), 6)
                self.slurm.run("scancel", job)
                self.assertEqual(self.end_of(job, SECONDS_TO_END)["JobState"], "CANCELLED")
                self.assert_nothing_runs()

    def test_job_continues_when_a_node_of_workers_is_lost(self):
        retry_with_longer_job(3000, self.loses_a_node)

    def loses_a_node(self, epochs):
        job = self.submit("cpu.sbatch", "--nodes=2", "--ntasks-per-node=3", "--no-kill", "--run", "--launcher", "srun", "--ps", 1,
                          "--", *self.graph_training("--eval-every", 10, "--slice-batches", 1, epochs=epochs))
        self.wait_for_text(job, TRAINING_OUTPUT)
        self.slurm.lose("n2")
        try:
            self.assert_completed(job)
            lost = self.summary()["training"]["workers_lost"]
            self.assertIn(lost, (0, 3), self.output(job))
            self.assertGreater(self.summary()["test"]["mrr"], LEARNED_MRR)
            return lost == 3
        finally:
            self.slurm.start_node("n2")
            self.slurm.wait_for_nodes(["n2"], "idle", SECONDS_TO_FINISH)


if __name__ == "__main__":
    # All nodes see this directory.
    SCRATCH.mkdir(parents=True, exist_ok=True)
    tempfile.tempdir = str(SCRATCH)
    main()
