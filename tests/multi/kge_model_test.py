#!/usr/bin/env python3
"""`capstan evaluate kge`, `predict kge` and `similar` on checkpoints that `capstan train kge` saved."""
# Tests: launch/kge/command_line.cpp
# Tests: launch/kge/request.hpp
# Tests: launch/kge/run.cpp
# Tests: src/train/kge/saved_model.cpp
# Tests: src/train/kge/variables.hpp
# Tests: src/train/named_rows.cpp
# Tests: src/train/saved_names.cpp
# Tests: src/train/saved_program.cpp
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import small_graph
from job import CAPSTAN, LEARNED_MRR, JobTest, main, train

USAGE = 2


class KgeModel(JobTest):
    def save(self, *options, ranks=0, epochs=300):
        """Trains and saves; returns the summary."""
        self.checkpoints = self.directory / "saved"
        command = train(self.graph(), "--checkpoint-dir", self.checkpoints, "--summary", self.directory / "summary.json",
                        "--checkpoint-every", epochs, *options, epochs=epochs)
        self.run_to_end(command, ranks)
        return self.summary()

    def json_of(self, *words):
        return json.loads(self.run_to_end([CAPSTAN, *words, "--checkpoint", self.checkpoints, "--json"]).stdout)

    def refused(self, *words, names):
        job = self.start([CAPSTAN, *words, "--checkpoint", self.checkpoints])
        self.assertEqual(self.exit_code(job), USAGE, job.stderr)
        self.assertEqual(job.stdout, "")
        self.assert_names(job.stderr, *names)

    def expect_the_metrics_of_training(self, *options, ranks=0, epochs=300):
        trained = self.save(*options, ranks=ranks, epochs=epochs)
        evaluated = self.json_of("evaluate", "kge", "--data", self.directory / "graph")
        self.assertEqual(evaluated["step"], epochs)
        self.assertEqual(evaluated["test"]["queries"], trained["test"]["queries"])
        for name in ("mrr", "hits1", "hits3", "hits10"):
            self.assertAlmostEqual(evaluated["test"][name], trained["test"][name], places=9, msg=name)
        return evaluated["test"]["mrr"]

    def test_evaluation_has_the_metrics_of_training(self):
        self.assertGreater(self.expect_the_metrics_of_training(), LEARNED_MRR)

    def test_every_model_and_rows_of_16_bits(self):
        for i, options in enumerate((["--model", "transe"], ["--model", "rescal"], ["--model", "rotate"],
                                     ["--table-dtype", "bfloat16"], ["--table-dtype", "float16"])):
            self.directory = self.directory / str(i)
            self.directory.mkdir()
            self.expect_the_metrics_of_training(*options, epochs=5)

    def test_checkpoint_of_two_ps(self):
        self.expect_the_metrics_of_training("--ps", 2, ranks=5, epochs=20)

    def test_predicts_tails_by_name(self):
        self.save()
        facts = [triple for triple in small_graph.triples() if triple[1] == "hour_of"][:6]
        right = 0
        for head, relation, tail in facts:
            predicted = self.json_of("predict", "kge", head, relation, "--count", 3)
            self.assertEqual(len(predicted), 3)
            scores = [one["score"] for one in predicted]
            self.assertEqual(scores, sorted(scores, reverse=True))
            right += predicted[0]["entity"] == tail
        self.assertGreaterEqual(right, 4)
        text = self.run_to_end([CAPSTAN, "predict", "kge", "hour03", "hour_of", "--checkpoint", self.checkpoints]).stdout
        self.assertEqual(len(text.splitlines()), 11)  # a header and ten entities

    def test_similar_entities(self):
        self.save()
        found = self.json_of("similar", "hour20", "--count", 100)
        self.assertEqual(len(found), small_graph.ENTITIES - 1)
        self.assertNotIn("hour20", [one["entity"] for one in found])
        cosines = [one["cosine"] for one in found]
        self.assertEqual(cosines, sorted(cosines, reverse=True))
        self.assertTrue(all(-1.0001 <= cosine <= 1.0001 for cosine in cosines))
        # The cosine is symmetric.
        other = {one["entity"]: one["cosine"] for one in self.json_of("similar", found[0]["entity"], "--count", 100)}
        self.assertAlmostEqual(other["hour20"], cosines[0], places=6)

    def test_unknown_names(self):
        self.save(epochs=1)
        self.refused("predict", "kge", "our03", "after", names=["our03", "hour03"])
        self.refused("predict", "kge", "hour03", "aftur", names=["aftur", "after"])
        self.refused("similar", "horu17", names=["horu17", "hour17"])
        self.refused("similar", "no such thing at all", names=["60"])

    def test_data_with_other_entities(self):
        self.save(epochs=1)
        test = self.directory / "graph" / "test.txt"
        test.write_text(test.read_text() + "hour00\tafter\tmidnight\n")
        self.refused("evaluate", "kge", "--data", test.parent, names=["midnight"])

    def test_checkpoint_that_is_none_or_of_another_program(self):
        self.checkpoints = self.directory / "none"
        job = self.start([CAPSTAN, "similar", "a", "--checkpoint", self.checkpoints])
        self.assertEqual(self.exit_code(job), USAGE, job.stderr)
        self.assert_names(job.stderr, "none")
        data = self.directory / "a.svm"
        data.write_text("1 1:1\n-1 2:1\n")
        self.checkpoints = self.directory / "lr"
        self.run_to_end([CAPSTAN, "train", "lr", "--data", data, "--epochs", 1, "--checkpoint-dir", self.checkpoints])
        self.refused("similar", "a", names=["capstan train kge", "capstan train word2vec"])

    def test_resume_with_renamed_entities(self):
        self.save(epochs=1)
        for name in ("train", "valid", "test"):
            path = self.directory / "graph" / f"{name}.txt"
            path.write_text(path.read_text().replace("hour17", "teatime"))
        job = self.start(train(self.directory / "graph", "--checkpoint-dir", self.checkpoints, "--resume", epochs=2))
        self.assertEqual(self.exit_code(job), USAGE, job.stderr)
        self.assert_names(job.stderr, "hour17", "teatime", "--data")


if __name__ == "__main__":
    main()
