#!/usr/bin/env python3
"""`capstan run` on one host: the command that it prints, roles, signals, timeout, exit codes and orphaned processes."""
# Tests: launch/run/request.hpp
# Tests: launch/run/options.cpp
# Tests: launch/run/run.cpp
# Tests: launch/run/supervise.cpp
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import CAPSTAN, MPIEXEC, TRAINING_OUTPUT, JobTest, main, train

USAGE, TIMED_OUT, REQUEUE, NOT_EXECUTABLE, NO_PROGRAM, INTERRUPTED = 2, 124, 85, 126, 127, 130  # docs/errors.md
# A rank that prints its roles and waits for SIGUSR1, on which it exits with 85.
WAITS = 'trap "exit 85" USR1; echo "ready $CAPSTAN_PS $CAPSTAN_WORKERS" >&2; while :; do sleep 0.05; done'


class RunTest(JobTest):
    def run_job(self, *words, program, **options):
        return self.start([CAPSTAN, "run", "--mpirun", MPIEXEC, *words, "--", *program], **options)

    def wait_for_ready(self, job, ranks):
        self.assertTrue(job.wait_for_text(rf"(?ms)(^ready.*){{{ranks}}}"), job.stderr)

    def end_line(self, job):
        return job.stderr.splitlines()[-1]


class Start(RunTest):
    def test_dry_run_prints_and_starts_nothing(self):
        job = self.run_job("--dry-run", "--ps", 2, "--workers", 3, program=["touch", self.directory / "started"])
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        self.assertRegex(job.stdout, rf"^CAPSTAN_PS=2 CAPSTAN_WORKERS=3 {MPIEXEC} .*-n 6 .*touch \S+/started\n$")
        self.assertFalse((self.directory / "started").exists())

    def test_trains(self):
        program = train(self.graph(), "--summary", self.directory / "summary.json", epochs=60)
        job = self.run_job("--ps", 1, "--workers", 2, program=program)
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        cluster = self.summary()["cluster"]
        self.assertEqual((cluster["ps"], cluster["workers"]), (1, 2))
        self.assertRegex(job.stderr, r"^capstan run: CAPSTAN_PS=1 CAPSTAN_WORKERS=2 ")
        self.assertRegex(self.end_line(job), r"^capstan run: the job ended after \d+\.\d s with exit code 0: success$")

    def test_dry_run_prints_the_command_that_runs(self):
        program = ["sh", "-c", "echo \"it's $CAPSTAN_PS\""]
        printed = self.run_job("--dry-run", "--ps", 1, "--workers", 1, program=program)
        self.assertEqual(self.exit_code(printed), 0, printed.stderr)
        by_hand = subprocess.run(["sh", "-c", printed.stdout], capture_output=True, text=True, timeout=50)
        job = self.run_job("--ps", 1, "--workers", 1, program=program)
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        self.assertEqual(job.stdout, by_hand.stdout)
        self.assertEqual(job.stdout, "it's 1\n" * 3)

    def test_local_is_one_process(self):
        job = self.run_job("--launcher", "local", program=["sh", "-c", 'echo "$PPID"; exit 3'])
        self.assertEqual(self.exit_code(job), 3, job.stderr)
        self.assertEqual(job.stdout, f"{job.command.pid}\n")
        self.assertIn("with exit code 3: ", self.end_line(job))


