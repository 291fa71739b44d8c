#!/usr/bin/env python3
"""A rank is killed at a random moment of the start: the job succeeds or fails with an error, but it ends, and nothing is left.

The job can only continue without a worker, and only once all ranks know each other; before that, the launcher ends the job.
"""
import os
import pathlib
import random
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import BIN, SECONDS_TO_END, TRAINING_OUTPUT, JobTest, Roles, main, train
from poll import wait_random

FOREVER = 1_000_000
REQUEUE = 85  # docs/errors.md
RANKS, PS = 5, 2
CRASHES = BIN / "crashes_in_finalize"


class StartKilled(JobTest):
    def end_of(self, job):
        """Returns the job's exit code once all its processes have ended; None if the launcher fails at its own end.

        If a rank dies while it connects to Open MPI 4.1.4's mpirun ("PMIX ERROR: UNREACHABLE"), mpirun may hang or crash in
        PMIx_server_finalize, or be killed by SIGPIPE there, after it has removed its handler. All ranks must have ended then,
        too.
        """
        gone = lambda: not job.live_processes() or list(job.live_processes()) == [job.command.pid]
        if job.wait_for(gone) and job.wait(SECONDS_TO_END) is None and gone() and "PMIX ERROR" in job.stderr:
            print(f"the launcher hangs:\n{job.stderr}", file=sys.stderr)
            job.signal_launcher(signal.SIGKILL)
            self.exit_code(job)
            return None
        code = self.exit_code(job)
        crashed = code == 128 + signal.SIGSEGV and "PMIx_server_finalize" in job.stderr
        piped = job.command.returncode == -signal.SIGPIPE  # the launcher's own end: a rank's would be 128 + SIGPIPE
        return None if crashed or piped else code

    def test_rank_killed_at_random_moments(self):
        data = self.graph()
        for seed in range(9):
            with self.subTest(seed=seed):
                moment = random.Random(seed)
                saving = ["--checkpoint-dir", self.directory / f"checkpoints-{seed}", "--checkpoint-every", FOREVER]
                job = self.start(train(data, "--ps", PS, "--eval-every", 10, *saving, epochs=FOREVER), RANKS)
                role = ("workers", "ps", "coordinator")[seed % 3]
                ranks = getattr(Roles(RANKS, PS), role)
                rank = moment.choice(ranks) if isinstance(ranks, list) else ranks
                # From the fork of the rank, through MPI's start and end, to the first closures.
                self.assertTrue(job.wait_for(lambda: rank in job.ranks()), job.stderr)
                wait_random(moment, 0, 0.8)
                evaluated = job.stderr.count(TRAINING_OUTPUT)
                agent, killed = job.ranks()[rank]
                os.kill(killed, signal.SIGKILL)
                # The job ends, or trains until it is told to save and end. An evaluation in progress may still complete.
                trains = lambda: job.stderr.count(TRAINING_OUTPUT) >= evaluated + 3
                goes_on = job.wait_for(lambda: trains() or list(job.processes()) == [job.command.pid])
                # The launcher may take a second to end the other ranks, which train meanwhile.
                signaled = goes_on and trains() and job.command.poll() is None
                if signaled:
                    job.signal_launcher(signal.SIGUSR1)
                code = self.end_of(job)
                if signaled and code == 128 + signal.SIGUSR1:  # mpirun was already ending the job and forwards no signals
                    self.assertIn("the job has been aborted", job.stderr)
                elif code == REQUEUE:
                    self.assertTrue(trains())
                    self.assertIn(": saved ", job.stderr)
                else:
                    # 137 is the exit code of a coordinator, or of a rank without an agent, that was killed. Only the launcher
                    # can name such a rank; mpirun does so in 7 of 100 jobs.
                    self.assertIn(code, (4, 128 + signal.SIGKILL, None), job.stderr)
                    if killed != agent:
                        self.assertIn(f"rank {rank}", job.stderr)

    def test_rank_crashes_in_mpi_finalize(self):
        for rank in (0, 1, 3):
            with self.subTest(rank=rank):
                job = self.run_to_end([CRASHES, rank, "--capstan-ps=1"], 4)
                self.assertIn("sum 2 of 2 workers", job.stdout)


if __name__ == "__main__":
    main()
