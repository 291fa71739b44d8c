#!/usr/bin/env python3
"""perf/quality_gates.py: gates, absent data, failed trainings and exit codes, with a program that trains nothing."""
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
from job import BIN, JobTest, main

SCRIPT = ROOT / "perf" / "quality_gates.py"
# Writes the summary that `qualities.json` has for its program, or fails if it has none. Notes its arguments.
STAND_IN = """#!{python}
import json, pathlib, sys
here = pathlib.Path(__file__).parent
with (here / "calls").open("a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
queue = json.loads((here / "qualities.json").read_text())[sys.argv[2]]
done = sum(json.loads(line)[1] == sys.argv[2] for line in (here / "calls").open())
summary = queue[min(done, len(queue)) - 1]
if isinstance(summary, str):
    sys.exit(summary)
pathlib.Path(sys.argv[sys.argv.index("--summary") + 1]).write_text(json.dumps(summary))
"""


class QualityGates(JobTest):
    def setUp(self):
        super().setUp()
        self.bin = self.directory / "build" / "bin"
        self.bin.mkdir(parents=True)
        program = self.bin / "capstan"
        program.write_text(STAND_IN.format(python=sys.executable))
        program.chmod(0o755)
        self.data = self.directory / "data"
        self.data.mkdir()

    def add_data(self, name, *files):
        (self.data / name).mkdir()
        for file in files:
            (self.data / name / file).touch()

    def run_script(self, qualities, *options):
        """Returns the exit code, the results by name, and the text of both streams."""
        (self.bin / "qualities.json").write_text(json.dumps(qualities))
        report = self.directory / "report.json"
        job = subprocess.run([sys.executable, "-B", SCRIPT, "--data", self.data, "--build", self.bin.parent, "--json", report, *options],
                             capture_output=True, text=True)
        results = json.loads(report.read_text())["results"] if report.exists() else []
        return job.returncode, {result["name"]: result for result in results}, job.stdout + job.stderr

    def test_gate_is_held_or_missed(self):
        self.add_data("wn18rr", "train.txt", "valid.txt", "test.txt")
        for mrr, code, state in ((0.465, 0, "held"), (0.4649, 1, "missed")):
            with self.subTest(mrr):
                found, results, text = self.run_script({"kge": [{"test": {"mrr": mrr}}]}, "--only", "complex-wn18rr")
                self.assertEqual(found, code, text)
                self.assertEqual(list(results), ["kge-complex-wn18rr"])
                result = results["kge-complex-wn18rr"]
                self.assertEqual((result["state"], result["quality"], result["published"], result["gate"]), (state, mrr, 0.475, 0.465))
                self.assertIn(f"train kge --data {self.data / 'wn18rr'} --model complex", text)

    def test_lower_is_better_for_the_mean_of_five_folds(self):
        self.add_data("ml-100k", *(f"u{fold}.{part}" for fold in range(1, 6) for part in ("base", "test")))
        for worst, code, state in ((0.98, 0, "held"), (1.02, 1, "missed")):
            with self.subTest(worst):
                (self.bin / "calls").unlink(missing_ok=True)
                folds = [{"test": {"rmse": rmse}} for rmse in (0.92, 0.92, 0.92, 0.94, worst)]
                found, results, text = self.run_script({"mf": folds}, "--only", "mf")
                self.assertEqual(found, code, text)
                self.assertEqual(results["mf-ml-100k"]["state"], state)
                self.assertAlmostEqual(results["mf-ml-100k"]["quality"], (3.7 + worst) / 5)
        calls = [json.loads(line) for line in (self.bin / "calls").read_text().splitlines()]
        self.assertEqual([pathlib.Path(call[call.index("--test") + 1]).name for call in calls], [f"u{fold}.test" for fold in range(1, 6)])

    def test_network_must_be_as_good_as_fm(self):
        self.add_data("criteo", "train.txt", "test.txt")
        qualities = {"fm": [{"test": {"auc": 0.77}}], "dlrm": [{"test": {"auc": 0.769}}]}
        found, results, text = self.run_script(qualities, "--only", "dlrm")
        self.assertEqual({name: result["state"] for name, result in results.items()},
                         {"fm-criteo": "held", "dlrm-criteo": "missed"})
        self.assertEqual((found, results["dlrm-criteo"]["gate"]), (1, 0.77), text)
        found, results, text = self.run_script({"fm": ["fm died"], "dlrm": qualities["dlrm"]}, "--only", "dlrm")
        self.assertEqual(found, 1)
        self.assertEqual({result["state"] for result in results.values()}, {"failed"}, text)

    def test_absent_data_is_skipped_with_its_source(self):
        self.add_data("a9a", "a9a", "a9a.t")
        self.add_data("umls", "train.txt")
        summary = {"test": {"auc": 0.91}, "train": {"objective": 0.32450693}}
        found, results, text = self.run_script({"lr": [summary]})
        self.assertEqual(found, 0, text)
        self.assertEqual(results["lr-a9a"]["state"], "held")
        self.assertEqual(results["lr-optimum-a9a"]["state"], "held")
        self.assertEqual({result["state"] for name, result in results.items() if "a9a" not in name}, {"skipped"})
        for program in ("kge", "lr", "fm", "deepfm", "dlrm", "dcn", "mf", "mlp", "word2vec"):
            self.assertIn(program, {result["program"] for result in results.values()})
        self.assertRegex(text, r"kge-complex-umls +skipped: no umls/ with train.txt, valid.txt, test.txt; from ")

    def test_failed_training_and_missing_metric(self):
        self.add_data("a9a", "a9a", "a9a.t")
        found, results, text = self.run_script({"lr": ["first line\nthe cause", {"train": {}}]}, "--only", "a9a")
        self.assertEqual(found, 1)
        self.assertEqual(results["lr-a9a"]["reason"], "exit code 1: the cause", text)
        self.assertEqual(results["lr-optimum-a9a"]["reason"], "summary: no train.objective", text)

    def test_wrong_options(self):
        found, _, text = self.run_script({})
        self.assertEqual(found, 1, "no data at all")
        self.assertIn("no case ran", text)
        for options in (["--only", "no-such-case"], ["--data", self.directory / "absent"], ["--mpirun", "2"]):
            with self.subTest(options):
                found, _, text = self.run_script({}, *options)
                self.assertNotEqual(found, 0)
                self.assertIn(f"{options[0]}: found {options[1]}", text)

    def test_trains_a_graph(self):
        self.add_data("umls")
        for part, tails in (("train", range(8)), ("valid", (8,)), ("test", (9,))):
            lines = [f"{head}\tr{relation}\t{(head + relation + tail) % 12}\n" for head in range(12) for relation in range(2)
                     for tail in tails]
            (self.data / "umls" / f"{part}.txt").write_text("".join(lines))
        for launcher in ([], ["--mpirun"]):
            found, results, text = self.run_script({}, "--build", BIN.parent, "--only", "umls", *launcher)
            self.assertEqual(found, 0, text)
            self.assertEqual(results["kge-complex-umls"]["state"], "no gate")
            self.assertGreater(results["kge-complex-umls"]["quality"], 0, text)


if __name__ == "__main__":
    main()
