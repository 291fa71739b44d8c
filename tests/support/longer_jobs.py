"""longer_jobs.py -- repeats a job with a longer run until it is still running when the test disturbs it."""
import os
import signal


MAX_TRIES = 8  # the last one runs 16,384 times as long


def retry_with_longer_job(amount, run):
    """Calls `run(amount)` with growing amounts of work until it returns true: the job still ran when it was disturbed."""
    for attempt in range(MAX_TRIES):
        if run(amount * 4**attempt):
            return
    raise AssertionError(f"the job ended before it was disturbed, even with {amount * 4 ** (MAX_TRIES - 1)}")


def kill_child(job, rank):
    """Kills a rank's child process if it still runs, but not its agent, whose exit code would end the job."""
    agent, child = job.ranks().get(rank, (None, None))
    if child == agent:
        return
    try:
        os.kill(child, signal.SIGKILL)
    except ProcessLookupError:
        pass
