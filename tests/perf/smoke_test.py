#!/usr/bin/env python3
"""Runs every benchmark with tiny sizes, as one process and as ranks: the result of each case must be verified."""
import csv
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import BIN, MPIEXEC, JobTest, main

TINY = ["--iters", 2, "--repeat", 2, "--warmup", 1]
ROWS = [*TINY, "--rows", 1000, "--dim", "8,16", "--call-ids", "1,64"]
# Program, its flags, and the number of cases.
PROGRAMS = {
    "perf_counter": (TINY, 2),
    "perf_dense": ([*TINY, "--rows", 64, "--min-bytes", "4KiB", "--max-bytes", "64KiB"], 9),
    "perf_idle": ([*TINY, "--idle-ms", 5], None),  # two cases; under mpirun, also one per ps and worker
    "perf_lookup": (ROWS, 8 + 4 + 8 + 8 + 8 + 8 + 8 + 2 * 4),
    "perf_push": ([*ROWS[:-1], "64"], 4 + 4 + 4 + 4 + 12),
    "perf_schedule": ([*TINY, "--closures", 50], 6),
    "perf_table": (ROWS, 2 * (1 + 4 + 4 + 2 + 2 + 1 + 8)),
}
SCALE = [*TINY, "--rings", "1,64", "--connections", "1,3"]
RIVALS = {"perf_counter", "perf_lookup", "perf_push"}
FIELDS = {"case", "unit", "median", "p99", "bound", "ratio_to_bound", "rival_name", "rival", "ratio_to_rival", "verified"}


