#!/usr/bin/env python3
"""Measures what a rank costs on one host, by the number of ranks, and extrapolates to larger jobs.

usage: perf/rank_costs.py [--bin build/release/bin] [--ranks 4,10,18,34,66,128] [--ps 2] [--to 1000] [--repeat 1] [--json FILE]

Starts jobs of sums_until_death, a program of the tests, in which every worker reaches every ps, and reads the kernel's figures
of all processes while the job is idle. The variables of that program lie on at most two ps. A rank has a process, which its role
names, and an agent. Processor time is that of all processes, from the start until every worker has reached every ps. Other load
of the machine hardly changes it, unlike the other times.

A line is fitted to each figure by least squares: figures of a ps over the workers, all others over the ranks. The proportional memory of a process (each page divided by its number of processes) has none, because its part in
programs and libraries falls with the ranks. The memory of a job is the sum of it. At the larger number of ranks, it is the line
without the shared memory of ps, plus that of each ps.
"""
import argparse
import collections
import datetime
import json
import os
import pathlib
import platform
import re
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))
import job as jobs

TICKS = os.sysconf("SC_CLK_TCK")
PROPORTIONAL = "proportional memory, MiB"
FORMED, REACHED = "until the cluster is formed, s", "until every worker has reached every ps, s"
PROCESSOR_TIME, PER_RANK = "processor time, s", "processor time per rank, s"
PS_MEMORY = "shared memory of ps, MiB"
JOB_MEMORY, WITHOUT_PS_MEMORY = "memory of the job, MiB", "memory of the job but the shared memory of ps, MiB"


class Shape:
    """Number of ranks of each role."""

    def __init__(self, ranks, ps):
        self.ranks, self.ps, self.workers = ranks, ps, ranks - 1 - ps

    def variable_of(self, figure):
        """Returns (name, value) of the number over which the figure is fitted."""
        return ("workers", self.workers) if figure.startswith("ps: ") else ("ranks", self.ranks)


def process_figures(pid):
    """Returns {name: value} of a process. Its shared memory of UCX is what it maps, whether or not it is resident."""
    directory = pathlib.Path("/proc", str(pid))
    status = dict(re.findall(r"^(\w+):\s+(\d+)", (directory / "status").read_text(), re.MULTILINE))
    private = int(status["RssAnon"])
    proportional = ps_memory = ucx = 0
    for mapping in re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", (directory / "smaps").read_text(), flags=re.MULTILINE)[1:]:
        first = mapping.partition("\n")[0]
        kib = {name: int(value) for name, value in re.findall(r"^(Size|Rss|Pss): +(\d+) kB", mapping, re.MULTILINE)}
        proportional += kib["Pss"]
        if "/memfd:capstan-ps" in first:
            ps_memory += kib["Rss"]
        elif "/dev/shm/ucx" in first or "/SYSV" in first:
            ucx += kib["Size"]
    return {
        "private memory, MiB": private / 1024,
        "shared memory of UCX, MiB": ucx / 1024,
        PS_MEMORY: ps_memory / 1024,
        PROPORTIONAL: proportional / 1024,
        "threads": int(status["Threads"]),
        "files": len(list((directory / "fd").iterdir())),
    }


def processor_seconds(pid):
    """Returns the processor time of a process and of its children that have ended."""
    words = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(word) for word in words[11:15]) / TICKS


