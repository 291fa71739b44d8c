#!/usr/bin/env python3
"""Compares samples per second of `capstan train lr`, `fm` and `deepfm` with TensorFlow's ParameterServerStrategy.

usage: python perf/python/click_rates.py [--models lr,fm,deepfm] [--batches 256] [--epochs 3] [--repeat 3] [--build build/release]
       [--train FILE --test FILE] [--closure-steps 20] [--examples 60000]

Needs TensorFlow 2 (`pip install tensorflow`) in the Python that runs it. Both train with 2 workers, the same hashed features,
batch, asynchronous Adagrad and initial values of the same distributions, without an L2 penalty. Capstan runs as threads of a
process, and as 4 processes: coordinator, ps and 2 workers. TensorFlow runs as 4 processes of the same roles;
click_tensorflow.py lists the choices that favor it. A ratio is printed only if the test AUC agrees within
--auc-tolerance. Without files, both train on synthetic data in the format of Criteo.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tests" / "support")]
import click_data
import open_mpi  # sets the environment of mpirun

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--models", default="lr,fm,deepfm")
parser.add_argument("--batches", default="256", help="examples of a worker's batch, such as 256,1024,8192")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--repeat", type=int, default=3)
parser.add_argument("--build", default="build/release")
parser.add_argument("--train", help="training file in the format of Criteo")
parser.add_argument("--test", help="test file in the format of Criteo")
parser.add_argument("--closure-steps", type=int, default=20, help="steps that a closure of TensorFlow takes")
parser.add_argument("--examples", type=int, default=60_000, help="synthetic training examples")
parser.add_argument("--auc-tolerance", type=float, default=0.01)
options = parser.parse_args()
if (options.train is None) != (options.test is None):
    parser.error("found one of --train and --test, expected both or none")


def capstan(launcher, model, train, test, batch, directory):
    summary = pathlib.Path(directory) / "summary.json"
    program = [pathlib.Path(options.build) / "bin" / "capstan", "train", model, "--data", train, "--test", test,
               "--format", "criteo", "--batch", str(batch), "--epochs", str(options.epochs), "--eval-every", "0",
               "--l2", "0", "--mode", "asynchronous", "--optimizer", "adagrad", "--summary", summary]
    subprocess.run([*launcher, *map(str, program)], check=True, capture_output=True, timeout=1800)
    result = json.loads(summary.read_text())
    return result["training"]["examples_per_second"], result["test"]["auc"], result["test"]["logloss"]


def tensorflow(model, train, test, batch, _):
    output = subprocess.run([sys.executable, HERE / "click_tensorflow.py", model, train, test, str(options.epochs), str(batch),
                             str(options.closure_steps)], check=True, capture_output=True, text=True, timeout=1800).stdout
    result = json.loads(output.splitlines()[-1])
    return result["samples_per_second"], result["auc"], result["logloss"]


RIVAL = "TensorFlow, 4 processes"
CASES = {
    "Capstan, threads": lambda *run: capstan(["env", "CAPSTAN_WORKERS=2"], *run),
    "Capstan, 4 processes": lambda *run: capstan(["mpirun", "-np", "4"], *run),
    RIVAL: tensorflow,
}


def compare(model, train, test, batch, directory):
    """Run the cases in turns, and print medians and ranges. Return whether all AUC agree."""
    runs = {name: [] for name in CASES}
    for _ in range(options.repeat):
        for name, case in CASES.items():
            runs[name].append(case(model, train, test, batch, directory))
    rival_rate, rival_auc = (statistics.median(run[i] for run in runs[RIVAL]) for i in (0, 1))
    all_agree = True
    for name, results in runs.items():
        rates = [run[0] for run in results]
        auc, loss = (statistics.median(run[i] for run in results) for i in (1, 2))
        agrees = abs(auc - rival_auc) <= options.auc_tolerance
        all_agree = all_agree and agrees
        ratio = f"{statistics.median(rates) / rival_rate:6.2f}" if agrees else "wrong AUC, no ratio"
        print(f"{model:6} {batch:5} {name:24} {statistics.median(rates):10.0f} {min(rates):10.0f} {max(rates):10.0f} {ratio}"
              f"  AUC {auc:.4f}  logloss {loss:.4f}", flush=True)
    return all_agree


with tempfile.TemporaryDirectory() as temporary:
    files = [options.train, options.test]
    if options.train is None:
        files = [os.path.join(temporary, name) for name in ("train.txt", "test.txt")]
        click_data.write_synthetic(files[0], options.examples, 1)
        click_data.write_synthetic(files[1], 20_000, 2)
    print("# model, batch, case, samples/s: median, least, greatest; ratio to TensorFlow")
    agreed = [compare(model, *files, int(batch), temporary) for model in options.models.split(",")
              for batch in options.batches.split(",")]
sys.exit(not all(agreed))
