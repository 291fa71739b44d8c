#!/usr/bin/env python3
"""Plots the study of 100, 1,000 and 10,000 ranks of docs/simulation.md with `capstan plan`.

usage: perf/plan_study.py [--build build/release] [--out docs/figures]

Writes plan-workers.png, plan-ps.png and plan-failures.png, and prints the numbers of each. The first two are predicted
by a simulation, the third is computed (perf/failure_loss.py). Nothing is measured. Takes about a minute on two cores.
Requires matplotlib.
"""
import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import sys

import failure_loss

JOB = ["--rows", "1e9", "--dim", 64, "--batch", 4096, "--compute-time", "20ms"]
CAPTION = "1e9 rows of 64 floats, batches of 4,096, 20 ms of computation, one rank a host, 100 Gb/s a link"
WORKERS = (80, 200, 400, 900, 2000, 4000, 9000)
VARIANTS = {
    "asynchronous": [],
    "stale": ["--mode", "stale"],
    "2 links": ["--links", 2],
    "4 links": ["--links", 4],
    "synchronous": ["--mode", "synchronous"],
    "asynchronous, Zipf 1.05": ["--zipf", 1.05],
    "asynchronous, RDMA": ["--rdma"],
}
PS_WORKERS = 900
PS = (6, 12, 25, 50, 100, 215, 450, 900)
SKEWS = {"uniform": [], "Zipf 1.05": ["--zipf", 1.05]}
SCHEMES = {
    "job ends": "job ends at each failure",
    "synchronous": "synchronous",
    "asynchronous": "asynchronous",
    "replicas": "asynchronous, replicas of the ps",
}
# Okabe and Ito: distinct for readers with color blindness.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vPX"
TOLERANCE = 0.02


def join_coinciding(lines):
    """Joins lines whose values differ by at most TOLERANCE at each point: {labels: values of the first one}."""
    joined = {}
    for label, values in lines.items():
        for labels, others in joined.items():
            if all(abs(a - b) <= TOLERANCE * b for a, b in zip(values, others, strict=True)):
                del joined[labels]
                joined[f"{labels}; {label}"] = others
                break
        else:
            joined[label] = values
    return joined


def plan(program, options):
    """Returns the output of `capstan plan --json OPTIONS`; throws RuntimeError if it fails."""
    command = [str(word) for word in (program, "plan", "--json", *JOB, *options)]
    try:
        job = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise RuntimeError(f"cannot run {command[0]}: {error.strerror}; build it, or set --build") from error
    if job.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: found exit code {job.returncode}, expected 0: {job.stderr.strip()}")
    return json.loads(job.stdout)


def run_all(program, requests):
    """Returns {key: plan} of {key: options}, several at a time."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        plans = pool.map(lambda options: plan(program, options), requests.values())
        return dict(zip(requests, plans, strict=True))


def set_axes(axes, title, x_label, y_label, ticks):
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.minorticks_off()
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.set_title(title, fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)


def draw_lines(axes, x, lines):
    for (label, values), color, marker in zip(lines.items(), COLORS, MARKERS):
        axes.plot(x, values, marker=marker, color=color, label=label, markersize=5)


def draw_workers(axes, plans):
    lines = {label: [1e3 * plans[label, n]["step_seconds"] for n in WORKERS] for label in VARIANTS}
    draw_lines(axes, WORKERS, join_coinciding(lines))
    set_axes(axes, "Step with the recommended number of ps (predicted, not measured)", "workers", "time of a step [ms]",
             {n: f"{n:,}" for n in WORKERS})
    axes.set_yticks([20, 30, 50, 100, 200], ["20", "30", "50", "100", "200"])


def draw_ps(axes, plans):
    for index, label in enumerate(SKEWS):
        axes.plot(PS, [1e3 * plans[label, n]["step_seconds"] for n in PS], marker=MARKERS[index], color=COLORS[index], label=label)
        best = plans[label, None]
        axes.plot([best["ps"]], [1e3 * best["step_seconds"]], marker="*", markersize=16, linestyle="", color=COLORS[index],
                  markeredgecolor="black", label=f"{label}: recommended, {best['ps']} ps")
    set_axes(axes, f"Step of {PS_WORKERS} workers (predicted, not measured)", "ps, and workers for each ps",
             "time of a step [ms]", {n: f"{n}\n{PS_WORKERS / n:.3g}:1" for n in PS})
    axes.set_yticks([20, 30, 40, 60, 80, 120], ["20", "30", "40", "60", "80", "120"])


def draw_failures(axes, plans):
    sizes = [(n, plans["asynchronous", n]["ps"]) for n in WORKERS]
    hosts = [1 + workers + ps for workers, ps in sizes]
    draw_lines(axes, hosts, {label: [100 * failure_loss.expected_loss(scheme, *size) for size in sizes]
                             for scheme, label in SCHEMES.items()})
    set_axes(axes, "Time lost to failures of hosts (computed, not simulated)", "hosts without replicas, and how many of them are ps",
             "part of the time [%]", {n: f"{n:,}\n{ps} ps" for n, (_, ps) in zip(hosts, sizes)})
    axes.set_yticks([0.1, 0.3, 1, 3, 10, 30], ["0.1", "0.3", "1", "3", "10", "30"])


def print_numbers(plans):
    for (label, number), found in plans.items():
        print(f"{label}, {found['workers']} workers, {found['ps']} ps: {1e3 * found['step_seconds']:.3g} ms, {found['bound_by']}"
              + (" (recommended)" if number is None else ""))
    for workers in WORKERS:
        ps = plans["asynchronous", workers]["ps"]
        losses = ", ".join(f"{name} {100 * failure_loss.expected_loss(scheme, workers, ps):.3g} %" for scheme, name in SCHEMES.items())
        print(f"{workers} workers, {ps} ps, lost: {losses}")


def requests():
    """Returns {(label, number of workers or of ps): options} of all runs. The number is None for a recommendation."""
    found = {(label, n): ["--workers", n, *options] for label, options in VARIANTS.items() for n in WORKERS}
    for label, options in SKEWS.items():
        found |= {(f"ps, {label}", n): ["--workers", PS_WORKERS, "--ps", n, *options] for n in PS}
        found[f"ps, {label}", None] = ["--workers", PS_WORKERS, *options]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default="build/release", help="build directory (default: build/release)")
    parser.add_argument("--out", type=pathlib.Path, default="docs/figures", help="output directory (default: docs/figures)")
    options = parser.parse_args()
    try:
        plans = run_all(options.build / "bin" / "capstan", requests())
    except RuntimeError as error:
        sys.exit(f"perf/plan_study.py: {error}")
    print_numbers(plans)
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    options.out.mkdir(parents=True, exist_ok=True)
    ps_plans = {(label.removeprefix("ps, "), n): plan for (label, n), plan in plans.items() if label.startswith("ps, ")}
    for name, draw, shown in (("workers", draw_workers, plans), ("ps", draw_ps, ps_plans), ("failures", draw_failures, plans)):
        figure, axes = plt.subplots(figsize=(7, 4.8), layout="constrained")
        draw(axes, shown)
        figure.supxlabel(CAPTION, fontsize=7)
        figure.savefig(options.out / f"plan-{name}.png", dpi=100)
        print(options.out / f"plan-{name}.png")


if __name__ == "__main__":
    main()
