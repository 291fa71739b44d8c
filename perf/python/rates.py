#!/usr/bin/env python3
"""Times the same calls from Python (calls.py) and C++ (calls.cpp), alternately, on 1 ps and 1 worker.

usage: perf/python/rates.py [--build build/release] [--python PYTHON] [--repeat 5] [--json FILE]

A ratio is the time of the C++ call divided by that of the Python call, both the median of the repetitions. Both programs
verify the rows before they time anything.
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
import open_mpi  # sets the environment of mpirun

TARGETS = {"lookup": 0.9, "push and flush": 0.9}

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
parser.add_argument("--python", default=ROOT / "build/python/bin/python")
parser.add_argument("--repeat", type=int, default=5)
parser.add_argument("--json", type=pathlib.Path)
options = parser.parse_args()

COMMANDS = {
    "C++": [options.build / "bin/perf_calls"],
    "Python": [options.python, pathlib.Path(__file__).with_name("calls.py")],
}


def measured(command):
    environment = {**os.environ, "PYTHONPATH": str(options.build / "python")}
    text = subprocess.run(["mpirun", "-np", "3", *command, "--capstan-ps=1"], env=environment, check=True, capture_output=True,
                          text=True, timeout=600).stdout
    return {name: float(seconds) for name, seconds in re.findall(r"^(.*): ([\d.]+)$", text, re.MULTILINE)}


runs = {language: [] for language in COMMANDS}
for _ in range(options.repeat):
    for language, command in COMMANDS.items():
        runs[language].append(measured(command))
medians = {language: {name: statistics.median(run[name] for run in all_runs) for name in all_runs[0]}
           for language, all_runs in runs.items()}
print(f"# {datetime.datetime.now():%Y-%m-%d} {os.cpu_count()} cores, median of {options.repeat}")
print(f"# {'call':24} {'C++ us':>10} {'Python us':>10} {'ratio':>6} {'target':>6}")
for name, seconds in medians["C++"].items():
    other = medians["Python"][name]
    target = TARGETS.get(name, "-")
    print(f"  {name:24} {seconds * 1e6:10.2f} {other * 1e6:10.2f} {seconds / other:6.2f} {target:>6}")
if options.json:
    options.json.write_text(json.dumps(runs, indent=2))
