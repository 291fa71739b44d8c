#!/usr/bin/env python3
"""`capstan train lr`, `fm` and `mlp` as one process and as ranks, on small data with an independent solution."""
# Tests: launch/train.cpp
# Tests: src/train/best_values.cpp
# Tests: src/train/epoch.hpp
# Tests: src/train/mlp/closures.cpp
# Tests: src/train/model.hpp
# Tests: src/train/model_options.cpp
# Tests: src/train/model_program.cpp
# Tests: src/train/model_results.cpp
# Tests: src/train/optimizer_choice.cpp
# Tests: src/train/program.hpp
# Tests: src/train/programs.cpp
# Tests: src/train/run_report.hpp
# Tests: src/train/table_precision.cpp
# Tests: src/train/tasks.hpp
# Tests: src/train/training_run.cpp
# Tests: src/train/sparse/batches.hpp
# Tests: src/train/sparse/click_model.hpp
# Tests: src/train/sparse/closures.cpp
import itertools
import math
import os
import pathlib
import random
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from longer_jobs import kill_child, retry_with_longer_job
from gpu import gpu_flags
from job import CAPSTAN, JobTest, main
from small_models import newton, write_libsvm, write_pictures

A9A = pathlib.Path(__file__).resolve().parents[3] / "shared" / "data" / "a9a"
NESTEROV = ["--optimizer", "momentum", "--momentum", 0.95, "--nesterov", "--learning-rate", 0.5]
# In a step, a worker processes its complete share.
FULL = ["--mode", "synchronous", "--batch", 100_000, "--eval-every", 0]


def auc(pairs):
    """Area under the ROC curve of (score, label), from all pairs."""
    positive, negative = ([score for score, label in pairs if label == wanted] for wanted in (1, 0))
    wins = sum((p > n) + 0.5 * (p == n) for p in positive for n in negative)
    return wins / len(positive) / len(negative)


