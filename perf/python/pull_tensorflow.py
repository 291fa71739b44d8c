"""Pulls a dense variable from a parameter server of TensorFlow in another process on this host, through gRPC.

usage: python pull_tensorflow.py [MIB [SAMPLES]]. Prints the median, least and greatest MB/s. Its counterpart is
UCX_TLS=tcp mpirun -n 3 perf_dense --max-bytes 64MiB --capstan-window=am. Needs TensorFlow.
"""
import os
import socket
import statistics
import subprocess
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import numpy as np
import tensorflow as tf


def free_address():
    with socket.create_server(("localhost", 0)) as server:
        return f"localhost:{server.getsockname()[1]}"


def serve(addresses):
    spec = tf.train.ClusterSpec({"worker": [addresses[0]], "ps": [addresses[1]]})
    tf.distribute.Server(spec, job_name="ps", task_index=0, protocol="grpc").join()


def pull(addresses, mib, samples):
    spec = tf.train.ClusterSpec({"worker": [addresses[0]], "ps": [addresses[1]]})
    tf.config.experimental_connect_to_cluster(spec, job_name="worker", task_index=0, protocol="grpc")
    elements = mib * 2**18
    with tf.device("/job:ps/task:0/device:CPU:0"):
        variable = tf.Variable(tf.cast(tf.range(elements) % 4096, tf.float32))

    @tf.function
    def add():
        with tf.device("/job:ps/task:0/device:CPU:0"):
            variable.assign_add(tf.ones_like(variable))

    @tf.function
    def read():
        with tf.device("/job:worker/task:0/device:CPU:0"):
            return tf.identity(variable)

    rates = []
    first = (np.arange(elements) % 4096).astype(np.float32)
    for sample in range(1, samples + 3):
        add()  # so that each pull returns other values
        begin = time.perf_counter()
        pulled = read()
        seconds = time.perf_counter() - begin
        if not np.array_equal(pulled.numpy(), first + sample):
            sys.exit("pulled wrong values")
        rates.append(elements * 4 / seconds / 1e6)
    rates = rates[2:]  # after two samples that trace the functions and connect
    print(f"{mib} MiB: {statistics.median(rates):.0f} MB/s ({min(rates):.0f} to {max(rates):.0f}), verified")


if sys.argv[1:2] == ["--serve"]:
    serve(sys.argv[2:])
else:
    addresses = [free_address(), free_address()]
    ps = subprocess.Popen([sys.executable, __file__, "--serve", *addresses])
    try:
        pull(addresses, int(sys.argv[1]) if len(sys.argv) > 1 else 64, int(sys.argv[2]) if len(sys.argv) > 2 else 20)
    finally:
        ps.kill()
        ps.wait()
