#!/usr/bin/env python3
"""table_rates.py {capstan|tensorflow} -- times lookups of 8,192 keys in a table of a million rows of 64 floats.

`mpirun -n 3 python table_rates.py capstan` uses a DynamicTable, from the worker. `python table_rates.py tensorflow` uses
TensorFlow's MutableHashTable and DenseHashTable in one process. Before they are timed, the lookups are repeated
once, and all their rows are compared with a function of their keys.
"""
import statistics
import sys
import time

import numpy as np

KEYS, WIDTH, IDS, SETS, CALLS = 1_000_000, 64, 8192, 8, 200
INSERTED = 65_536  # keys of an insertion


def rows_of(keys):
    return np.repeat((keys % 1000).astype(np.float32), WIDTH).reshape(-1, WIDTH)


def rates(insert, lookup):
    """Return medians of keys/s, for insertions while the table grows to all keys, and for lookups."""
    random = np.random.default_rng(1)
    keys = np.unique(random.integers(1, 1 << 62, KEYS))
    inserted = []
    for first in range(0, len(keys), INSERTED):
        part = keys[first : first + INSERTED]
        rows = rows_of(part)
        begin = time.perf_counter()
        insert(part, rows)
        inserted.append(len(part) / (time.perf_counter() - begin))
    sets = [random.choice(keys, IDS) for _ in range(SETS)]
    for ids in sets:
        if not np.array_equal(np.asarray(lookup(ids)), rows_of(ids)):
            raise ValueError("wrong rows")
    times = []
    for call in range(SETS + CALLS):
        begin = time.perf_counter()
        lookup(sets[call % SETS])
        times.append(time.perf_counter() - begin)
    return statistics.median(inserted), IDS / statistics.median(times[SETS:])


def report(name, inserted, found):
    print(f"{name}: {inserted / 1e6:.2f} M insertions/s, {found / 1e6:.2f} M lookups/s")


def capstan():
    import capstan as cs

    def measure(table):
        out = np.empty((IDS, WIDTH), np.float32)
        return rates(table.assign, lambda keys: table.lookup(keys, out=out))

    cluster = cs.Cluster.join()
    if cluster.role != "coordinator":
        return cs.Server(cluster).join()
    strategy = cs.ParameterServerStrategy(cluster)
    with strategy.scope():
        table = cs.DynamicTable("table", WIDTH, max_keys=2 * KEYS)
    report("DynamicTable", *cs.ClusterCoordinator(strategy).schedule(measure, (table,)).fetch())
    return 0


def tensorflow():
    import tensorflow as tf

    zeros = tf.zeros(WIDTH)
    mutable = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, zeros)
    report("MutableHashTable", *rates(mutable.insert, mutable.lookup))
    dense = tf.lookup.experimental.DenseHashTable(tf.int64, tf.float32, zeros, empty_key=-1, deleted_key=-2,
                                                  initial_num_buckets=2 * (1 << 20))
    report("DenseHashTable", *rates(dense.insert, dense.lookup))
    return 0


if __name__ == "__main__":
    sys.exit({"capstan": capstan, "tensorflow": tensorflow}[sys.argv[1]]())
