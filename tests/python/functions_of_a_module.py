"""Functions that test_coordinator.py schedules by name."""
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
