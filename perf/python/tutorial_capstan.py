"""The training loop of examples/python/parameter_server_training.py, timed. Prints samples per second and the accuracy.

usage: mpirun -np 5 python tutorial_capstan.py STEPS [--capstan-ps=2]
"""
import pathlib
import sys
import time

import numpy as np

import capstan as cs

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples/python"))
from parameter_server_training import BATCH, FEATURES, WIDTH, dataset_fn, forward, step_fn


def main():
    cluster = cs.Cluster.join()
    if cluster.role != "coordinator":
        return cs.Server(cluster).join()
    steps = int(sys.argv[1])
    strategy = cs.ParameterServerStrategy(cluster, cs.partitioners.MinSizePartitioner(64, cluster.count("ps")))
    with strategy.scope():
        optimizer = cs.optimizers.RMSprop(learning_rate=0.1)
        table = cs.Variable(cs.initializers.uniform(), shape=(len(FEATURES), WIDTH), name="embedding", optimizer=optimizer)
        dense = cs.Variable(np.zeros(3 * WIDTH, np.float32), name="dense", optimizer=optimizer)
        bias = cs.Variable(0.0, name="bias", optimizer=optimizer)
        metric = cs.metrics.Accuracy()
    coordinator = cs.ClusterCoordinator(strategy)
    iterator = iter(coordinator.create_per_worker_dataset(dataset_fn))

    def train(count):
        for _ in range(count):
            coordinator.schedule(step_fn, args=(iterator, table, dense, bias, metric))
        coordinator.join()

    train(steps)
    begin = time.perf_counter()
    train(steps)
    seconds = time.perf_counter() - begin
    ids, labels = next(dataset_fn())
    accuracy = np.mean((forward(ids, table, dense.pull(), bias.pull())[1] > 0.5) == labels)
    print(f"samples/s: {steps * BATCH / seconds:.0f}")
    print(f"accuracy: {accuracy:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