def run(options, shape):
    """Returns {figure: value} of one job; of several processes of a kind, the median."""
    with tempfile.TemporaryDirectory(prefix="capstan-perf-") as directory:
        leave = pathlib.Path(directory, "leave")
        command = [options.bin / "sums_until_death", 1, 0, leave, f"--capstan-ps={shape.ps}",
                   f"--capstan-start-timeout={options.timeout}s"]  # fmt: skip
        began, times = time.monotonic(), []
        with jobs.RankedJob(command, shape.ranks) as job:
            for text in ("1 coordinator, ", "begins", "lingers"):
                if not job.wait_for_text(text, options.timeout):
                    sys.exit(f"{shape.ranks} ranks: no {text!r} within {options.timeout} s; standard error:\n{job.stderr}")
                times.append(time.monotonic() - began)
            seconds = sum(processor_seconds(pid) for pid in job.processes())
            ranks, roles = job.ranks(), jobs.Roles(shape.ranks, shape.ps)
            found = collections.defaultdict(list)
            role_of = {0: "coordinator"} | dict.fromkeys(roles.workers, "worker") | dict.fromkeys(roles.ps, "ps")
            for rank, (agent, program) in ranks.items():
                for kind, pid in ((role_of[rank], program), ("agent", agent)):
                    for name, value in process_figures(pid).items():
                        found[f"{kind}: {name}"].append(value)
            leave.touch()
            code = job.wait(options.timeout)
            if code != 0 or "counter 1\n" not in job.stdout or len(ranks) != shape.ranks:
                sys.exit(f"{shape.ranks} ranks: exit code {code}, {len(ranks)} ranks found:\n{job.stdout}{job.stderr}")
    total = sum(sum(values) for name, values in found.items() if name.endswith(PROPORTIONAL))
    figures = {FORMED: times[0], REACHED: times[1], PROCESSOR_TIME: seconds, PER_RANK: seconds / shape.ranks,
               JOB_MEMORY: total, WITHOUT_PS_MEMORY: total - sum(found[f"ps: {PS_MEMORY}"])}  # fmt: skip
    return figures | {name: statistics.median(values) for name, values in found.items()}


def fit(xs, ys):
    """Returns (intercept, slope) of the line of least squares; a horizontal line if all x are equal."""
    x, y = statistics.fmean(xs), statistics.fmean(ys)
    spread = sum((one - x) ** 2 for one in xs)
    slope = sum((one - x) * (other - y) for one, other in zip(xs, ys)) / spread if spread else 0.0
    return y - slope * x, slope


def report(options, shapes, runs):
    """Prints a line for each figure; returns the figures as a list for JSON."""
    far, rows = Shape(options.to, options.ps), {}
    for name in runs[0][0]:
        medians = [statistics.median(job[name] for job in jobs_of) for jobs_of in runs]
        variable, value = far.variable_of(name)
        base, slope = fit([shape.variable_of(name)[1] for shape in shapes], medians)
        rows[name] = {"figure": name, "medians": medians, "all": [[job[name] for job in jobs_of] for jobs_of in runs]}
        if name != JOB_MEMORY and not name.endswith(PROPORTIONAL):
            rows[name] |= {"over": variable, "intercept": base, "slope": slope, "extrapolated": base + slope * value}
    rows[JOB_MEMORY]["extrapolated"] = sum(
        count * rows[name]["extrapolated"] for name, count in ((WITHOUT_PS_MEMORY, 1), (f"ps: {PS_MEMORY}", far.ps)))

    print(f"# {datetime.date.today()} {platform.machine()} {os.cpu_count()} cores, {options.ps} ps, median of {options.repeat}")
    print(f"# {'figure':50} {''.join(f'{shape.ranks:>9}' for shape in shapes)} {'line':>28} {'at ' + str(options.to):>10}")
    for name, row in rows.items():
        line = f"{row['intercept']:.4g} {'-' if row['slope'] < 0 else '+'} {abs(row['slope']):.4g} x {row['over']}" if "over" in row else ""
        there = f"{row['extrapolated']:10.1f}" if "extrapolated" in row else ""
        print(f"  {name:50} {''.join(f'{median:9.2f}' for median in row['medians'])} {line:>28} {there}")
    return list(rows.values())


def main():
    def numbers(text):
        return [int(word) for word in text.split(",")]

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin", help="directory of the programs")
    parser.add_argument("--mpiexec", default="mpirun")
    parser.add_argument("--ranks", type=numbers, default=[4, 10, 18, 34, 66, 128], help="numbers of ranks, comma-separated")
    parser.add_argument("--ps", type=int, choices=(1, 2), default=2, help="number of ps of each job")
    parser.add_argument("--to", type=int, default=1000, help="number of ranks to which the lines are extrapolated")
    parser.add_argument("--repeat", type=int, default=1, help="jobs of each size; the median counts")
    parser.add_argument("--timeout", type=int, default=300, help="seconds within which all ranks must have started")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    jobs.MPIEXEC, options.bin = options.mpiexec, options.bin.resolve()
    shapes = [Shape(ranks, options.ps) for ranks in options.ranks]
    rows = report(options, shapes, [[run(options, shape) for _ in range(options.repeat)] for shape in shapes])
    if options.json:
        options.json.write_text(json.dumps({"ranks": options.ranks, "to": options.to, "results": rows}, indent=2))


if __name__ == "__main__":
    main()
