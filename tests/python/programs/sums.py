"""Adds known numbers in rounds of functions, and prints "round N" after each. Finally prints whether the sums are
right.

usage: sums.py ROUNDS [--capstan-...]
"""
import sys
import time

import numpy as np

import capstan as cs

ROWS, WIDTH, FUNCTIONS = 50, 4, 40


def add_rows(table, counter, first):
    """Adds 1 to two rows and to all rows, in two pushes."""
    time.sleep(0.002)  # so that a round takes long enough to be interrupted
    ids = np.array([first % ROWS, (first + 1) % ROWS])
    table.push(ids, np.full((2, WIDTH), -1.0))
    table.push_dense(np.full((ROWS, WIDTH), -1.0))
    counter.add(1)
    return first


def main():
    by_messages = "--capstan-window=am" in sys.argv
    (np.ones((400, 400)) @ np.ones((400, 400))).sum()  # starts numpy's threads
    cluster = cs.Cluster.join()
    if cluster.role != "coordinator":
        return cs.Server(cluster).join()
    rounds = int(sys.argv[1])
    strategy = cs.ParameterServerStrategy(cluster, cs.partitioners.FixedShardsPartitioner(cluster.count("ps")),
                                          communication_dtype="bfloat16")
    with strategy.scope():
        table = cs.Variable(np.zeros((ROWS, WIDTH)), name="table", optimizer=cs.optimizers.SGD(1.0))
        counter = cs.Counter("functions")
        narrow = cs.Variable(np.zeros(2, np.float32), name="narrow", optimizer=cs.optimizers.SGD(-1.0))
        sines = np.sin(np.arange(200, dtype=np.float32)).reshape(2, 100)
        coarse = cs.Variable(sines, name="coarse", int8_lookups=True)
    coordinator = cs.ClusterCoordinator(strategy)
    by_value = lambda first: add_rows(table, counter, first)  # noqa: E731
    recorded = cluster.recorded_step()
    for step in range(0 if recorded is None else recorded + 1, rounds):
        for i in range(FUNCTIONS):
            number = step * FUNCTIONS + i
            if i % 2:
                coordinator.schedule(by_value, (number,))
            else:
                coordinator.schedule(add_rows, (table, counter, number))
        coordinator.record_step(step)
        print(f"round {step}", flush=True)
    numbers = np.arange(rounds * FUNCTIONS)
    expected = np.full((ROWS, WIDTH), float(numbers.size))
    np.add.at(expected, numbers % ROWS, 1)
    np.add.at(expected, (numbers + 1) % ROWS, 1)
    right = np.array_equal(table.pull(), expected) and counter.value() == numbers.size
    # Only gradients of the float32 variable are bfloat16, and only in messages.
    narrow.assign([0, 0]).push([1], [1 + 2.0**-12])
    narrow.flush()
    right = right and narrow.pull()[1] in ([1] if by_messages else [1, 1 + 2.0**-12])
    # Rows for lookups by messages are 8-bit integers.
    error = np.abs(coarse.lookup([1, 0]) - sines[::-1]).max()
    right = right and (1 / 1000 < error < 1 / 254 if by_messages else error < 1 / 254)
    print(f"sums are {'right' if right else f'wrong: {table.pull() - expected}, {counter.value()}, {narrow.pull()}, {error}'}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
