#!/usr/bin/env python3
"""run_tests.py PRESET [ctest arguments] -- runs ctest and prints a summary of its output.

Shows a progress bar with the remaining time on a terminal, and a line every 20 seconds otherwise. Prints the output of a
failed test at once, with the command that repeats it. At the end, prints the numbers of passed, failed and skipped tests,
the reasons for skips, and the longest tests. build/PRESET/test.log contains the output of ctest, and
build/PRESET/Testing/Temporary/LastTest.log the output of all tests. Exit code: that of ctest.
"""
import contextlib
import json
import pathlib
import queue
import re
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from die_with_parent import die_with_parent  # noqa: E402
from list_skips import skips  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
STALLS = ROOT / "tests/support/stalls.py"
# "Passed", "***Failed", "Subprocess aborted***Exception:", or "***Failed  Required regular expression …" over several lines
RESULT = re.compile(r"^ *\d+/\d+ +Test +#\d+: (?P<name>\S+) \.* *(?P<result>Passed|[^*]*\*\*\*.*?)(?: +(?P<seconds>[\d.]+) sec)?$")
START = re.compile(r"^ +Start +\d+: ")
SUMMARY = re.compile(r"^\d+% tests passed")
SECONDS_BETWEEN_LINES = 20
BAR = 40
LONGEST = 8


class Progress:
    """State of the run. `costs` maps tests to seconds, from an earlier run or from COST in CMakeLists.txt."""

    def __init__(self, costs):
        self.costs = costs
        self.began = time.monotonic()
        self.done = {}  # test: seconds
        self.failed = []
        self.skipped = 0

    def record(self, name, result, seconds):
        self.done[name] = seconds
        if "Skipped" in result or "Disabled" in result:
            self.skipped += 1
        elif result != "Passed":
            self.failed.append(name)

    def record_missing(self):
        """Records each test without a result as failed, for example if ctest was killed."""
        for name in self.costs.keys() - self.done.keys():
            self.record(name, "no result", 0)

    def seconds_left(self):
        """Extrapolates from the expected cost of the completed tests; None until a tenth is done, as it is too uncertain."""
        done = sum(self.costs.get(name, 1) for name in self.done)
        rest = sum(cost for name, cost in self.costs.items() if name not in self.done)
        elapsed = time.monotonic() - self.began
        return elapsed * rest / done if 9 * done > rest else None

    def text(self):
        left = self.seconds_left()
        return (f"{len(self.done)} of {len(self.costs)}" + (f", {len(self.failed)} failed" if self.failed else "")
                + (f", {clock(left)} left" if left is not None and len(self.done) < len(self.costs) else ""))

    def bar(self):
        filled = BAR * len(self.done) // max(len(self.costs), 1)
        return f"[{'#' * filled:{BAR}}] {self.text()}"


def clock(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d} min"


def repeat_command(preset, name):
    """Returns the command that runs one test and builds nothing."""
    return f"ctest --preset {preset} -R '^{re.escape(name)}$'"


def planned(command):
    """Returns {test: expected seconds}, or None if ctest cannot list its tests."""
    listed = subprocess.run([*command, "--show-only=json-v1"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        return None
    tests = json.loads(listed.stdout)["tests"]
    return {test["name"]: next((p["value"] for p in test.get("properties", []) if p["name"] == "COST"), 1) for test in tests}


def measured(build):
    """Returns {test: seconds} of earlier runs in this build directory."""
    costs = {}
    file = build / "Testing/Temporary/CTestCostData.txt"
    for line in file.read_text().splitlines() if file.exists() else ():
        fields = line.split()
        if len(fields) == 3 and fields[1] != "0":
            costs[fields[0]] = max(float(fields[2]), 0.1)
    return costs


class Display:
    """Prints lines to standard output, and a progress bar below them if it is a terminal."""

    def __init__(self, progress):
        self.progress = progress
        self.terminal = sys.stdout.isatty()
        self.printed_at = time.monotonic()

    def print(self, *lines):
        print(*(["\r\033[K"] if self.terminal else []), sep="", end="")
        print(*lines, sep="\n", flush=True)

    def refresh(self):
        if self.terminal:
            print(f"\r\033[Ktests: {self.progress.bar()}", end="", flush=True)
        elif time.monotonic() - self.printed_at >= SECONDS_BETWEEN_LINES:
            self.printed_at = time.monotonic()
            self.print(f"tests: {self.progress.text()}")


def lines_of(process):
    """Yields the lines of the process's output, and None after each second without one."""
    lines = queue.Queue()

    def read():
        for line in process.stdout:
            lines.put(line)
        lines.put("")

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=1)
        except queue.Empty:
            yield None
            continue
        if not line:
            return
        yield line.rstrip("\n")


def follow(lines, log, progress, display, preset):
    """Records each result in `progress`, and prints the output of failed tests, which ctest prints after the result."""
    failing = False
    for line in lines:
        if line is None:
            display.refresh()
            continue
        print(line, file=log)
        result = RESULT.match(line)
        if result:
            progress.record(result["name"], result["result"], float(result["seconds"] or 0))
            failing = result["name"] in progress.failed
            if failing:
                display.print(line.strip(), f"  run it alone: {repeat_command(preset, result['name'])}")
        elif START.match(line) or SUMMARY.match(line):
            failing = False
        elif failing:
            display.print(line)
        display.refresh()


@contextlib.contextmanager
def machine_stalls(build):
    """Runs stalls.py; yields a function that returns the lines that it has printed so far."""
    with open(build / "stalls.log", "w+") as log:
        watcher = subprocess.Popen([sys.executable, "-B", STALLS, build / "CMakeCache.txt"], stdout=log, preexec_fn=die_with_parent)
        try:
            yield lambda: pathlib.Path(log.name).read_text().splitlines()
        finally:
            watcher.kill()
            watcher.wait()


def summary(progress, build, preset):
    log = build / "Testing/Temporary/LastTest.log"
    reasons = skips(log.read_text(errors="replace")) if log.exists() else []
    passed = len(progress.done) - len(progress.failed) - progress.skipped
    longest = sorted(progress.done.items(), key=lambda item: -item[1])[:LONGEST]
    return [
        "",
        "longest: " + ", ".join(f"{name} {seconds:.0f} s" for name, seconds in longest),
        *(f"skipped: {name}: {reason or 'no reason given'}" for name, reason in reasons),
        *(f"failed: {name}; run it alone: {repeat_command(preset, name)}" for name in progress.failed),
        f"{passed} passed, {len(progress.failed)} failed, {progress.skipped} skipped completely, "
        f"{len(reasons)} skips in total, in {clock(time.monotonic() - progress.began)}",
    ]  # fmt: skip


def main(preset, *arguments):
    build = ROOT / "build" / preset
    command = ["ctest", "--preset", preset, *arguments]
    costs = planned(command)
    if costs is None:
        return subprocess.run(command, cwd=ROOT).returncode
    earlier = measured(build)
    progress = Progress({name: earlier.get(name, cost) for name, cost in costs.items()})
    display = Display(progress)
    display.print(f"tests: {len(costs)} by {' '.join(command)}")
    with open(build / "test.log", "w") as log, machine_stalls(build) as stalls, subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as process:
        follow(lines_of(process), log, progress, display, preset)
        display.print(*(f"the machine stalled: {stall}" for stall in stalls()))
    progress.record_missing()
    display.print(*summary(progress, build, preset))
    return process.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
