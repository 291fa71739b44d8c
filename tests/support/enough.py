"""enough.py -- of jobs to which something is done while they run: long enough that it comes in time."""
import os
import signal


MOST_TIMES = 8  # the last one with 16,384 times as much


def until_enough(amount, run):
    """Calls `run(amount)`, which says whether the job still ran, with more and more."""
    for time in range(MOST_TIMES):
        if run(amount * 4**time):
            return
    raise AssertionError(f"with {amount * 4 ** (MOST_TIMES - 1)} it is still over too soon")


def kill_child(job, rank):
    """Kills a rank's child if it has not ended by now. Its agent, whose exit code would end the job, is spared."""
    agent, child = job.ranks().get(rank, (None, None))
    if child == agent:
        return
    try:
        os.kill(child, signal.SIGKILL)
    except ProcessLookupError:
        pass
