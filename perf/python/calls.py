"""Times the calls of calls.cpp in Python: a worker's lookups and pushes, and empty functions. Prints the same lines."""
import statistics
import sys
import time

import numpy as np

import capstan as cs

ROWS, WIDTH, IDS, SETS, CALLS, FUNCTIONS = 1_000_000, 64, 8192, 8, 200, 20_000


def seconds_of(call, *args):
    begin = time.perf_counter()
    call(*args)
    return time.perf_counter() - begin


def measure(table):
    """Row r has the value r % 1000 in every column; a push of -1 adds 1."""
    random = np.random.default_rng(1)
    sets = [random.integers(0, ROWS, IDS) for _ in range(SETS)]
    gradient, out = np.full((IDS, WIDTH), -1, np.float32), np.empty((IDS, WIDTH), np.float32)
    for ids in sets:
        if not (table.lookup(ids) == (ids % 1000)[:, None]).all():
            raise ValueError("wrong rows")

    def timed(call):
        return statistics.median([seconds_of(call, sets[i % SETS]) for i in range(SETS + CALLS)][SETS:])

    def push_and_flush(ids):
        table.push(ids, gradient)
        table.flush()

    return {
        "lookup": timed(table.lookup),
        "lookup, out": timed(lambda ids: table.lookup(ids, out=out)),
        "push and flush": timed(push_and_flush),
    }


def nothing():
    pass


def main():
    cluster = cs.Cluster.join()
    if cluster.role != "coordinator":
        return cs.Server(cluster).join()
    strategy = cs.ParameterServerStrategy(cluster)
    with strategy.scope():
        table = cs.Variable(cs.initializers.zeros(), shape=(ROWS, WIDTH), name="table", optimizer=cs.optimizers.SGD(1.0))
    table.assign(np.repeat(np.arange(ROWS, dtype=np.float32) % 1000, WIDTH).reshape(ROWS, WIDTH))
    coordinator = cs.ClusterCoordinator(strategy)
    for name, seconds in coordinator.schedule(measure, (table,)).fetch().items():
        print(f"{name}: {seconds:.9f}")

    def empty():
        for _ in range(FUNCTIONS):
            coordinator.schedule(nothing)
        coordinator.join()

    empty()
    print(f"empty closure of many: {seconds_of(empty) / FUNCTIONS:.9f}")
    single = statistics.median(seconds_of(lambda: coordinator.schedule(nothing).fetch()) for _ in range(500))
    print(f"one closure: {single:.9f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