class TrainModels(JobTest):
    def trained(self, program, ranks, *options, **sizes):
        sizes = [word for name, value in sizes.items() for word in ("--" + name.replace("_", "-"), value)]
        command = [CAPSTAN, "train", program, *options, *sizes, "--summary", self.directory / "summary.json"]
        job = self.run_to_end(command, ranks)
        summary = self.summary()
        self.assertEqual(summary["program"], f"capstan train {program}")
        self.assertEqual(summary["cluster"]["embedded"], ranks < 2)
        if ranks > 2:
            self.assertEqual((summary["cluster"]["ps"], summary["cluster"]["workers"]), (1, ranks - 2))
        epochs = summary["used"]["epochs"] - summary["training"]["first_epoch"] + 1
        self.assertEqual(summary["training"]["examples"], epochs * summary["data"]["train"],
                         "every example is visited once in each epoch")
        self.assertEqual(summary["training"]["workers_lost"], 0)
        self.assertEqual(job.stdout.count("train: objective"), 1, "only rank 0 prints")
        return summary, job

    def test_synchronous_regression_reaches_the_optimum(self):
        # 301 examples cannot be divided evenly between two workers.
        path = self.directory / "train.txt"
        optimum = newton(write_libsvm(path, 301), 6, 1e-3)
        for ranks in (0, 4):
            summary, _ = self.trained("lr", ranks, "--data", path, "--no-bias", *FULL, *NESTEROV, l2=1e-3, epochs=300)
            self.assertLess(abs(summary["train"]["objective"] - optimum), 1e-7)

    def test_bias_is_not_penalized(self):
        # All examples have the same features, so the bias alone fits the share of positives, with any penalty.
        path = self.directory / "train.txt"
        path.write_text("1 1:0\n" * 30 + "0 1:0\n" * 10)
        optimum = math.log(4) - 0.75 * math.log(3)
        summary, _ = self.trained("lr", 0, "--data", path, "--workers", 2, *FULL, *NESTEROV, l2=10, epochs=200)
        self.assertAlmostEqual(summary["train"]["objective"], optimum, delta=1e-6)

    def test_all_modes_approach_the_optimum(self):
        train, test = self.directory / "train.txt", self.directory / "test.txt"
        optimum = newton(write_libsvm(train, 1000), 6, 1e-3)
        write_libsvm(test, 300, seed=2)
        for mode, ranks, *more in (("asynchronous", 4), ("stale_synchronous", 4, "--staleness", 1),
                                   ("synchronous", 0, "--workers", 2)):
            summary, job = self.trained("lr", ranks, "--data", train, "--test", test, "--no-bias", *more, mode=mode,
                                        l2=1e-3, epochs=10, batch=20, learning_rate=0.2)
            above = summary["train"]["objective"] - optimum
            self.assertGreater(above, -1e-7)
            self.assertLess(above, 0.005, mode)
            self.assertEqual(summary["test"]["examples"], 300)
            self.assertEqual(job.stderr.count("test logloss"), 10, "one line for each epoch")

    def test_metrics_do_not_depend_on_the_number_of_workers(self):
        path = self.directory / "train.txt"
        write_libsvm(path, 211)
        found = []
        for workers in (1, 2, 5):
            summary, _ = self.trained("lr", 0, "--data", path, path, "--workers", workers, *FULL, *NESTEROV, epochs=100)
            found.append(summary["train"])
        self.assertEqual(found[0]["examples"], 422)
        for other in found[1:]:
            for name in ("logloss", "auc", "accuracy", "objective"):
                self.assertAlmostEqual(found[0][name], other[name], delta=1e-5)

    def test_auc_equals_that_of_all_pairs(self):
        # One feature with a positive weight: scores have the order of the values, and ties where values are equal.
        draw = random.Random(3)
        pairs = [(draw.randint(0, 9) / 4, int(draw.random() < 0.5)) for _ in range(150)]
        pairs += [(3, 1)] * 20
        path = self.directory / "train.txt"
        path.write_text("".join(f"{label} 1:{score}\n" for score, label in pairs))
        for workers in (1, 3):
            summary, _ = self.trained("lr", 0, "--data", path, "--workers", workers, epochs=3)
            self.assertAlmostEqual(summary["train"]["auc"], auc(pairs), delta=1e-12)

    def pairs_file(self):
        """Writes examples with label 1 if both features belong to the same half, which a linear model cannot learn."""
        lines = [f"{int((a < 6) == (b < 6))} {b}:1 {a}:1\n" for a, b in itertools.product(range(12), repeat=2) if b < a]
        path = self.directory / "pairs.txt"
        path.write_text("".join(lines * 4))
        return path

    def test_factors_fit_pairs_that_weights_cannot(self):
        path = self.pairs_file()
        for ranks in (0, 4):
            sizes = {"epochs": 60, "batch": 16, "learning_rate": 0.1}
            fm, _ = self.trained("fm", ranks, "--data", path, "--factors", 4, l2=0, **sizes)
            self.assertGreater(fm["train"]["accuracy"], 0.99)
            self.assertLess(fm["train"]["logloss"], 0.1)
        lr, _ = self.trained("lr", 0, "--data", path, l2=0, **sizes)
        self.assertLess(lr["train"]["accuracy"], 0.7)

    def test_factorization_machine_without_factors_is_logistic_regression(self):
        path = self.directory / "train.txt"
        write_libsvm(path, 200)
        found = [self.trained(program, 0, "--data", path, "--workers", 2, *more, *FULL, l2=1e-3, epochs=20,
                              learning_rate=0.1)[0]
                 for program, more in (("lr", []), ("fm", ["--factors", 0]))]
        for name in ("objective", "logloss", "auc", "accuracy"):
            self.assertEqual(found[0]["train"][name], found[1]["train"][name])

    def test_criteo(self):
        # A category of one column determines the label; the same digits in another column do not.
        draw = random.Random(4)
        lines = []
        for _ in range(400):
            kind, other, count = draw.choice("0123456789"), draw.choice("0123456789"), draw.randint(-2, 99)
            label = int(kind in "13579")
            lines.append("\t".join([str(label), str(count), *[""] * 12, "a" + kind, "a" + other, *[""] * 24]) + "\n")
        path = self.directory / "day"
        path.write_text("".join(lines))
        summary, _ = self.trained("lr", 0, "--format", "criteo", "--data", path, "--hash-bits", 16, "--ps", 2,
                                  "--workers", 2, epochs=10, batch=20)
        self.assertGreater(summary["train"]["auc"], 0.99)
        self.assertEqual(summary["data"]["width"], 2**16)

    def test_csv(self):
        # The category determines the label, except where it is missing: there the integer does.
        draw = random.Random(6)
        rows = []
        for i in range(400):
            kind, count = draw.choice(["a", "b", ""]), draw.choice([3, 700])
            rows.append((i, int(kind == "a" or (kind == "" and count == 700)), kind, count))
        train, test, schema = (self.directory / name for name in ("train.csv", "test.csv", "schema.toml"))
        train.write_text("id,click,kind,count\n" + "".join(f"{i},{y},{k},{c}\n" for i, y, k, c in rows[:300]))
        test.write_text("count,kind,click\n" + "".join(f"{c},{k},{y}\n" for _, y, k, c in rows[300:]))
        schema.write_text('label = "click"\ncategories = ["kind"]\nintegers = ["count"]\n')
        files = ["--data", train, "--test", test, "--format", "csv", "--schema", schema]
        for ranks, more in ((0, ["--hash-bits", 16]), (4, ["--dynamic"])):
            summary, _ = self.trained("lr", ranks, *files, *more, epochs=20, batch=20, l2=0.001)
            self.assertGreater(summary["test"]["auc"], 0.95)
            self.assertEqual(summary["data"]["test"], 100)
        self.assertEqual(summary["data"]["width"], 4, "two categories and two buckets")

    def test_byte_order_mark_of_libsvm(self):
        path, marked = self.directory / "train.txt", self.directory / "marked.txt"
        write_libsvm(path, 50)
        marked.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
        plain, other = (self.trained("lr", 0, "--data", file, epochs=2)[0] for file in (path, marked))
        self.assertEqual(plain["train"], other["train"])

    def test_resumed_run_names_the_column_that_changed_in_the_schema(self):
        data, schema = self.directory / "train.csv", self.directory / "schema.toml"
        data.write_text("click,kind,count,other\n" + "1,a,3,x\n0,b,9,y\n" * 20)
        command = ["train", "lr", "--data", data, "--format", "csv", "--schema", schema, "--epochs", 1, "--checkpoint-dir",
                   self.directory / "saved"]

        def write(categories, integers):
            schema.write_text(f'label = "click"\ncategories = {categories}\nintegers = {integers}\n')

        write(["kind"], ["count"])
        self.run_to_end([CAPSTAN, *command])
        for categories, integers, column, saved, now in ((["kind", "other"], ["count"], "other", "none", "category"),
                                                         ([], ["count"], "kind", "category", "none"),
                                                         (["kind", "count"], [], "count", "integer", "category")):
            write(categories, integers)
            job = self.start([CAPSTAN, *command, "--resume"])
            self.assertEqual(self.exit_code(job), 2, job.stderr)
            self.assert_names(job.stderr, f'"{column}"', saved, now, "--schema")
        write(["kind"], ["count"])
        self.run_to_end([CAPSTAN, *command, "--resume"])

    def test_default_penalty_depends_on_the_number_of_examples(self):
        path = self.directory / "train.txt"
        write_libsvm(path, 300)
        lr, _ = self.trained("lr", 0, "--data", path, epochs=1)
        self.assertAlmostEqual(lr["used"]["l2"], 15 / 300)
        self.assertGreater(lr["train"]["objective"], lr["train"]["logloss"])
        fm, _ = self.trained("fm", 0, "--data", path, epochs=1)
        self.assertAlmostEqual(fm["used"]["l2"], 15 / 300)
        self.assertAlmostEqual(fm["used"]["factor_l2"], 300 / 300)
        none, _ = self.trained("fm", 0, "--data", path, l2=0, epochs=1)
        self.assertEqual(none["train"]["objective"], none["train"]["logloss"])
        wide, _ = self.trained("fm", 0, "--data", path, "--features", 100000, epochs=1)
        self.assertAlmostEqual(wide["train"]["objective"], fm["train"]["objective"], delta=0.2,
                               msg="only features of the training data have a penalty")
        strong, _ = self.trained("fm", 0, "--data", path, "--factor-l2", 2, l2=0, epochs=1)
        self.assertGreater(strong["train"]["objective"], strong["train"]["logloss"])

    def test_dynamic_tables_reach_the_optimum(self):
        path = self.directory / "train.txt"
        optimum = newton(write_libsvm(path, 301), 6, 1e-3)
        for ranks in (0, 4):
            summary, _ = self.trained("lr", ranks, "--data", path, "--dynamic", "--no-bias", *FULL, *NESTEROV, l2=1e-3,
                                      epochs=300)
            self.assertLess(abs(summary["train"]["objective"] - optimum), 1e-7)
            self.assertEqual(summary["data"]["width"], 6)

    def test_16_bit_tables_approach_the_optimum(self):
        path = self.directory / "train.txt"
        optimum = newton(write_libsvm(path, 301), 6, 1e-3)
        for dtype, *more in (("bfloat16",), ("bfloat16", "--dynamic"), ("bfloat16", "--table-rounding", "nearest"),
                             ("float16", "--dynamic")):
            summary, _ = self.trained("lr", 0, "--data", path, "--no-bias", "--table-dtype", dtype, *more, l2=1e-3,
                                      epochs=20, batch=20, learning_rate=0.2)
            above = summary["train"]["objective"] - optimum
            self.assertGreater(above, 1e-9, "the optimum has no exact value of 16 bits")
            self.assertLess(above, 0.005, (dtype, more))

    def test_16_bit_and_int8_tables_resume(self):
        path = self.pairs_file()
        for dtype, *more in (("int8",), ("int8", "--dynamic"), ("bfloat16",), ("bfloat16", "--dynamic")):
            directory = self.directory / f"saved_{dtype}{len(more)}"
            files = ["--data", path, "--factors", 4, "--l2", 0, "--table-dtype", dtype, "--checkpoint-dir", directory,
                     *more]
            sizes = {"epochs": 60, "batch": 16, "learning_rate": 0.1}
            saved, _ = self.trained("fm", 4, *files, **sizes)
            self.assertGreater(saved["train"]["accuracy"], 0.99)
            resumed, _ = self.trained("fm", 0, *files, "--resume", "--ps", 2, **sizes)
            for name in ("objective", "auc", "accuracy"):
                self.assertAlmostEqual(resumed["train"][name], saved["train"][name], delta=1e-12)
        job = self.start([CAPSTAN, "train", "fm", *files, "--resume", "--table-dtype", "float16"])
        self.assertEqual(self.exit_code(job), 2, job.stderr)
        self.assertIn("was saved with --table-dtype bfloat16, this run has float16", job.stderr)

    def test_dynamic_factors_resume_on_another_number_of_ps(self):
        path = self.pairs_file()
        files = ["--data", path, "--dynamic", "--factors", 4, "--l2", 0, "--checkpoint-dir", self.directory / "saved"]
        sizes = {"epochs": 60, "batch": 16, "learning_rate": 0.1}
        saved, _ = self.trained("fm", 0, *files, **sizes)
        self.assertGreater(saved["train"]["accuracy"], 0.99)
        resumed = self.run_to_end([CAPSTAN, "train", "fm", *files, "--resume", "--ps", 2, "--summary",
                                   self.directory / "summary.json", "--epochs", 60], 4)
        self.assertIn("resumed from", resumed.stderr)
        for name in ("objective", "auc", "accuracy"):
            self.assertAlmostEqual(self.summary()["train"][name], saved["train"][name], delta=1e-12)

    def test_admission_drops_categories_that_occur_once(self):
        # One column determines the label most of the time; another one is different in each example.
        draw = random.Random(5)
        files = []
        for name, count in (("day_0", 4000), ("day_1", 1000)):
            lines = []
            for i in range(count):
                kind = draw.choice("0123456789")
                label = int((kind in "13579") != (draw.random() < 0.1))
                lines.append("\t".join([str(label), *[""] * 13, "a" + kind, f"{name[-1]}{i:x}", *[""] * 24]) + "\n")
            files.append(self.directory / name)
            files[-1].write_text("".join(lines))
        found = {}
        for name, more in (("hashed", ["--hash-bits", 20]), ("dynamic", ["--dynamic"]),
                           ("admitted", ["--dynamic", "--admit-after", 2])):
            found[name], _ = self.trained("lr", 4, "--format", "criteo", "--data", files[0], "--test", files[1], *more,
                                          epochs=1, batch=20)
        missing = 13  # a missing integer is a feature
        self.assertEqual(found["dynamic"]["data"]["width"], 4010 + missing)
        self.assertLess(found["admitted"]["data"]["width"], 10 + missing + 0.05 * 4000,
                        "the filter admits few keys too early")
        self.assertGreater(found["hashed"]["test"]["auc"], 0.85)
        self.assertAlmostEqual(found["dynamic"]["test"]["auc"], found["hashed"]["test"]["auc"], delta=0.02)
        self.assertGreater(found["admitted"]["test"]["auc"], found["dynamic"]["test"]["auc"] - 0.02)

    def test_network(self):
        files = write_pictures(self.directory)
        names = [word for name, file in zip(("data", "labels", "test", "test-labels"), files)
                 for word in ("--" + name, file)]
        for ranks, more in ((0, ["--replicas", 2]), (4, []),
                            (0, ["--mode", "synchronous", "--workers", 2])):
            summary, _ = self.trained("mlp", ranks, *names, *more, "--hidden", "32,16", epochs=30, batch=10)
            self.assertGreater(summary["test"]["accuracy"], 0.95)
            self.assertNotIn("auc", summary["test"])
            self.assertEqual(summary["data"]["classes"], 10)
        self.assertLess(summary["training"]["epochs"][-1]["loss"], summary["training"]["epochs"][0]["loss"])

    def test_replicas_compute_the_same_as_one(self):
        files = write_pictures(self.directory)
        found = []
        for replicas in (1, 3):
            summary, _ = self.trained("mlp", 0, "--data", files[0], "--labels", files[1], "--replicas", replicas,
                                      "--l2", 0.01, "--optimizer", "sgd", epochs=3, batch=50)
            found.append([epoch["loss"] for epoch in summary["training"]["epochs"]])
        for mine, theirs in zip(*found, strict=True):
            self.assertAlmostEqual(mine, theirs, delta=1e-4)

    def test_gpu_computes_the_same_as_the_host(self):
        files = write_pictures(self.directory)
        found, evaluated = [], []
        for ranks, more in ((0, []), (3, ["--device", "cuda", *gpu_flags()])):
            summary, _ = self.trained("mlp", ranks, "--data", files[0], "--labels", files[1], "--workers", 1, *more,
                                         "--l2", 0.01, "--optimizer", "sgd", "--hidden", "32,16", epochs=3, batch=50)
            found.append([epoch["loss"] for epoch in summary["training"]["epochs"]])
            evaluated.append([epoch["train"] for epoch in summary["training"]["epochs"]])
        for mine, theirs in zip(*found, strict=True):
            self.assertAlmostEqual(mine, theirs, delta=1e-4)
        self.assertEqual(len(evaluated[0]), 3)
        for mine, theirs in zip(*evaluated, strict=True):
            self.assertAlmostEqual(mine["accuracy"], theirs["accuracy"], delta=1e-2)
            self.assertAlmostEqual(mine["logloss"], theirs["logloss"], delta=1e-4)

    def test_resumed_run_equals_an_uninterrupted_run(self):
        path = self.directory / "train.txt"
        write_libsvm(path, 200)
        options = ["--data", path, "--factors", 2, "--l2", 0.001, "--mode", "synchronous", "--batch", 7]
        uninterrupted, _ = self.trained("fm", 0, *options, epochs=6)
        options += ["--checkpoint-dir", self.directory / "checkpoints"]
        self.trained("fm", 0, *options, epochs=3)
        # With one worker, a resumed run divides the data as before.
        resumed, job = self.trained("fm", 3, *options, "--resume", epochs=6)
        self.assertEqual(resumed["training"]["first_epoch"], 4)
        self.assertIn("after epoch 3", job.stderr)
        self.assertAlmostEqual(resumed["train"]["objective"], uninterrupted["train"]["objective"], delta=1e-6)
        job = self.start([CAPSTAN, "train", "lr", *options[:2], *options[-2:], "--resume"])
        self.assertEqual(self.exit_code(job), 2, job.stderr)
        self.assertIn("was not saved by `capstan train lr`", job.stderr)

    def test_checkpoint_and_summary_hold_the_settings_that_were_used(self):
        path = self.directory / "train.txt"
        write_libsvm(path, 200)
        images, labels = write_pictures(self.directory)[:2]
        for program, data, used in (("lr", ["--data", path], {"batch": 256, "learning-rate": 0.05, "optimizer": "adagrad"}),
                                    ("fm", ["--data", path], {"batch": 256, "learning-rate": 0.05, "optimizer": "adagrad"}),
                                    ("mlp", ["--data", images, "--labels", labels],
                                     {"batch": 64, "learning-rate": 0.001, "optimizer": "adam"})):
            with self.subTest(program):
                saved = self.directory / program
                used = {**used, "epochs": 10, "eval-every": 1}
                self.trained(program, 0, *data, "--checkpoint-dir", saved, epochs=10)
                self.expect_settings(saved, used)
                # A resumed run has the settings of its command.
                more = ["--checkpoint-dir", saved, "--resume", "--batch", 50]
                resumed, _ = self.trained(program, 0, *data, *more, epochs=11, learning_rate=0.02)
                self.assertEqual(resumed["training"]["first_epoch"], 11)
                self.expect_settings(saved, {**used, "batch": 50, "epochs": 11, "learning-rate": 0.02})

    def write_noisy(self, name, rows, seed):
        """Writes examples with six features that matter, and one of 400 that does not, which a regression memorizes."""
        path = self.directory / name
        write_libsvm(path, rows, seed)
        draw = random.Random(seed)
        path.write_text("".join(f"{line} {draw.randint(7, 406)}:1\n" for line in path.read_text().splitlines()))
        return path

    def stops_early(self, ranks, *options):
        self.run_to_end([CAPSTAN, "train", *options, "--learning-rate", 0.5, "--batch", 20, *([] if "--valid" in options else ["--valid-fraction", 0.2]),
                         "--summary", self.directory / "summary.json"], ranks)
        summary = self.summary()
        losses = [epoch["valid"]["logloss"] for epoch in summary["training"]["epochs"]]
        self.assertLess(len(losses), 50, "the validation loss grows while features are memorized")
        best = summary["training"]["best_epoch"]
        self.assertEqual(best, len(losses) - summary["used"]["patience"])
        self.assertLess(losses[best - 1], losses[-1])
        self.assertAlmostEqual(summary["valid"]["logloss"], losses[best - 1], delta=1e-12, msg="the values of the best epoch")
        return summary

    def test_training_stops_early_with_the_best_values(self):
        train, test, valid = (self.write_noisy(name, rows, seed) for name, rows, seed in
                              (("train", 1000, 1), ("test", 500, 2), ("valid", 200, 3)))
        files = ["--data", train, "--test", test]
        temporary = self.directory / "temporary"
        temporary.mkdir()
        killed = subprocess.Popen(["true"])
        killed.wait()
        (temporary / f"capstan-best-{killed.pid}-left").mkdir()
        os.environ["TMPDIR"] = str(temporary)
        self.addCleanup(os.environ.pop, "TMPDIR")
        for ranks, *more in ((0, "lr", "--patience", 2), (4, "lr", "--dynamic"), (4, "fm", "--factors", 2, "--mode", "synchronous")):
            summary = self.stops_early(ranks, *more, *files)
            self.assertEqual(summary["data"]["train"] + summary["data"]["valid"], 1000)
            self.assertAlmostEqual(summary["data"]["valid"], 200, delta=40)
            self.assertEqual(summary["test"]["examples"], 500)
        summary = self.stops_early(0, "lr", *files, "--valid", valid)
        self.assertEqual((summary["data"]["train"], summary["data"]["valid"]), (1000, 200))
        self.assertEqual(list(temporary.iterdir()), [])

    def test_resumed_run_keeps_the_best_values(self):
        train = self.write_noisy("train", 1000, 1)
        options = ["lr", "--data", train, "--checkpoint-dir", self.directory / "saved", "--checkpoint-every", 1]
        complete = self.stops_early(0, *options)
        again = self.run_to_end([CAPSTAN, "train", *options, "--resume", "--batch", 20, "--valid-fraction", 0.2, "--summary", self.directory / "summary.json"])
        self.assertIn("resumed from", again.stderr)
        self.assertEqual(self.summary()["training"]["examples"], 0)
        self.assertEqual(self.summary()["valid"], complete["valid"])
        self.assertEqual(self.summary()["training"]["best_epoch"], complete["training"]["best_epoch"])
        self.assertIn("the run is complete", again.stderr)
        # More patience continues the training.
        job = self.run_to_end([CAPSTAN, "train", *options, "--resume", "--batch", 20, "--valid-fraction", 0.2, "--patience", 6,
                               "--summary", self.directory / "summary.json"])
        self.assertEqual(len(self.summary()["training"]["epochs"]), 3)
        self.assertNotIn("the run is complete", job.stderr)
        # The checkpoint has counts of features of other examples than a run without a split trains on.
        job = self.start([CAPSTAN, "train", *options, "--resume", "--batch", 20, "--epochs", 50])
        self.assertEqual(self.exit_code(job), 2, job.stderr)
        self.assertIn("a number of training examples of", job.stderr)

    def test_early_stopping_needs_validation_examples(self):
        path = self.directory / "train.txt"
        path.write_text("1 1:1\n0 2:1\n")
        job = self.start([CAPSTAN, "train", "lr", "--data", path, "--valid-fraction", "1e-9"])
        self.assertEqual(self.exit_code(job), 2, job.stderr)
        self.assertIn("no validation examples among 2 training examples", job.stderr)
        job = self.start([CAPSTAN, "train", "lr", "--data", path, "--valid-fraction", 1])
        self.assertEqual(self.exit_code(job), 2, job.stderr)
        self.assertIn("--valid-fraction 1: all 2 examples validate", job.stderr)

    def test_share_of_a_dead_worker_runs_on_another(self):
        path = self.directory / "train.txt"
        optimum = newton(write_libsvm(path, 999), 6, 1e-3)
        for mode, epochs in (("asynchronous", 4000), ("synchronous", 1000)):
            retry_with_longer_job(epochs, lambda epochs: self.loses_a_worker(path, optimum, mode, epochs))

    def loses_a_worker(self, path, optimum, mode, epochs):
        job = self.start([CAPSTAN, "train", "lr", "--data", path, "--no-bias", "--l2", 1e-3, "--mode", mode, "--batch",
                          20, "--epochs", epochs, "--eval-every", 50, "--summary", self.directory / "summary.json", "--max-restarts", 0], 5)
        self.assertIsNotNone(job.wait_for_text("epoch 50:"), job.stderr)
        kill_child(job, 2)
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        summary = self.summary()
        self.assertEqual(summary["train"]["examples"], 999)
        self.assertLess(summary["train"]["objective"] - optimum, 0.005)
        if mode == "asynchronous":
            self.assertEqual(summary["training"]["examples"], epochs * 999, "a lost share runs again")
        lost = summary["training"]["workers_lost"]
        self.assertLessEqual(lost, 1)
        return lost == 1

    @unittest.skipUnless(A9A.is_dir(), f"{A9A} does not exist")
    def test_a9a(self):
        summary, _ = self.trained("lr", 4, "--data", A9A / "a9a", "--test", A9A / "a9a.t", epochs=10)
        self.assertGreater(summary["test"]["accuracy"], 0.845)
        self.assertGreater(summary["test"]["auc"], 0.9)


if __name__ == "__main__":
    main()
