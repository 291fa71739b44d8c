#!/usr/bin/env python3
"""`capstan train kge` as one process and as ranks, with several numbers of ps and workers.

The graph is created here, so the test always runs; UMLS is used, too, if its files exist.
"""
# Tests: src/train/assigned_gpu.cpp
# Tests: src/train/kge/device_trainer.cpp
# Tests: launch/training_output.cpp
# Tests: src/train/kge/known_graph.cpp
# Tests: src/train/kge/program_options.cpp
# Tests: src/train/kge/slice.cpp
# Tests: src/train/kge/table.hpp
# Tests: src/train/kge/trainer.cpp
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from gpu import gpu_flags
from job import CAPSTAN, LEARNED_MRR, JobTest, main, train

# The MRR varies, because workers that share cores compute gradients from stale rows. On two cores, 100 epochs of six ranks
# reach an MRR of 0.65 to 0.97, and 300 epochs at least 0.97.
EPOCHS = 300
UMLS = pathlib.Path(__file__).resolve().parents[3] / "shared" / "data" / "umls"


class Train(JobTest):
    def trained(self, ranks, *options, ps, workers):
        data = self.graph()
        options = [*options, "--summary", self.directory / "summary.json"]
        job = self.run_to_end(train(data, *options, epochs=EPOCHS), ranks)
        summary = self.summary()
        cluster = summary["cluster"]
        self.assertEqual((cluster["ps"], cluster["workers"], cluster["embedded"]), (ps, workers, ranks < 2))
        self.assertEqual(job.stdout.count("filtered, heads and tails: MRR"), 1, "only rank 0 prints")
        triples = len((data / "train.txt").read_text().splitlines())
        self.assertEqual(summary["training"]["triples"], EPOCHS * triples, "every triple is visited once in each epoch")
        self.assertEqual(summary["training"]["workers_lost"], 0)
        self.assertEqual(summary["test"]["queries"], 2 * len((data / "test.txt").read_text().splitlines()))
        self.assertGreater(summary["test"]["mrr"], LEARNED_MRR)
        self.assertIn(f"random guessing: {summary['random_mrr']:.2g}\n", job.stdout)
        relations = summary["predicted_relations"]
        self.assertTrue(relations)
        self.assertLessEqual({shown["relation"] for shown in summary["predictions"]}, {one["relation"] for one in relations})
        self.assertIn(f"drawn by --seed from the {len(relations)} relation", job.stdout)
        if ranks > 1:
            # The first line of progress comes after a time, and names whatever epoch runs then.
            started = re.split(r"^epoch \d+/", job.stderr, maxsplit=1, flags=re.MULTILINE)[0].splitlines()
            self.assertLessEqual(len([line for line in started if "[warning]" not in line]), 5, started)
            self.assertIn(f"1 coordinator, {ps} ps, {workers} worker{'s' * (workers > 1)} on 1 host", job.stderr)
            self.assertEqual(job.stderr.count("capstan: to watch the job"), 1)
            self.assertEqual(job.stderr.count("capstan: to stop it") + job.stderr.count("capstan: to save and stop it"), 1)
        # Guessing among one right and 32 wrong answers has a loss of log(33) = 3.5.
        self.assertLess(summary["training"]["epochs"][-1]["loss"], 2)
        return summary

    def test_verbose_output_lists_where_each_rank_runs(self):
        job = self.run_to_end(train(self.graph(), "-v", epochs=1), 3)
        self.assertRegex(job.stderr, r"worker 0 \(rank \d+ on \S+\) is process \d+: .*, UCX by (\S+ )*tcp\b")

    def test_one_process(self):
        self.trained(0, ps=1, workers=1)

    def test_one_rank(self):
        self.trained(1, ps=1, workers=1)

    def test_one_process_with_two_ps_and_two_workers(self):
        self.trained(0, "--ps", 2, "--workers", 2, ps=2, workers=2)

    def test_rows_of_relations_of_another_width_than_those_of_entities(self):
        for model in ("rescal", "rotate"):
            self.trained(3, "--model", model, ps=1, workers=1)

    def test_three_ranks_train_the_same_model_as_one_process(self):
        # With one worker and one batch for each closure, every batch sees all earlier pushes in both cases.
        alone = self.trained(0, "--slice-batches", 1, ps=1, workers=1)
        ranks = self.trained(3, "--slice-batches", 1, ps=1, workers=1)
        losses = [[epoch["loss"] for epoch in summary["training"]["epochs"]] for summary in (alone, ranks)]
        for mine, theirs in zip(*losses, strict=True):
            self.assertAlmostEqual(mine, theirs, delta=1e-6)
        self.assertAlmostEqual(alone["test"]["mrr"], ranks["test"]["mrr"], delta=1e-6)

    def test_gpu_trains_the_same_model_as_the_host(self):
        data, summary = self.graph(), self.directory / "summary.json"
        gpu = ["--device", "cuda", *gpu_flags()]

        def trained(ranks, *options):
            command = train(data, "--workers", 1, "--slice-batches", 3, "--summary", summary, *options, epochs=40)
            self.run_to_end(command, ranks)
            return self.summary()

        for model in ("complex", "transe"):
            host, device = (trained(0, "--model", model, *options) for options in ([], [*gpu, "--no-look-ahead"]))
            for mine, theirs in zip(*([epoch["loss"] for epoch in run["training"]["epochs"]] for run in (host, device))):
                self.assertAlmostEqual(mine, theirs, delta=1e-3)
            self.assertAlmostEqual(host["test"]["mrr"], device["test"]["mrr"], delta=1e-3)
        # With look-ahead, rows lack the last gradients, which gives another model of the same quality.
        ahead = trained(3, *gpu)
        self.assertEqual(ahead["training"]["triples"], 40 * len((data / "train.txt").read_text().splitlines()))
        self.assertGreater(ahead["test"]["mrr"], LEARNED_MRR)

    def test_evaluation_on_the_gpu_has_the_metrics_of_the_host(self):
        data, summary = self.graph(), self.directory / "summary.json"
        gpu = ["--device", "cuda", *gpu_flags()]
        for model, ranks in (("complex", 4), ("distmult", 0), ("transe", 0)):
            saved = ["--checkpoint-dir", self.directory / model, "--workers", 2 if ranks else 1]
            command = train(data, "--model", model, *saved, "--summary", summary, epochs=40)
            self.run_to_end(command, ranks)
            host = self.summary()["test"]
            # Only the evaluation differs; the values are the same.
            job = self.run_to_end([*command, "--resume", *gpu, "--log-level", "debug"], ranks)
            device = self.summary()["test"]
            self.assertEqual(self.summary()["training"]["triples"], 0)
            self.assertEqual(host["queries"], device["queries"])
            for name in ("mrr", "hits10"):
                self.assertAlmostEqual(host[name], device[name], delta=1e-3)
            self.assertRegex(job.stderr, r"GPU 0 ranks \d+ entities of 32 floats")
        # Training changes the values between two evaluations.
        found = []
        for options in ([], [*gpu, "--no-look-ahead"]):
            command = train(data, "--workers", 1, "--slice-batches", 3, "--eval-every", 10, "--summary", summary, *options, epochs=40)
            self.run_to_end(command, 0)
            found.append([epoch["valid"]["mrr"] for epoch in self.summary()["training"]["epochs"] if "valid" in epoch])
        self.assertEqual(len(found[0]), 4)
        for mine, theirs in zip(*found, strict=True):
            self.assertAlmostEqual(mine, theirs, delta=1e-2)

    def test_ps_with_shards_in_gpu_memory_train_the_same_model(self):
        losses = {}
        data = self.graph()
        for memory, ranks in (("host", 4), ("device", 4), ("device", 0)):
            # With one worker and one batch for each closure, the order of pushes is the same.
            options = ["--ps", 2, "--workers", 1, "--slice-batches", 1, "--ps-memory", memory, *gpu_flags()]
            self.run_to_end(train(data, *options, "--summary", self.directory / "summary.json", epochs=20), ranks)
            losses[memory, ranks] = [epoch["loss"] for epoch in self.summary()["training"]["epochs"]]
        # The worker's GPU reads the memory of the ps's GPU, in another process and in the same process.
        for ranks in (3, 0):
            options = ["--ps", 1, "--workers", 1, "--slice-batches", 1, "--ps-memory", "device", "--device", "cuda", *gpu_flags()]
            self.run_to_end(train(data, *options, "--summary", self.directory / "summary.json", epochs=20), ranks)
            losses["gpu", ranks] = [epoch["loss"] for epoch in self.summary()["training"]["epochs"]]
        for where in (("device", 4), ("device", 0), ("gpu", 3), ("gpu", 0)):
            for mine, theirs in zip(losses[where], losses["host", 4], strict=True):
                self.assertAlmostEqual(mine, theirs, delta=1e-3 if where[0] == "gpu" else 1e-4)

    def test_four_ranks(self):
        self.trained(4, ps=1, workers=2)

    def test_four_ranks_with_two_ps(self):
        self.trained(4, "--ps", 2, ps=2, workers=1)

    def test_six_ranks(self):
        self.trained(6, "--ps", 2, "--workers", 3, ps=2, workers=3)

    def test_six_ranks_with_more_ps_than_workers(self):
        self.trained(6, "--roles", "coordinator:1,ps:4,worker:*", ps=4, workers=1)

    def test_more_ps_than_rows(self):
        # Two relations have four rows, including reciprocals; the fifth ps holds none.
        data = self.graph(relations=["same_hour", "hour_of"])
        summary = self.directory / "summary.json"
        self.run_to_end(train(data, "--ps", 5, "--workers", 1, "--summary", summary, epochs=EPOCHS), 7)
        self.assertEqual(self.summary()["data"]["relations"], 2)
        self.assertGreater(self.summary()["test"]["mrr"], 0.4)

    def test_bfloat16_messages_train_almost_the_same_model(self):
        options = ["--slice-batches", 1, "--window", "am", "--communication-dtype"]
        exact, rounded = (self.trained(3, *options, dtype, ps=1, workers=1) for dtype in ("float32", "bfloat16"))
        losses = [[epoch["loss"] for epoch in summary["training"]["epochs"]] for summary in (exact, rounded)]
        self.assertNotEqual(*losses)
        for mine, theirs in zip(*losses, strict=True):
            self.assertAlmostEqual(mine, theirs, delta=0.1 * mine)

    def test_16_bit_and_int8_tables_learn(self):
        for dtype, *rounding in (("bfloat16",), ("bfloat16", "--table-rounding", "nearest"), ("float16",), ("int8",)):
            self.trained(0, "--table-dtype", dtype, *rounding, ps=1, workers=1)

    def test_16_bit_tables_resume(self):
        saved = ["--table-dtype", "bfloat16", "--checkpoint-dir", self.directory / "saved"]
        trained = self.trained(4, *saved, ps=1, workers=2)
        # The resumed run has nothing left to train, so it evaluates the restored rows.
        command = train(self.graph(), *saved, "--resume", "--ps", 2, "--summary", self.directory / "summary.json", epochs=EPOCHS)
        self.run_to_end(command, 4)
        self.assertEqual(self.summary()["training"]["triples"], 0)
        self.assertEqual(self.summary()["test"], trained["test"])
        command[command.index("bfloat16")] = "float32"
        job = self.start(command)
        self.assertEqual(self.exit_code(job), 2, job.stderr)
        self.assertIn("was saved with --table-dtype bfloat16, this run has float32", job.stderr)

    def test_checkpoint_and_summary_hold_the_settings_that_were_used(self):
        path, summary = self.directory / "saved", self.directory / "summary.json"
        command = [CAPSTAN, "train", "kge", "--data", self.graph(), "--model", "distmult", "--no-auto", "--checkpoint-dir", path, "--summary", summary]
        self.run_to_end(command)
        used = {"dim": 512, "negatives": 1024, "batch": 512, "epochs": 12, "learning-rate": 0.15, "n3": 0.06, "optimizer": "adagrad"}
        self.expect_settings(path, used)
        self.assertEqual(self.summary()["used"]["learning_rate"], 0.15)
        # A resumed run has the settings of its command.
        self.run_to_end([*command, "--resume", "--epochs", 13, "--learning-rate", 0.05])
        self.expect_settings(path, {**used, "epochs": 13, "learning-rate": 0.05})
        self.assertEqual(self.summary()["training"]["first_epoch"], 13)
        job = self.start([*command, "--resume", "--dim", 64])
        self.assertEqual(self.exit_code(job), 2, job.stderr)
        self.assertIn("was saved with --dim 512, this run has 64", job.stderr)

    def test_int8_lookups_train_almost_the_same_model(self):
        options = ["--slice-batches", 1, "--window", "am"]
        exact, rounded = (self.trained(3, *options, *more, ps=1, workers=1) for more in ([], ["--int8-lookups"]))
        losses = [[epoch["loss"] for epoch in summary["training"]["epochs"]] for summary in (exact, rounded)]
        self.assertNotEqual(*losses)
        for mine, theirs in zip(*losses, strict=True):
            self.assertAlmostEqual(mine, theirs, delta=0.1 * mine)

    def test_patience_keeps_the_best_values(self):
        data, summary = self.graph(), self.directory / "summary.json"
        options = ["--patience", 2, "--eval-every", 5, "--checkpoint-dir", self.directory / "saved", "--summary", summary]
        self.run_to_end(train(data, *options, epochs=57), 4)
        epochs = self.summary()["training"]["epochs"]
        found = {epoch["epoch"]: epoch["valid"]["mrr"] for epoch in epochs if "valid" in epoch}
        best = self.summary()["training"]["best_epoch"] or epochs[-1]["epoch"]
        self.assertIn(epochs[-1]["epoch"], found, "the last epoch is evaluated")
        self.assertGreater(found[best], 0.999 * max(found.values()))
        tested = self.summary()["test"]
        job = self.run_to_end(train(data, *options, "--resume", epochs=57), 0)
        self.assertIn("the run is complete", job.stderr)
        self.assertEqual(self.summary()["training"]["triples"], 0)
        self.assertEqual(self.summary()["test"], tested)

    def test_without_agents(self):
        self.trained(4, "--supervise", "off", ps=1, workers=2)

    def test_windows_by_remote_memory_access(self):
        self.trained(4, "--window", "rma", ps=1, workers=2)

    def test_windows_by_remote_memory_access_without_agents(self):
        self.trained(6, "--window", "rma", "--supervise", "off", "--ps", 2, ps=2, workers=3)

    @unittest.skipUnless(UMLS.is_dir(), f"{UMLS} does not exist")
    def test_umls(self):
        summary = self.directory / "summary.json"
        # Eight runs reached 0.77 to 0.79; after 20 epochs, 0.69 to 0.76.
        command = train(UMLS, "--ps", 2, "--summary", summary, dim=64, negatives=128, batch=256, epochs=60)
        self.run_to_end(command, 5)
        self.assertGreater(self.summary()["test"]["mrr"], 0.7)


if __name__ == "__main__":
    main()
