#!/usr/bin/env python3
"""`capstan train mf` as one process and as ranks, on generated ratings whose best predictions are known."""
# Tests: src/train/mf/closures.cpp
# Tests: src/train/mf/model.cpp
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import CAPSTAN, JobTest, main
from small_models import write_ratings


class TrainFactorization(JobTest):
    def setUp(self):
        super().setUp()
        self.train, self.test = self.directory / "train.dat", self.directory / "test.dat"

    def trained(self, ranks, *options, **sizes):
        sizes = [word for name, value in sizes.items() for word in ("--" + name.replace("_", "-"), value)]
        job = self.run_to_end([CAPSTAN, "train", "mf", "--data", self.train, *options, *sizes, "--summary",
                               self.directory / "summary.json"], ranks)
        self.assertEqual(job.stdout.count("train: objective"), 1, "only rank 0 prints")
        return self.summary(), job

    def test_ratings_of_low_rank(self):
        deviation = write_ratings(self.train, self.test)
        self.assertGreater(deviation, 0.8)
        for ranks, *more in ((0,), (4,), (4, "--mode", "synchronous"), (0, "--workers", 3, "--ps", 2),
                             (4, "--table-dtype", "bfloat16")):
            summary, _ = self.trained(ranks, "--test", self.test, *more, factors=4, l2=0.002, epochs=80, batch=32)
            self.assertLess(summary["test"]["rmse"], 0.2, more)
            self.assertGreater(summary["test"]["rmse"], 0.04, "less than the noise")
            self.assertLess(summary["train"]["rmse"], summary["test"]["rmse"])
        biases, _ = self.trained(0, "--test", self.test, factors=0, l2=0.002, epochs=80, batch=32)
        self.assertGreater(biases["test"]["rmse"], 0.5, "biases alone cannot fit the products")
        self.assertLess(biases["test"]["rmse"], deviation)

    def test_metrics_do_not_depend_on_the_number_of_workers(self):
        write_ratings(self.train, self.test)
        found = []
        for workers in (1, 3):
            summary, _ = self.trained(0, "--test", self.test, "--mode", "synchronous", "--workers", workers, factors=3,
                                      epochs=5, batch=100_000)
            found.append(summary)
        for part, name in (("test", "rmse"), ("train", "rmse"), ("train", "objective")):
            self.assertAlmostEqual(found[0][part][name], found[1][part][name], delta=1e-4)
        self.assertEqual(found[0]["test"]["ratings"], len(self.test.read_text().splitlines()))

    def test_penalty_is_in_the_objective(self):
        write_ratings(self.train, self.test)
        for l2 in (0, 0.1):
            summary, _ = self.trained(0, l2=l2, epochs=3)
            penalty = summary["train"]["objective"] - summary["train"]["rmse"] ** 2
            if l2 == 0:
                self.assertAlmostEqual(penalty, 0, delta=1e-9)
            else:
                self.assertGreater(penalty, 0.001)

    def test_unknown_user_and_item_have_the_mean_rating(self):
        self.train.write_text("a 1 2\nb 2 4\na 2 3\n")
        self.test.write_text("c 3 4.5\n" "d 4 1.5\n")
        summary, _ = self.trained(0, "--test", self.test, epochs=15)
        self.assertAlmostEqual(summary["test"]["rmse"], 1.5, delta=1e-9)

    def test_implicit_feedback_ranks_the_block_of_the_user_first(self):
        # Three blocks of users and items. Each user lacks a third of the items of the block: 10, 30 others are outside.
        train, test = [], []
        for user in range(45):
            for item in range(90):
                if user % 3 == item % 3:
                    (test if (user // 3 + item // 3) % 3 == 0 else train).append(f"{user}\t{item}\n")
        self.train.write_text("".join(train))
        # Pairs that the training data has too do not count, nor does a user who wants nothing else.
        self.test.write_text("".join(test + train[:5]))
        for ranks in (0, 4):
            summary, job = self.trained(ranks, "--implicit", "--test", self.test, factors=8, epochs=40, batch=32)
            self.assertEqual(summary["test"]["users"], 45, "one for each test user")
            self.assertGreater(summary["test"]["recall@20"], 0.99)
            self.assertGreater(summary["test"]["ndcg@20"], 0.99)
            self.assertIn("NDCG@20", job.stderr)
        unordered, _ = self.trained(0, "--implicit", "--test", self.test, epochs=1, learning_rate=1e-6)
        self.assertLess(unordered["test"]["recall@20"], 0.6)

    def test_training_stops_early_by_held_out_ratings(self):
        write_ratings(self.train, self.test)
        for metric, sign, *more in (("rmse", 1), ("ndcg@20", -1, "--implicit")):
            summary, _ = self.trained(0, "--test", self.test, *more, "--valid-fraction", 0.2, "--l2", 0, factors=16, batch=32,
                                      learning_rate=0.2)
            found = [sign * epoch["valid"][metric] for epoch in summary["training"]["epochs"]]
            self.assertLess(len(found), 100, "without a penalty, the factors fit the noise")
            best = summary["training"]["best_epoch"] or len(found)
            self.assertEqual(best, len(found) - summary["used"]["patience"])
            self.assertLess(found[best - 1], found[-1])
            self.assertAlmostEqual(sign * summary["valid"][metric], found[best - 1], delta=1e-12)

    def test_resumed_run_equals_an_uninterrupted_run(self):
        write_ratings(self.train, self.test)
        options = ["--test", self.test, "--mode", "synchronous"]
        for more in ([], ["--implicit"]):
            saved = ["--checkpoint-dir", self.directory / f"checkpoints{len(more)}"]
            uninterrupted, _ = self.trained(0, *options, *more, factors=4, epochs=4)
            self.trained(0, *options, *more, *saved, factors=4, epochs=2)
            resumed, _ = self.trained(3, *options, *more, *saved, "--resume", factors=4, epochs=4)
            self.assertEqual(resumed["training"]["first_epoch"], 3)
            self.assertAlmostEqual(resumed["train"]["objective"], uninterrupted["train"]["objective"], delta=1e-5)
        job = self.start([CAPSTAN, "train", "mf", "--data", self.train, *saved, "--resume", "--factors", 4, "--epochs", 4])
        self.assertEqual(self.exit_code(job), 2, job.stderr)
        self.assertIn("was saved with --implicit true, this run has false", job.stderr)


if __name__ == "__main__":
    main()
