"""Trains lr, fm or deepfm with TensorFlow's ParameterServerStrategy: 1 ps and 2 workers as processes of this host.

usage: python click_tensorflow.py MODEL TRAIN TEST EPOCHS BATCH STEPS. STEPS: steps of a closure. Prints a line of JSON.
Needs TensorFlow 2 (`pip install tensorflow`). Choices that favor TensorFlow:
* Workers read parsed features from memory. tf.data finds the unique ids of a batch, and prefetches.
* All rows of an example are in one table, and all dense parameters in one variable: one read and one update of each a step.
* Adagrad is TensorFlow's fused kernel, on the ps. A closure is a tf.function of several steps, traced before the clock starts.
* 1 ps suffices, because the machine of the comparison has no core for a second one.
"""
import ctypes
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("GRPC_FAIL_FAST", "use_caller")
import numpy as np
import tensorflow as tf

import click_data

WORKERS, HASH_BITS, HIDDEN = 2, 20, [128, 64]
FACTORS = {"lr": 0, "fm": 8, "deepfm": 16}
RATES = {"lr": 0.05, "fm": 0.05, "deepfm": 0.03}
STDDEVS = {"lr": 0, "fm": 0.05, "deepfm": 0.01}
EVALUATED = 4096  # examples at a time
PR_SET_PDEATHSIG = 1  # prctl(2)


def free_address():
    with socket.create_server(("localhost", 0)) as server:
        return f"localhost:{server.getsockname()[1]}"


