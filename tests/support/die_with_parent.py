"""die_with_parent.py -- for subprocess's preexec_fn: a test that is killed takes what it started with it."""
import ctypes
import signal

PR_SET_PDEATHSIG = 1


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
