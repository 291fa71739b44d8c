"""The training of tutorial_capstan.py with TensorFlow, whose 2 ps and 2 workers are servers of this process.

usage: python tutorial_tensorflow.py STEPS. Prints samples per second, the accuracy, and the rate of empty functions. Needs
TensorFlow.
"""
import os
import socket
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("GRPC_FAIL_FAST", "use_caller")
import numpy as np
import tensorflow as tf

FEATURES = ["avenger", "ironman", "batman", "hulk", "spiderman", "kingkong", "wonder_woman"]
LABELS = np.array([1, 1, 1, 1, 1, 0, 1], np.float32)
BATCH, WIDTH, PS, WORKERS = 32, 16, 2, 2


def free_address():
    with socket.create_server(("localhost", 0)) as server:
        return f"localhost:{server.getsockname()[1]}"


def batch(_):
    ids = tf.random.uniform((BATCH, 3), 0, len(FEATURES), tf.int64)
    return ids, tf.gather(LABELS, ids[:, 0])


def dataset_fn(_=None):
    return tf.data.Dataset.range(1).repeat().map(batch).prefetch(2)


steps = int(sys.argv[1])
spec = tf.train.ClusterSpec({"ps": [free_address() for _ in range(PS)], "worker": [free_address() for _ in range(WORKERS)]})
config = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=WORKERS + 2)  # with fewer, the servers wait forever
servers = [tf.distribute.Server(spec, job_name=job, task_index=i, protocol="grpc", config=config) for job in ("ps", "worker")
           for i in range(spec.num_tasks(job))]
resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(spec, rpc_layer="grpc")
strategy = tf.distribute.ParameterServerStrategy(
    resolver, variable_partitioner=tf.distribute.experimental.partitioners.MinSizePartitioner(64, PS))
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    table = tf.Variable(tf.random.uniform((len(FEATURES), WIDTH), -0.05, 0.05))
    dense = tf.Variable(tf.zeros((3 * WIDTH, 1)))
    bias = tf.Variable(0.0)
    # RMSprop without Keras: its rule is a = 0.9 a + 0.1 g^2; w -= 0.1 g / sqrt(a + 1e-7), as in tutorial_capstan.py.
    slots = [tf.Variable(tf.zeros_like(v), trainable=False) for v in (tf.zeros((len(FEATURES), WIDTH)), tf.zeros((3 * WIDTH, 1)), 0.0)]


def logits(ids):
    return tf.squeeze(tf.reshape(tf.nn.embedding_lookup(table, ids), (-1, 3 * WIDTH)) @ dense, 1) + bias


def apply(variable, slot, gradient):
    parts = list(zip(variable.variables, slot.variables)) if hasattr(variable, "variables") else [(variable, slot)]
    first = 0
    for part, part_slot in parts:
        rows = part.shape[0] if part.shape.rank else None
        g = gradient[first:first + rows] if rows is not None else gradient
        first += rows or 0
        mean = part_slot.assign(0.9 * part_slot + 0.1 * g * g)
        part.assign_sub(0.1 * g / tf.sqrt(mean + 1e-7))


@tf.function
def step_fn(iterator):
    ids, labels = next(iterator)
    rows = tf.reshape(tf.nn.embedding_lookup(table, ids), (-1, 3 * WIDTH))
    weights = tf.convert_to_tensor(dense)
    error = (tf.sigmoid(tf.squeeze(rows @ weights, 1) + bias) - labels) / BATCH
    of_rows = tf.reshape(error[:, None] * tf.transpose(weights), (-1, WIDTH))
    apply(table, slots[0], tf.math.unsorted_segment_sum(of_rows, tf.reshape(ids, (-1,)), len(FEATURES)))
    apply(dense, slots[1], tf.transpose(rows) @ error[:, None])
    apply(bias, slots[2], tf.reduce_sum(error))
    return tf.reduce_mean(error)


iterator = iter(coordinator.create_per_worker_dataset(dataset_fn))


def train(count):
    for _ in range(count):
        coordinator.schedule(step_fn, args=(iterator,))
    coordinator.join()


train(steps)
begin = time.perf_counter()
train(steps)
seconds = time.perf_counter() - begin
ids = tf.random.uniform((1024, 3), 0, len(FEATURES), tf.int64)
accuracy = np.mean((logits(ids).numpy() > 0) == (LABELS[ids[:, 0].numpy()] > 0.5))


@tf.function
def nothing():
    return tf.constant(0)


def empty(count):
    for _ in range(count):
        coordinator.schedule(nothing)
    coordinator.join()


empty(steps)
begin = time.perf_counter()
empty(steps)
functions = steps / (time.perf_counter() - begin)
single = []
for _ in range(100):
    begin = time.perf_counter()
    coordinator.schedule(nothing).fetch()
    single.append(time.perf_counter() - begin)
print(f"empty functions/s: {functions:.0f}")
print(f"one function: {sorted(single)[50] * 1e6:.0f} us")
print(f"samples/s: {steps * BATCH / seconds:.0f}")
print(f"accuracy: {accuracy:.3f}")
os._exit(0)  # TensorFlow's servers do not end