class Smoke(JobTest):
    def results(self, program, options, ranks, *more):
        file = self.directory / f"{program}.json"
        job = self.run_to_end([BIN / program, *options, *more, "--json", file], ranks)
        report = json.loads(file.read_text())
        self.assertTrue(report["results"], job.stdout)
        for result in report["results"]:
            self.assertLessEqual(FIELDS, result.keys())
            self.assertTrue(result["verified"], result)
            self.assertGreaterEqual(result["median"], 0, result)
        for name in ("cpu", "cores", "kernel", "host", "ranks", "roles", "ucx", "mpi", "compiler", "commit", "settings"):
            self.assertIn(name, report["context"])
        self.assert_two_columns(job.stdout, len(report["results"]))
        return report["results"]

    @staticmethod
    def counted(results):
        """Returns the number of results, without those that need an optional library."""
        return sum("flat map" not in result["case"] for result in results)

    def assert_two_columns(self, text, cases):
        rows = [line for line in text.splitlines() if not line.startswith("#")]
        self.assertEqual(len(rows), cases, text)
        for row in rows:
            self.assertRegex(row, r"^\d+ +[0-9.]+ ")

    def test_alone(self):
        for program, (options, cases) in PROGRAMS.items():
            with self.subTest(program):
                found = self.results(program, options, 0)
                self.assertEqual(self.counted(found), cases or 2)

    def test_three_ranks(self):
        for program, (options, cases) in PROGRAMS.items():
            with self.subTest(program):
                found = self.results(program, options, 3)
                self.assertEqual(self.counted(found), cases or 4)
                if program in RIVALS:
                    timed = [result for result in found if result["rival"] is not None]
                    self.assertGreaterEqual(len(timed), 2, found)

    def test_only_the_chosen_cases_run(self):
        for program, only, cases in (("perf_dense", "dense push", 3), ("perf_schedule", "1 KiB", 1), ("perf_counter", "latency", 1)):
            with self.subTest(program):
                csv_file = self.directory / f"{program}.csv"
                found = self.results(program, [*PROGRAMS[program][0], "--only", only, "--csv", csv_file], 0)
                self.assertEqual(len(found), cases)
                self.assertTrue(all(only in result["case"] for result in found))
                with csv_file.open(newline="") as lines:
                    rows = list(csv.DictReader(lines))
                self.assertEqual([(row["case"], float(row["median"])) for row in rows], [(r["case"], r["median"]) for r in found])
        for arguments, code in ((["--only", "no such case", *TINY], 1), (["--message-size", "4K:nonsense"], 2)):
            job = self.start([BIN / "perf_counter", *arguments])
            self.assertEqual(self.exit_code(job), code, job.stderr)

    def test_two_workers_and_two_ps(self):
        for program in ("perf_lookup", "perf_push", "perf_dense"):
            with self.subTest(program):
                self.results(program, PROGRAMS[program][0], 5, "--capstan-ps=2")

    def test_gpu(self):
        job = self.run_to_end([BIN / "perf_gpu", "0.002"], 0, env={"CAPSTAN_GPU_STAND_INS": "1"})
        self.assertGreaterEqual(job.stdout.count("verified"), 5 + 4 * 4 + 2 * 3 + 2 * 3, job.stdout)
        self.assertNotIn("WRONG", job.stdout)

    def check_simulation(self, report, ps):
        """Fits the simulation to the paced steps of a report."""
        constants = self.directory / "constants.json"
        job = self.run_to_end([BIN / "perf_simulate", "--fit-ranks", 3 + ps, "--out", constants, report], 0)
        self.assertRegex(job.stdout, rf"(?m)^ +{3 + ps} +1000 fit  \| +\d+ +\d+ +[+-]\d+% ")
        self.assertGreater(json.loads(constants.read_text())["apply"], 0)

    def test_simulation_names_a_bad_report(self):
        case = " compute=1000us batch=64 ps=1 workers=2"
        valid = {"case": f"paced steps{case}", "median": 900}
        push = {"case": f"paced steps, push and flush{case}", "median": 50, "p99": 90}
        duration = {"case": f"paced steps, duration{case}", "median": 1100, "p99": 1200}
        file = self.directory / "paced.json"
        for context, results, expected in (
            ({"cores": 2}, [{**valid, "median": None}, push, duration], "median of \"paced steps compute"),
            ({"cores": 2}, [valid, {**push, "p99": "a"}, duration], "p99 of \"paced steps, push and flush"),
            ({"cores": 2}, [valid, push], "found no duration"),
            ({}, [valid, push, duration], "cores of the context"),
            ({"cores": 2}, [], "it has no paced steps"),
        ):
            with self.subTest(expected):
                file.write_text(json.dumps({"context": context, "results": results}))
                job = self.start([BIN / "perf_simulate", "--fit-ranks", 0, file], 0)
                self.assertEqual(self.exit_code(job), 1, job.stderr)
                self.assertIn(f"{file}: ", job.stderr)
                self.assertIn(expected, job.stderr)
        file.write_text(json.dumps({"context": {"cores": 2}, "results": [valid, push, duration]}))
        self.run_to_end([BIN / "perf_simulate", "--fit-ranks", 0, file])

    def test_scale(self):
        alone = self.results("perf_scale", SCALE, 0)
        self.assertEqual(len(alone), 2 * 2 + 7 * 2 + 1)
        heaps = []
        for flags, shards in (("--capstan-ps=1", 1), ("--capstan-ps=2", 2)):
            ring = ["--capstan-push-ring-bytes=64KiB", "--capstan-heap-slab-bytes=1MiB"]
            found = self.results("perf_scale", TINY, 3 + shards, flags, *ring)
            heaps += [(r["median"], r["bound"]) for r in found if r["case"].startswith("heap of ps")]
            self.assertEqual(len(found), 2 + shards + 6 + 5)
            self.check_simulation(self.directory / "perf_scale.json", shards)
        # A slab of 1 MiB holds a table of 1,024 rows of 64 floats and two rings.
        self.assertEqual(heaps, [(1, 1), (1, 1), (1, 1)])

    @unittest.skipUnless(BIN and (BIN / "sums_until_death").exists(), "sums_until_death is not built")
    def test_rank_costs(self):
        file = self.directory / "costs.json"
        script = pathlib.Path(__file__).resolve().parents[2] / "perf/rank_costs.py"
        self.run_to_end([sys.executable, "-B", script, "--bin", BIN, "--mpiexec", MPIEXEC, "--ranks", "4,6", "--json", file])
        rows = {row["figure"]: row for row in json.loads(file.read_text())["results"]}
        self.assertEqual(rows["agent: threads"]["medians"], [1, 1])
        # A ps has a connection to each worker, so two more workers are two more files.
        self.assertAlmostEqual(rows["ps: files"]["slope"], 1)
        self.assertEqual(len({figure.partition(": ")[2] for figure in rows if figure.startswith("worker: ")}), 6)

    def test_bounds_from_a_file(self):
        file = self.directory / "bounds.json"
        curve = {"by": "a test", "values": {"4096": 1000, "65536": 2000}}
        file.write_text(json.dumps({"dense_bandwidth": curve}))
        found = self.results("perf_dense", PROGRAMS["perf_dense"][0], 3, "--bounds", file)
        found = [r for r in found if not r["case"].startswith("returned")]  # its bound is another call
        self.assertEqual({r["bound"] for r in found if r["size"] == 4096}, {1000})
        self.assertEqual({r["bound"] for r in found if r["size"] == 65536}, {2000})
        self.assertEqual({r["bound_name"] for r in found}, {"a test"})

    def test_raw_tcp_stream(self):
        """The stream is the bound where a link would be; --bounds is then a rival, unless MPI is better."""
        file = self.directory / "bounds.json"
        curve = {"by": "a test", "values": {"4096": 1e9}}
        file.write_text(json.dumps({"dense_bandwidth": curve, "row_bandwidth": curve}))
        # Results that compare two forms of a call keep their bound.
        forms = ("returned", "hot", "bfloat16", "int8", "prefetch", "combined")
        for program, bounded in (("perf_lookup", 8 + 4), ("perf_push", 4 + 12), ("perf_dense", 6)):
            with self.subTest(program):
                options = PROGRAMS[program][0]
                found = self.results(program, options, 5, "--capstan-ps=2", "--tcp-bound", "--bounds", file)
                found = [r for r in found if not r["case"].startswith(forms)]
                self.assertEqual(len(found), bounded)
                for result in found:
                    self.assertIn("raw TCP stream", result["bound_name"])
                    self.assertGreater(result["bound"], 0)
                    if result["unit"] != "us":
                        self.assertEqual(result["rival_name"], "a test")
        job = self.start([BIN / "perf_lookup", *ROWS, "--tcp-bound"])
        self.assertEqual(self.exit_code(job), 1)
        self.assertIn("--tcp-bound", job.stderr)
        for program in ("perf_counter", "perf_optimizer"):  # with and without a cluster
            job = self.start([BIN / program, *TINY, "--tcp-bound"])
            self.assertEqual(self.exit_code(job), 1, job.stderr)
            self.assertIn(f"--tcp-bound: found {program}, expected perf_dense, perf_lookup or perf_push", job.stderr)

    def test_trace(self):
        file = self.directory / "trace.json"
        self.run_to_end([BIN / "perf_trace", *TINY, "--json", file])
        found = json.loads(file.read_text())["results"]
        self.assertEqual([(r["size"], r["verified"]) for r in found], [(0, True), (100, True)])
        for result in found:
            self.assertGreater(result["bound"], 0, result)

    def test_dispatch(self):
        file = self.directory / "dispatch.json"
        self.run_to_end([BIN / "perf_dispatch", *TINY, "--json", file])
        found = json.loads(file.read_text())["results"]
        self.assertEqual([(r["size"], r["verified"]) for r in found], 3 * [(n, True) for n in (64, 512, 2048, 8192)])

    def test_optimizers(self):
        file = self.directory / "optimizer.json"
        self.run_to_end([BIN / "perf_optimizer", *TINY, "--rows", 300, "--dim", "7,64", "--json", file])
        found = json.loads(file.read_text())["results"]
        self.assertGreaterEqual(len(found), 12)
        for result in found:
            self.assertTrue(result["verified"], result)

    def test_checkpoint(self):
        found = self.results("perf_checkpoint", ["--table-bytes", "4MiB", "--directory", self.directory], 3)
        # Restoring with a cold cache requires root.
        self.assertIn(len(found), (12, 13))

    def test_input(self):
        file = self.directory / "input.json"
        self.run_to_end([BIN / "perf_input", *TINY, "--max-bytes", "256KiB", "--json", file])
        found = json.loads(file.read_text())["results"]
        self.assertEqual(len(found), 4)
        for result in found:
            self.assertTrue(result["verified"], result)
            self.assertGreater(result["bound"], 0, result)

    def test_each_program_has_help_and_rejects_unknown_options(self):
        programs = sorted(path for path in [*BIN.glob("perf_*"), BIN / "plain_kge"] if path.name != "perf_tests")
        self.assertGreater(len(programs), 11)
        required = {"plain_kge": ["--data", self.directory], "perf_simulate": ["report.json"]}
        for program in programs:
            with self.subTest(program=program.name):
                self.assertIn("Usage: ", self.run_to_end([program, "--help"], 0).stdout)
                job = self.start([program, *required.get(program.name, []), "--no-such"], 0)
                self.assertEqual(self.exit_code(job), 2, job.stderr)
                self.assertIn("--no-such", job.stderr)


if __name__ == "__main__":
    main()
