#!/usr/bin/env python3
"""Trains the models of `capstan train` on real data, and compares their quality with published figures.

usage: perf/quality_gates.py --data DIR [--data DIR ...] [--only NAME ...] [--mpirun [RANKS]] [--build build/release] [--json FILE]

A DIR has a directory for each data set: DIRECTORIES lists them and their files. A case whose data is absent is skipped.
Settings are the defaults, unless a case lists others. --only NAME runs the cases whose names contain NAME. --mpirun runs
each training under mpirun, by default with 4 ranks: a coordinator, a ps and 2 workers. Otherwise it is one process. Exits
with 1 if a gate is missed, a training fails, or no case runs. Prints a row as soon as a case ends. All cases together
take hours, because `kge` searches settings for up to 10 minutes each.
"""
import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import platform
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))
import open_mpi  # sets the environment of mpirun

TRIPLES = ("train.txt", "valid.txt", "test.txt")
# By the name of a data set: its files, and a source.
DIRECTORIES = {
    "umls": (TRIPLES, "github.com/TimDettmers/ConvE"),
    "wn18rr": (TRIPLES, "github.com/TimDettmers/ConvE"),
    "fb15k237": (TRIPLES, "FB15k-237 of github.com/TimDettmers/ConvE"),
    "wn18": (TRIPLES, "github.com/villmow/datasets_knowledge_embedding"),
    "a9a": (("a9a", "a9a.t"), "the data page of LIBSVM"),
    "criteo": (("train.txt", "test.txt"),
               "Criteo's display advertising challenge: 60,000 and 20,000 rows of the sample in docs/models.md"),
    "ml-100k": (tuple(f"u{fold}.{part}" for fold in range(1, 6) for part in ("base", "test")), "files.grouplens.org"),
    "mnist": (tuple(f"{part}-{content}.gz" for part in ("train", "t10k") for content in ("images-idx3-ubyte", "labels-idx1-ubyte")),
              "the MNIST database of handwritten digits"),
    "word2vec": (("corpus.txt", "wordsim353.tsv"), "the text and the pairs of words in docs/models.md"),
}


@dataclasses.dataclass
class Case:
    """A model on a data set. The quality is the mean of a metric of the summaries of all runs."""
    program: str
    data: str
    runs: list  # of options of `capstan train PROGRAM`; {} is the directory of the data
    metric: tuple  # members of the summary
    published: float | None = None
    gate: float | None = None  # the worst quality that holds; None: there is no gate
    lower_is_better: bool = False
    variant: str = ""
    as_good_as: str = ""  # name of an earlier case, whose quality is the gate

    @property
    def name(self):
        return "-".join(part for part in (self.program, self.variant, self.data) if part)

    def holds(self, quality, gate):
        return gate is None or (quality <= gate if self.lower_is_better else quality >= gate)


def graph_cases():
    """Published: LibKGE, and for RotatE on WN18RR its authors. A run may lose 0.01."""
    published = {
        "wn18rr": {"transe": 0.228, "distmult": 0.452, "complex": 0.475, "rotate": 0.476},
        "fb15k237": {"complex": 0.348, "distmult": 0.343, "transe": 0.313, "rotate": 0.333},
        "wn18": {"complex": 0.951, "distmult": 0.941},
    }
    cases = [Case("kge", "umls", [["--data", "{}", "--model", "complex", "--auto-time", "1min", "--predictions", "0"]],
                  ("test", "mrr"), variant="complex")]
    for data, models in published.items():
        cases += [Case("kge", data, [["--data", "{}", "--model", model, "--predictions", "0"]], ("test", "mrr"), mrr,
                       round(mrr - 0.01, 3), variant=model) for model, mrr in models.items()]
    return cases


def click_cases():
    """Published for lr: liblinear on the same rows. The gate of a network is the AUC of fm."""
    options = [["--data", "{}/train.txt", "--test", "{}/test.txt", "--format", "criteo"]]
    auc = ("test", "auc")
    return [Case("lr", "criteo", options, auc, 0.7685, 0.765), Case("fm", "criteo", options, auc, None, 0.768),
            *(Case(program, "criteo", options, auc, as_good_as="fm-criteo") for program in ("deepfm", "dlrm", "dcn"))]


CASES = [
    *graph_cases(),
    Case("lr", "a9a", [["--data", "{}/a9a", "--test", "{}/a9a.t"]], ("test", "auc"), 0.9022, 0.9012),
    # Full batches: the optimum is known to 10 digits.
    Case("lr", "a9a", [["--data", "{}/a9a", "--test", "{}/a9a.t", *shlex.split(
        "--mode synchronous --batch 40000 --no-bias --l2 1e-4 --optimizer momentum --momentum 0.99 --nesterov "
        "--learning-rate 0.25 --epochs 1400 --eval-every 0")]],
        ("train", "objective"), 0.3245069247, 0.3245070, lower_is_better=True, variant="optimum"),
    *click_cases(),
    Case("mf", "ml-100k", [["--data", f"{{}}/u{fold}.base", "--test", f"{{}}/u{fold}.test"] for fold in range(1, 6)],
         ("test", "rmse"), 0.934, 0.94, lower_is_better=True),
    Case("mlp", "mnist", [["--data", "{}/train-images-idx3-ubyte.gz", "--labels", "{}/train-labels-idx1-ubyte.gz",
                           "--test", "{}/t10k-images-idx3-ubyte.gz", "--test-labels", "{}/t10k-labels-idx1-ubyte.gz",
                           "--hidden", "300"]], ("test", "accuracy"), 0.98, 0.97),
    # Published: word2vec.c on the same text.
    Case("word2vec", "word2vec", [["--data", "{}/corpus.txt", "--similarity", "{}/wordsim353.tsv"]],
         ("similarity", "spearman"), 0.595, 0.575),
]


