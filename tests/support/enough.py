"""enough.py -- of jobs to which something is done while they run: long enough that it comes in time."""
import os
import signal


def until_enough(amount, run):
    """Calls `run(amount)`, which says whether the job still ran, with more and more."""
    while not run(amount):
        amount *= 4


def kill_child(job, rank):
    """Of a rank that may have ended by now."""
    if found := job.ranks().get(rank):
        try:
            os.kill(found[1], signal.SIGKILL)
        except ProcessLookupError:
            pass