def serve(job, index, spec):
    """Serve until the coordinator ends, also if it is killed."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    config = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=WORKERS + 2)  # with fewer, the servers wait forever
    tf.distribute.Server(tf.train.ClusterSpec(spec), job_name=job, task_index=index, protocol="grpc", config=config).join()


def layers(model):
    """Return the shapes of the dense parameters, which follow each other in one variable."""
    if model != "deepfm":
        return [(1,)]  # the bias
    factors = FACTORS[model]
    widths = [click_data.INTEGERS + click_data.FIELDS * factors, *HIDDEN, 1]
    shapes = [(click_data.INTEGERS,), (click_data.INTEGERS, factors)]
    for inputs, outputs in zip(widths, widths[1:]):
        shapes += [(inputs, outputs), (outputs,)]
    return shapes


def initial_dense(model):
    random = np.random.default_rng(1)
    weights = [random.normal(0, np.sqrt(2 / shape[0]), shape) if len(shape) == 2 and i > 1 else np.zeros(shape)
               for i, shape in enumerate(layers(model))]
    return np.concatenate([w.reshape(-1) for w in weights]).astype(np.float32)


def logits_of(model, rows, values, dense, parameters):
    """Return the logits of a batch. rows: a weight and a vector for each field of each example."""
    shapes = layers(model)
    parts = [tf.reshape(p, s) for p, s in zip(tf.split(parameters, [int(np.prod(s)) for s in shapes]), shapes)]
    logits = tf.reduce_sum(rows[:, :, 0] * values, 1)
    if model == "lr":
        return logits + parts[0]
    vectors = rows[:, :, 1:] * values[:, :, None]
    if model == "fm":
        logits += parts[0]
    else:
        logits += tf.linalg.matvec(dense, parts[0])
        x = tf.concat([dense, tf.reshape(vectors, (-1, click_data.FIELDS * FACTORS[model]))], 1)
        vectors = tf.concat([dense[:, :, None] * parts[1], vectors], 1)
        for i in range(2, len(parts), 2):
            x = tf.matmul(x, parts[i]) + parts[i + 1]
            x = tf.nn.relu(x) if i + 2 < len(parts) else x
        logits += x[:, 0]
    sums, squares = tf.reduce_sum(vectors, 1), tf.reduce_sum(vectors * vectors, (1, 2))
    return logits + (tf.reduce_sum(sums * sums, 1) - squares) / 2


def auc(labels, logits):
    order = np.argsort(logits, kind="stable")
    ranks = np.empty(len(logits))
    ranks[order] = np.arange(1, len(logits) + 1)
    positives = labels.sum()
    return float((ranks[labels > 0].sum() - positives * (positives + 1) / 2) / (positives * (len(labels) - positives)))


def save_shares(directory, arrays):
    """Write every second example into the working directory of each worker, as `capstan train` divides them."""
    for worker in range(WORKERS):
        for name, array in zip(("labels", "ids", "values", "dense"), arrays):
            array[worker::WORKERS].tofile(directory / f"worker{worker}" / name)


def dataset_fn(examples, batch):
    """Return a function that makes a worker's endless dataset, from its working directory. Each epoch has another order."""
    def array(name, dtype, *shape):
        return tf.reshape(tf.io.decode_raw(tf.io.read_file(name), dtype), (-1, *shape))[:examples]

    def make(_=None):
        labels, ids = array("labels", tf.float32), array("ids", tf.int64, click_data.FIELDS)
        values, dense = array("values", tf.float32, click_data.FIELDS), array("dense", tf.float32, click_data.INTEGERS)

        def order(_):
            shuffled = tf.random.shuffle(tf.range(examples))
            return tf.data.Dataset.from_tensor_slices(tf.reshape(shuffled[:examples // batch * batch], (-1, batch)))

        def gather(chosen):
            unique, slots = tf.unique(tf.reshape(tf.gather(ids, chosen), (-1,)))
            return (unique, tf.reshape(slots, (batch, click_data.FIELDS)), tf.gather(values, chosen),
                    tf.gather(dense, chosen), tf.gather(labels, chosen))

        return tf.data.Dataset.range(1).repeat().flat_map(order).map(gather).prefetch(4)
    return make


def main(model, train, test, epochs, batch, steps):
    spec = {"ps": [free_address()], "worker": [free_address() for _ in range(WORKERS)]}
    tasks = [("ps", 0), *(("worker", i) for i in range(WORKERS))]
    program = os.path.abspath(__file__)
    servers = []
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        try:
            for job, i in tasks:
                (directory / f"{job}{i}").mkdir()
                servers.append(subprocess.Popen([sys.executable, program, "--serve", job, str(i), json.dumps(spec)],
                                                cwd=directory / f"{job}{i}"))
            print(json.dumps(train_on(spec, directory, model, train, test, epochs, batch, steps)), flush=True)
        finally:
            for server in servers:
                server.kill()
                server.wait()
    os._exit(0)  # threads of the coordinator do not end without servers


def train_on(spec, directory, model, train, test, epochs, batch, steps):
    data = click_data.read(train, HASH_BITS, model == "deepfm")
    save_shares(directory, data)
    examples = len(data[0])
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(tf.train.ClusterSpec(spec), rpc_layer="grpc")
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    width = 1 + FACTORS[model]
    with strategy.scope():
        weights = tf.zeros((1 << HASH_BITS, 1))
        vectors = tf.random.normal((1 << HASH_BITS, width - 1), 0, STDDEVS[model], seed=1)
        table = tf.Variable(tf.concat([weights, vectors], 1))
        dense_parameters = tf.Variable(initial_dense(model))
        slots_of = {"table": tf.Variable(tf.zeros_like(table)), "dense": tf.Variable(tf.zeros_like(dense_parameters))}

    def step(iterator):
        unique, slots, values, dense, labels = next(iterator)
        rows = tf.gather(table, unique)
        parameters = tf.convert_to_tensor(dense_parameters)
        with tf.GradientTape() as tape:
            tape.watch([rows, parameters])
            logits = logits_of(model, tf.gather(rows, slots), values, dense, parameters)
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels, logits))
        of_rows, of_parameters = tape.gradient(loss, [rows, parameters])
        with tf.device(table.device):
            tf.raw_ops.ResourceSparseApplyAdagradV2(
                var=table.handle, accum=slots_of["table"].handle, lr=RATES[model], epsilon=1e-10,
                grad=tf.convert_to_tensor(of_rows), indices=unique)
            tf.raw_ops.ResourceApplyAdagradV2(var=dense_parameters.handle, accum=slots_of["dense"].handle,
                                              lr=RATES[model], epsilon=1e-10, grad=of_parameters)

    @tf.function
    def closure(iterator):
        for _ in range(steps):
            step(iterator)

    steps = min(steps, examples // WORKERS // batch)  # each worker has at least a closure in an epoch

    def new_iterator():
        return iter(coordinator.create_per_worker_dataset(dataset_fn(examples // WORKERS, batch)))

    def run(closures, iterator):
        for _ in range(closures):
            coordinator.schedule(closure, args=(iterator,))
        coordinator.join()

    initial = [tf.identity(v) for v in (table, dense_parameters)]
    run(2 * WORKERS, new_iterator())
    for variable, value in zip((table, dense_parameters), initial):
        variable.assign(value)
    for slot in slots_of.values():
        slot.assign(tf.zeros_like(slot))
    closures = round(epochs * examples / batch / steps)
    iterator = new_iterator()  # an epoch starts with its first example
    begin = time.perf_counter()
    run(closures, iterator)
    seconds = time.perf_counter() - begin

    labels, ids, values, dense = click_data.read(test, HASH_BITS, model == "deepfm")
    rows, parameters = tf.constant(table.numpy()), tf.constant(dense_parameters.numpy())
    with tf.device("/job:chief/task:0/device:CPU:0"):
        logits = np.concatenate([
            logits_of(model, tf.gather(rows, ids[i:i + EVALUATED]), values[i:i + EVALUATED], dense[i:i + EVALUATED],
                      parameters).numpy() for i in range(0, len(labels), EVALUATED)])
    loss = np.mean(np.logaddexp(0, np.where(labels > 0, -logits, logits)))
    return {"samples_per_second": closures * steps * batch / seconds, "auc": auc(labels, logits), "logloss": float(loss)}


if sys.argv[1] == "--serve":
    serve(sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4]))
else:
    main(*sys.argv[1:4], *map(int, sys.argv[4:7]))