def selected(names):
    """Returns the cases whose names contain one of `names`, and the cases that their gates need, in the order of CASES."""
    for name in names:
        if not any(name in case.name for case in CASES):
            sys.exit(f"--only: found {name}, expected a part of one of: {', '.join(case.name for case in CASES)}")
    chosen = [case for case in CASES if not names or any(name in case.name for name in names)]
    needed = {case.as_good_as for case in chosen}
    return [case for case in CASES if case in chosen or case.name in needed]


def find_data(name, directories):
    """Returns the directory of a data set, or None if no directory has all its files."""
    files = DIRECTORIES[name][0]
    found = (pathlib.Path(directory) / name for directory in directories)
    return next((directory for directory in found if all((directory / file).exists() for file in files)), None)


def train(command):
    """Runs a training, and returns its summary. Raises RuntimeError with the last line of a training that fails."""
    with tempfile.TemporaryDirectory() as directory:
        summary = pathlib.Path(directory) / "summary.json"
        job = subprocess.run([*command, "--summary", summary], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if job.returncode:
            lines = job.stderr.strip().splitlines() or ["no message"]
            raise RuntimeError(f"exit code {job.returncode}: {lines[-1]}")
        return json.loads(summary.read_text())


def member(summary, path):
    for name in path:
        if name not in summary:
            raise RuntimeError(f"summary: no {'.'.join(path)}")
        summary = summary[name]
    return summary


def run(case, directory, launcher, gate):
    """Returns the result of a case; its quality is None if a training fails."""
    commands = [[*launcher, "train", case.program, *(option.replace("{}", str(directory)) for option in options)]
                for options in case.runs]
    result = {"name": case.name, "program": case.program, "data": case.data, "metric": ".".join(case.metric),
              "commands": [shlex.join(command) for command in commands], "published": case.published, "gate": gate,
              "lower_is_better": case.lower_is_better, "quality": None}
    begin = time.monotonic()
    try:
        values = [member(train(command), case.metric) for command in commands]
        result |= {"values": values, "quality": statistics.mean(values)}
        if case.as_good_as and gate is None:
            raise RuntimeError(f"no gate: {case.as_good_as} has no quality")
        result["state"] = "held" if case.holds(result["quality"], gate) else "missed"
        if gate is None:
            result["state"] = "no gate"
    except (RuntimeError, OSError, ValueError) as error:
        result |= {"state": "failed", "reason": str(error)}
    result["seconds"] = time.monotonic() - begin
    return result


def print_row(result):
    def number(value):
        return "-" if value is None else f"{value:.7f}" if result["metric"] == "train.objective" else f"{value:.4f}"

    print(f"{result['name']:22} {result['data']:9} {result['metric']:19} {number(result['quality']):>10} "
          f"{number(result['published']):>10} {number(result['gate']):>10} {result['state']:8} {result['seconds']:8.1f}  "
          f"{result['commands'][0]}" + (f"  (mean of {len(result['commands'])} runs)" if len(result["commands"]) > 1 else ""),
          flush=True)
    if "reason" in result:
        print(f"  {result['name']}: {result['reason']}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", action="append", required=True, metavar="DIR")
    parser.add_argument("--only", nargs="+", action="extend", default=[], metavar="NAME")
    parser.add_argument("--mpirun", nargs="?", type=int, const=4, metavar="RANKS")
    parser.add_argument("--build", default=ROOT / "build" / "release")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    for directory in options.data:
        if not pathlib.Path(directory).is_dir():
            parser.error(f"--data: found {directory}, expected a directory")
    if options.mpirun is not None and options.mpirun < 3:
        parser.error(f"--mpirun: found {options.mpirun}, expected at least 3 ranks: a coordinator, a ps and a worker")
    launcher = ["mpirun", "-np", str(options.mpirun)] if options.mpirun else []
    launcher.append(str(pathlib.Path(options.build) / "bin" / "capstan"))
    cases = selected(options.only)
    commit = ""
    if shutil.which("git"):
        commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True).stdout.strip()
    context = {"date": f"{datetime.datetime.now():%Y-%m-%d}", "machine": platform.machine(), "cores": os.cpu_count(), "commit": commit}

    print(f"# {context['date']} {context['machine']} {context['cores']} cores, commit {commit}")
    print(f"# {'model':20} {'data':9} {'metric':19} {'quality':>10} {'published':>10} {'gate':>10} {'':8} {'seconds':>8}  command",
          flush=True)
    results, qualities = [], {}
    for case in cases:
        directory = find_data(case.data, options.data)
        if not directory:
            files, source = DIRECTORIES[case.data]
            print(f"{case.name:22} skipped: no {case.data}/ with {', '.join(files)}; from {source}", flush=True)
            results.append({"name": case.name, "program": case.program, "data": case.data, "state": "skipped"})
            continue
        gate = qualities.get(case.as_good_as) if case.as_good_as else case.gate
        results.append(run(case, directory, launcher, gate))
        qualities[case.name] = results[-1]["quality"]
        print_row(results[-1])
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"context": context, "results": results}, indent=2) + "\n")
    states = [result["state"] for result in results]
    print(f"# {', '.join(f'{states.count(state)} {state}' for state in dict.fromkeys(states))}")
    if all(state == "skipped" for state in states):
        print("no case ran: expected the data of at least one case in --data", file=sys.stderr)
        return 1
    return 1 if "missed" in states or "failed" in states else 0


if __name__ == "__main__":
    sys.exit(main())
