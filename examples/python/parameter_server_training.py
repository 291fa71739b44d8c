"""TensorFlow's tutorial "Parameter server training with ParameterServerStrategy", written for Capstan.

A model with an embedding of words and one dense unit learns which words are superheroes. docs/python.md shows both
programs side by side.
"""
import sys

import numpy as np

import capstan as cs

FEATURES = ["avenger", "ironman", "batman", "hulk", "spiderman", "kingkong", "wonder_woman"]
LABELS = np.array([1, 1, 1, 1, 1, 0, 1], np.float32)
BATCH, WIDTH, EPOCHS, STEPS_PER_EPOCH = 32, 16, 4, 5


def dataset_fn():
    """The batches of one worker: numbers of three words, and whether the first one is a superhero."""
    random = np.random.default_rng()
    while True:
        ids = random.integers(0, len(FEATURES), (BATCH, 3))
        yield ids, LABELS[ids[:, 0]]


def forward(ids, table, dense, bias):
    rows = cs.embedding_lookup(table, ids).reshape(len(ids), -1)
    return rows, 1 / (1 + np.exp(-(rows @ dense + bias)))


def step_fn(iterator, table, dense, bias, accuracy):
    """One batch: a forward pass, the gradients of the mean logistic loss, and their pushes. Returns the loss."""
    ids, labels = next(iterator)
    weights, offset = dense.pull(), bias.pull()
    rows, predicted = forward(ids, table, weights, offset)
    error = (predicted - labels) / len(labels)
    table.push(ids, (error[:, None] * weights).reshape(*ids.shape, WIDTH))
    dense.push_dense(rows.T @ error)
    bias.push_dense(error.sum())
    accuracy.update_state(labels, predicted > 0.5)
    return -float(np.mean(np.log(np.where(labels > 0, predicted, 1 - predicted))))


def main():
    cluster = cs.Cluster.join()
    if cluster.role != "coordinator":
        return cs.Server(cluster).join()
    partitioner = cs.partitioners.MinSizePartitioner(min_shard_bytes=64, max_shards=cluster.count("ps"))
    strategy = cs.ParameterServerStrategy(cluster, variable_partitioner=partitioner)
    with strategy.scope():
        optimizer = cs.optimizers.RMSprop(learning_rate=0.1)
        shape = (len(FEATURES), WIDTH)
        table = cs.Variable(cs.initializers.uniform(), shape=shape, name="embedding", optimizer=optimizer)
        dense = cs.Variable(np.zeros(3 * WIDTH, np.float32), name="dense", optimizer=optimizer)
        bias = cs.Variable(0.0, name="bias", optimizer=optimizer)
        accuracy = cs.metrics.Accuracy()

    coordinator = cs.ClusterCoordinator(strategy)
    iterator = iter(coordinator.create_per_worker_dataset(dataset_fn))
    for epoch in range(EPOCHS):
        accuracy.reset_state()
        for _ in range(STEPS_PER_EPOCH):
            loss = coordinator.schedule(step_fn, args=(iterator, table, dense, bias, accuracy))
        coordinator.join()
        print(f"Finished epoch {epoch}, accuracy is {accuracy.result():.3f}, the last loss is {loss.fetch():.3f}.")

    ids, labels = next(dataset_fn())
    predicted = forward(ids, table, dense.pull(), bias.pull())[1]
    evaluated = np.mean((predicted > 0.5) == labels)
    print(f"Evaluation accuracy: {evaluated:.3f}")
    return 0 if evaluated > 0.95 else 1


if __name__ == "__main__":
    sys.exit(main())