class Ends(RunTest):
    def test_returns_the_exit_code_of_the_job(self):
        job = self.run_job("--workers", 1, program=["sh", "-c", '[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" != 0 ] || exit 5'])
        self.assertEqual(self.exit_code(job), 5, job.stderr)
        self.assertIn("with exit code 5: ", self.end_line(job))

    def test_forwards_a_signal(self):
        for words, ranks in ((("--launcher", "local"), 1), (("--workers", 1), 3)):
            with self.subTest(words=words):
                job = self.run_job(*words, program=["sh", "-c", WAITS])
                self.wait_for_ready(job, ranks)
                os.kill(job.command.pid, signal.SIGUSR1)
                self.assertEqual(self.exit_code(job), REQUEUE, job.stderr)
                self.assertIn("with exit code 85: ", self.end_line(job))

    def test_termination_signals(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(signal=number):
                job = self.run_job("--workers", 1, program=["sh", "-c", WAITS])
                self.wait_for_ready(job, 3)
                os.kill(job.command.pid, number)
                self.assertNotEqual(self.exit_code(job), 0, job.stderr)

    def test_never_exits_with_0_after_a_termination_signal(self):
        # Simulates a launcher that exits with 0 if it is interrupted before its ranks have started.
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(signal=number):
                job = self.run_job("--launcher", "local", program=["sh", "-c", 'trap "exit 0" INT TERM HUP; ' + WAITS.partition(";")[2]])
                self.wait_for_ready(job, 1)
                os.kill(job.command.pid, number)
                self.assertEqual(self.exit_code(job), 128 + number, job.stderr)
                self.assertIn(f"signal {int(number)}", self.end_line(job))

    def test_control_c_is_delivered_once(self):
        job = self.run_job("--launcher", "local", program=["sh", "-c", 'trap "echo caught; exit 9" INT; ' + WAITS.partition(";")[2]])
        self.wait_for_ready(job, 1)
        job.press_control_c()
        self.assertEqual(self.exit_code(job), INTERRUPTED, job.stderr)
        self.assertEqual(job.stdout, "caught\n")

    def interrupt_after_save(self, *words, env=None, times=1):
        """Exit code of a job whose program saves at SIGUSR1, and ends with 9 at SIGINT."""
        script = WAITS.replace("exit 85", "echo saved; exit 85" if times == 1 else "echo saved")
        program = ["sh", "-c", 'trap "exit 9" INT; ' + script, "sh", *words]
        job = self.start([CAPSTAN, "run", "--launcher", "local", "--", *program], env=env)
        self.wait_for_ready(job, 1)
        job.press_control_c()
        if times == 2:
            self.assertTrue(job.wait_for(lambda: job.stdout == "saved\n"), job.stderr)
            job.press_control_c()
        self.said = job.stdout
        code = self.exit_code(job)
        self.said = job.stdout
        return code

    def test_control_c_saves_a_checkpoint(self):
        directory = ["--checkpoint-dir", "run/checkpoints"]
        self.assertEqual((self.interrupt_after_save(*directory), self.said), (INTERRUPTED, "saved\n"))
        named = {"CAPSTAN_CHECKPOINT_DIR": "run/checkpoints"}
        self.assertEqual((self.interrupt_after_save(env=named), self.said), (INTERRUPTED, "saved\n"))
        batch = {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "1"}
        self.assertEqual((self.interrupt_after_save(*directory, env=batch), self.said), (REQUEUE, "saved\n"))
        self.assertEqual((self.interrupt_after_save(), self.said), (INTERRUPTED, ""))
        self.assertEqual((self.interrupt_after_save(*directory, "--save-signal=off"), self.said), (INTERRUPTED, ""))

    def test_second_control_c_stops_without_a_checkpoint(self):
        self.assertEqual(self.interrupt_after_save("--checkpoint-dir=run/checkpoints", times=2), INTERRUPTED)

    def test_control_c_saves_the_training(self):
        checkpoints = self.directory / "checkpoints"
        program = train(self.graph(), "--eval-every", 10, "--checkpoint-dir", checkpoints, "--checkpoint-every", 1_000_000, epochs=1_000_000)
        job = self.run_job("--ps", 1, "--workers", 1, program=program)
        self.assertTrue(job.wait_for_text(TRAINING_OUTPUT), job.stderr)
        job.press_control_c()
        self.assertEqual(self.exit_code(job), INTERRUPTED, job.stderr)
        self.assertEqual(len(list(checkpoints.glob("checkpoint-*"))), 1, job.stderr)

    def test_timeout(self):
        begin = time.monotonic()
        job = self.run_job("--timeout", "1s", "--workers", 1, program=["sh", "-c", WAITS])
        self.assertEqual(self.exit_code(job), TIMED_OUT, job.stderr)
        self.assertGreater(time.monotonic() - begin, 1)
        self.assertIn("--timeout of 1 s", job.stderr)
        self.assertIn("with exit code 124: ", self.end_line(job))

    def test_timeout_of_a_job_that_ignores_sigterm(self):
        begin = time.monotonic()
        # The program inherits the ignored signals; `capstan run` still receives its own through sigtimedwait.
        job = self.start(["sh", "-c", 'trap "" TERM INT HUP; exec "$0" "$@"', CAPSTAN, "run", "--timeout", "500ms", "--launcher",
                          "local", "--", "sh", "-c", "while :; do sleep 0.05; done"])
        self.assertEqual(self.exit_code(job), TIMED_OUT, job.stderr)
        self.assertGreater(time.monotonic() - begin, 10)
        self.assertIn("sending SIGKILL", job.stderr)

    def test_kills_orphans(self):
        job = self.run_job("--launcher", "local", program=["sh", "-c", "setsid sleep 600 & exit 0"])
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        self.assertIn("killed 1 process that the launcher left", job.stderr)

    def test_job_ends_if_capstan_run_is_killed(self):
        job = self.run_job("--ps", 1, "--workers", 1, program=train(self.graph(), "--eval-every", 10, epochs=1_000_000))
        self.assertTrue(job.wait_for_text(TRAINING_OUTPUT), job.stderr)
        job.signal_launcher(signal.SIGKILL)
        self.assertEqual(self.exit_code(job), 128 + signal.SIGKILL, job.stderr)


class BadInput(RunTest):
    def refused(self, *texts, words, code=USAGE, env=None):
        job = self.start([CAPSTAN, "run", *words], env=env)
        self.assertEqual(self.exit_code(job), code, job.stderr)
        self.assertEqual(job.stdout, "")
        for text in texts:
            self.assertIn(text, job.stderr)
        self.assertEqual(job.stderr.count("capstan: "), 1, job.stderr)

    def test_the_command_line(self):
        self.refused("run: no program, expected one after --", words=[])
        self.refused("run: no program", words=["--workers", 2, "--"])
        self.refused('capstan run -- prog', words=["--workers", 2, "prog"])
        self.refused("--worker: there is no such option; did you mean --workers?", words=["--worker", 2, "--", "prog"])
        self.refused("--workers", "not \"none\"", words=["--workers", "none", "--", "prog"])
        self.refused("--launcher ssh: expected mpirun, srun or local", words=["--launcher", "ssh", "--", "prog"])
        self.refused('--timeout: expected', 'found "10"', words=["--timeout", 10, "--", "prog"])
        for variable, value in (("CAPSTAN_ROLES", "ps:1,worker:*"), ("CAPSTAN_ROLE_FILE", "roles.txt")):
            self.refused(f"{variable} is set", words=["--ps", 1, "--", "prog"], env={variable: value})

    def test_missing_files(self):
        self.refused("--hosts /nowhere/hosts: No such file", words=["--hosts", "/nowhere/hosts", "--", "prog"])
        self.refused("/nowhere/mpirun not found", "--launcher local", words=["--mpirun", "/nowhere/mpirun", "--", "prog"])
        self.refused("true --version: ", "expected Open MPI or MPICH", words=["--mpirun", "true", "--", "prog"])
        self.refused("--launcher srun: not in a Slurm job", words=["--launcher", "srun", "--", "prog"])

    def test_programs_that_cannot_be_started(self):
        for launcher in ("local", "mpirun"):
            words = ["--launcher", launcher, "--workers", 1] if launcher == "mpirun" else ["--launcher", launcher]
            self.refused("cannot start /nowhere/program: No such file", words=[*words, "--", "/nowhere/program"], code=NO_PROGRAM)
            self.refused("cannot start no-such-program: No such file", words=[*words, "--", "no-such-program"], code=NO_PROGRAM)
            self.refused("cannot start /etc/passwd: ", words=[*words, "--", "/etc/passwd"], code=NOT_EXECUTABLE)

    def test_rejects_being_a_rank(self):
        job = self.start([CAPSTAN, "run", "--", "prog"], ranks=3)
        self.assertEqual(self.exit_code(job), USAGE, job.stderr)
        self.assertIn("started as one of 3 ranks", job.stderr)
        self.refused("started as one of 4 ranks", words=["--", "prog"],
                     env={"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "4"})


if __name__ == "__main__":
    main()
