"""Functions that test_coordinator.py schedules by name."""
import threading

import capstan as cs


@cs.function
def add(a, b=1):
    return a + b


def push_ones(v):
    v.push_dense(v.pull() * 0 - 1)


def fail(what):
    raise what


def last_of(iterator):
    last = None
    for last in iterator:
        pass
    return last


class Resource:
    """Counts its uses on a worker."""

    def __init__(self, start):
        self.uses = start


def use(resource):
    resource.uses += 1
    return resource.uses


# Events for which scheduled functions wait. A test can set them, since all roles are threads of its process.
may_fail, may_end = threading.Event(), threading.Event()


def fail_when_told():
    may_fail.wait(30)
    raise ValueError("told to")


def end_when_told():
    may_end.wait(30)
