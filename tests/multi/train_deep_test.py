#!/usr/bin/env python3
"""`capstan train deepfm`, `dlrm` and `dcn` as one process and as ranks, on interactions that `lr` cannot learn."""
# Tests: src/train/deep/closures.cpp
# Tests: src/train/deep/model.cpp
# Tests: src/train/sparse/sum_of_squares.hpp
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import CAPSTAN, JobTest, main
from small_models import write_criteo

PROGRAMS = ("deepfm", "dlrm", "dcn")
# The last layer alone cannot learn an interaction, so the model's own part must.
LINEAR = ["--hidden", "", "--factors", 4, "--learning-rate", 0.05]
# Asynchronous DLRM with a rate of 0.005 does not learn the interaction in about a third of its runs.
DEEP = ["--learning-rate", 0.02]
SIZES = ["--epochs", 10, "--batch", 20, "--l2", 0]


class TrainDeep(JobTest):
    def setUp(self):
        super().setUp()
        self.files = {}
        for pair in ("categories", "integer"):
            for kind, rows, seed in (("train", 2000, 1), ("test", 1000, 2)):
                self.files[pair, kind] = self.directory / f"{pair}_{kind}"
                write_criteo(self.files[pair, kind], rows, seed, pair)

    def trained(self, program, ranks, pair, *options):
        files = ["--data", self.files[pair, "train"], "--test", self.files[pair, "test"], "--hash-bits", 14]
        if "--dynamic" in options:
            files = files[:-2]
        if program in ("lr", "fm"):
            files += ["--format", "criteo"]
        self.run_to_end([CAPSTAN, "train", program, *files, *options, "--summary", self.directory / "summary.json"], ranks)
        return self.summary()

    def test_interactions_that_weights_cannot_learn(self):
        for pair in ("categories", "integer"):
            lr = self.trained("lr", 0, pair, *SIZES)
            self.assertLess(lr["test"]["auc"], 0.6)
            for program in PROGRAMS:
                for ranks, more in ((0, LINEAR), (4, DEEP)):
                    with self.subTest(f"{program} {pair} {ranks} ranks"):
                        summary = self.trained(program, ranks, pair, *SIZES, *more)
                        self.assertGreater(summary["test"]["auc"], 0.98)
                        self.assertLess(summary["test"]["logloss"], 0.25)
                        self.assertEqual(summary["program"], f"capstan train {program}")
                        self.assertEqual(summary["training"]["examples"], 10 * 2000)

    def test_all_modes_and_tables(self):
        for program in PROGRAMS:
            for ranks, more in ((4, ["--mode", "stale_synchronous", "--staleness", 1]),
                                (0, ["--mode", "synchronous", "--workers", 2, "--ps", 2]),
                                (4, ["--dynamic", "--ps", 1]),
                                (0, ["--table-dtype", "bfloat16", "--l2", 1e-5])):
                with self.subTest(f"{program} {more}"):
                    summary = self.trained(program, ranks, "categories", *SIZES, *LINEAR, *more)
                    self.assertGreater(summary["test"]["auc"], 0.98)

    def test_penalty_keeps_values_small(self):
        for program in PROGRAMS:
            free = self.trained(program, 0, "categories", *SIZES, *LINEAR)
            for more in ([], ["--dynamic"]):
                held = self.trained(program, 0, "categories", *SIZES, *LINEAR, "--l2", 1, *more)
                self.assertLess(free["train"]["logloss"], 0.4)
                self.assertGreater(held["train"]["logloss"], 0.68)
                self.assertGreater(held["train"]["objective"], held["train"]["logloss"])

    def test_resumed_run_equals_an_uninterrupted_run(self):
        for program in PROGRAMS:
            with self.subTest(program):
                options = [*LINEAR, "--l2", 1e-4, "--mode", "synchronous", "--batch", 64]
                uninterrupted = self.trained(program, 0, "categories", *options, "--epochs", 4)
                options += ["--checkpoint-dir", self.directory / program]
                self.trained(program, 0, "categories", *options, "--epochs", 2)
                # With one worker, a resumed run divides the data as before.
                resumed = self.trained(program, 3, "categories", *options, "--epochs", 4, "--resume")
                self.assertEqual(resumed["training"]["first_epoch"], 3)
                for name in ("objective", "logloss", "auc"):
                    self.assertAlmostEqual(resumed["train"][name], uninterrupted["train"][name], delta=1e-6)
        job = self.start([CAPSTAN, "train", "dcn", "--data", self.files["categories", "train"], "--hash-bits", 14,
                          *options, "--cross-layers", 3, "--resume"])
        self.assertEqual(self.exit_code(job), 2, job.stderr)
        self.assertIn("--cross-layers=2, this run has --factors=4 --hidden= --cross-layers=3", job.stderr)


if __name__ == "__main__":
    main()
