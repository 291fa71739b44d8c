#!/usr/bin/env python3
"""Measures triples per second of `capstan train kge`, and of its bound, the plain single-core program, in one run.

usage: perf/kge_rates.py DATA_DIR [--build build/release] [--model complex] [--epochs 4] [--repeat 5] [--gpu] [--json FILE]

Interleaves the cases: plain, local, 1 worker, 2 workers, and again, so that drift of the machine's speed affects all. A
rate counts only if the filtered test MRR of the run is within --mrr-tolerance of the plain program's. With --gpu: plain,
2 workers on two cores, one process that computes on a GPU, and a worker on the GPU of its ps, whose variables are in host
memory or in the GPU's; ratios are to the rate of the two cores.
"""
import argparse, datetime, json, os, pathlib, platform, re, shutil, statistics, subprocess, sys, tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "support"))
import open_mpi  # sets the environment of mpirun

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("data")
parser.add_argument("--build", default="build/release")
parser.add_argument("--model", default="complex")
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--repeat", type=int, default=5)
parser.add_argument("--mrr-tolerance", type=float, default=0.05)
parser.add_argument("--gpu", action="store_true")
parser.add_argument("--json")
options = parser.parse_args()

binaries = pathlib.Path(options.build) / "bin"
common = ["--data", options.data, "--model", options.model, "--epochs", str(options.epochs)]


def plain():
    text = subprocess.run([binaries / "plain_kge", *common], check=True, capture_output=True, text=True, timeout=1800).stdout
    rate = float(re.search(r"training [\d.]+ s, (\d+) triples/s", text)[1])
    return rate, float(re.findall(r"MRR ([\d.]+)", text)[-1])


def capstan(launcher, *more):
    with tempfile.TemporaryDirectory() as directory:
        summary = pathlib.Path(directory) / "summary.json"
        subprocess.run([*launcher, binaries / "capstan", "train", "kge", *common, "--predictions", "0", "--summary", summary, *more],
                       check=True, capture_output=True, timeout=1800)
        result = json.loads(summary.read_text())
        return result["training"]["triples_per_second"], result["test"]["mrr"]


cases = {
    "plain, 1 core": plain,
    "capstan, local, 1 worker": lambda: capstan([]),
    "capstan, mpirun, 1 ps, 1 worker": lambda: capstan(["mpirun", "-np", "3"], "--ps", "1"),
    "capstan, mpirun, 2 ps, 2 workers": lambda: capstan(["mpirun", "-np", "5"], "--ps", "2"),
}
bound = "plain, 1 core"
if options.gpu:
    two_cores = ["taskset", "-c", ",".join(str(cpu) for cpu in sorted(os.sched_getaffinity(0))[:2])]
    bound = "capstan, 2 ps, 2 workers, two cores"
    cases = {
        "plain, 1 core": plain,
        bound: lambda: capstan([*two_cores, "mpirun", "-np", "5"], "--ps", "2"),
        "capstan, local, one GPU": lambda: capstan([], "--device", "cuda"),
        "1 ps in host memory, 1 GPU": lambda: capstan(["mpirun", "-np", "3"], "--ps", "1", "--device", "cuda"),
        "1 ps in GPU memory, 1 GPU": lambda: capstan(["mpirun", "-np", "3"], "--ps", "1", "--device", "cuda", "--ps-memory", "device"),
    }
rates = {name: [] for name in cases}
mrrs = {name: [] for name in cases}
for _ in range(options.repeat):
    for name, run in cases.items():
        rate, mrr = run()
        rates[name].append(rate)
        mrrs[name].append(mrr)

expected = statistics.median(mrrs["plain, 1 core"])
results = []
commit = ""
if shutil.which("git"):
    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True).stdout.strip()
print(f"# {datetime.datetime.now():%Y-%m-%d} {platform.machine()} {os.cpu_count()} cores, commit {commit}, {options.model}, "
      f"{options.epochs} epochs, median of {options.repeat}")
print(f"# {'case':36} {'triples/s':>10} {'min':>8} {'max':>8} {'of cores' if options.gpu else 'of plain':>9} {'MRR':>7}")
for name, values in rates.items():
    mrr = statistics.median(mrrs[name])
    verified = abs(mrr - expected) <= options.mrr_tolerance
    median = statistics.median(values)
    ratio = median / statistics.median(rates[bound])
    shown = f"{median:10.0f} {min(values):8.0f} {max(values):8.0f} {ratio:9.2f}" if verified else "wrong result, no rate"
    print(f"  {name:36} {shown} {mrr:7.4f}")
    results.append({"case": name, "unit": "triples/s", "median": median if verified else None, "all": values,
                    "bound": statistics.median(rates[bound]), "ratio_to_bound": ratio if verified else None, "mrr": mrr,
                    "verified": verified})
if options.json:
    pathlib.Path(options.json).write_text(json.dumps({"context": vars(options) | {"commit": commit}, "results": results}, indent=2))
sys.exit(not all(r["verified"] for r in results))
