"""die_with_parent.py -- for subprocess's preexec_fn: the kernel kills the child when its parent dies."""
import ctypes
import signal

PR_SET_PDEATHSIG = 1


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
