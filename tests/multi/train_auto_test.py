#!/usr/bin/env python3
"""`capstan train kge --auto`: the choice of settings by validation triples, also after a death or a restart in the middle of it."""
# Tests: src/train/best_values.cpp
# Tests: src/train/kge/auto_search.cpp
# Tests: src/train/kge/program.cpp
import json
import os
import pathlib
import signal
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import CAPSTAN, LONG_TIMEOUTS, JobTest, main

REQUEUE = 85  # docs/errors.md
UMLS = pathlib.Path(__file__).resolve().parents[3] / "shared" / "data" / "umls"
TRIAL_EPOCHS = 8  # a third of the default of ComplEx

# From the first trial on, the search takes seconds, so that a signal reaches it even on a machine that stalls.
SLOWLY = ["--batch", 1, "--dim", 2304]


class TrainAuto(JobTest):
    environment = LONG_TIMEOUTS

    def command(self, data, *options):
        sizes = ["--dim", 32, "--negatives", 64, "--batch", 128, "--predictions", 0]
        return [CAPSTAN, "train", "kge", "--data", data, *sizes, "--summary", self.directory / "summary.json", *options]

    def check(self, summary):
        """Checks that the reported choice is the best trial, and that the result was trained by it."""
        found = summary["auto"]
        best = max(found["trials"], key=lambda trial: trial["valid_mrr"])
        self.assertGreater(best["valid_mrr"], 0)
        for name, value in found["chosen"].items():
            self.assertEqual(summary["used"][name.replace("-", "_")], value)
        chosen = [trial for trial in found["trials"] if all(trial[name] == value for name, value in found["chosen"].items())]
        self.assertEqual(len(chosen), 1, "no settings are tried twice")
        # A smaller gain is none.
        self.assertGreaterEqual(chosen[0]["valid_mrr"], best["valid_mrr"] - 0.002)
        return found

    @unittest.skipUnless(UMLS.is_dir(), f"{UMLS} does not exist")
    def test_chooses_better_settings_than_bad_ones(self):
        # The default penalty is far too strong for this graph: 0.78 of validation MRR, of 0.95.
        self.run_to_end(self.command(UMLS, "--learning-rate", 0.15), 4)
        summary = self.summary()
        found = self.check(summary)
        self.assertAlmostEqual(found["trials"][0]["n3"], 0.1, delta=1e-6)
        self.assertLess(found["chosen"]["n3"], 0.1)
        chosen = max(trial["valid_mrr"] for trial in found["trials"])
        self.assertGreater(chosen, found["trials"][0]["valid_mrr"] + 0.05)
        self.assertEqual(list(found["chosen"]), ["n3"], "the learning rate was given")
        self.assertEqual(summary["used"]["learning_rate"], 0.15)
        valid = [epoch["valid"]["mrr"] for epoch in summary["training"]["epochs"][len(found["trials"]) * TRIAL_EPOCHS :] if "valid" in epoch]
        self.assertGreater(summary["test"]["mrr"], found["trials"][0]["valid_mrr"])
        self.assertGreaterEqual(max(valid), chosen, "training continues after the search")

    def test_explicit_settings_are_kept(self):
        self.run_to_end(self.command(self.graph(), "--n3", 0.3, "--learning-rate", 0.07))
        self.assertEqual(len(self.check(self.summary())["trials"]), 1)
        self.assertAlmostEqual(self.summary()["used"]["n3"], 0.3, delta=1e-6)
        self.assertEqual(self.summary()["used"]["learning_rate"], 0.07)

    def test_no_auto_trains_by_the_defaults(self):
        data = self.graph()
        triples = len((data / "train.txt").read_text().splitlines())
        for options in (["--no-auto"], ["--epochs", 24]):
            self.run_to_end(self.command(data, *options))
            self.assertNotIn("auto", self.summary())
            self.assertEqual(self.summary()["training"]["triples"], 24 * triples)
            self.assertAlmostEqual(self.summary()["used"]["n3"], 0.1, delta=1e-6)

    def test_time_ends_the_search(self):
        job = self.run_to_end(self.command(self.graph(), "--auto-time", "1s", "--batch", 1, "--dim", 6144), 3)
        summary = self.summary()
        # The first trial takes longer than the time, and is the result.
        self.assertEqual(len(self.check(summary)["trials"]), 1)
        self.assertGreaterEqual(len(summary["training"]["epochs"]), TRIAL_EPOCHS)
        self.assertLess(len(summary["training"]["epochs"]), 2 * TRIAL_EPOCHS)
        self.assertIn("settings chosen", job.stderr)

    def stops_and_resumes(self, text, *options):
        """Stops a run at a line of its log, and resumes it until it ends."""
        saved = self.directory / f"saved-{len(text)}"
        command = self.command(self.graph(), "--checkpoint-dir", saved, "--checkpoint-every", 1, *options)
        job = self.start(command, 4)
        self.wait_for_stderr(job, text)
        job.signal_launcher(signal.SIGUSR1)
        self.assertEqual(self.exit_code(job), REQUEUE, job.stderr)
        state = json.loads((max(saved.glob("checkpoint-*")) / "manifest.json").read_text())["user_state"]["auto"]
        job = self.run_to_end([*command, "--resume"], 4)
        self.assertIn("resumed from", job.stderr)
        trials = self.check(self.summary())["trials"]
        for before, after in zip(state["results"], trials, strict=False):
            self.assertEqual((before["mrr"], before["seconds"]), (after["valid_mrr"], after["seconds"]))
        self.assertFalse((saved / "initial").exists())
        # The complete run has nothing left to train.
        tested = self.summary()["test"]
        self.run_to_end([*command, "--resume"], 4)
        self.assertEqual(self.summary()["training"]["triples"], 0)
        self.assertEqual(self.summary()["test"], tested)
        return state, trials

    def test_resumes_in_the_search(self):
        state, trials = self.stops_and_resumes(r"trial 1:", *SLOWLY)
        self.assertFalse(state["done"])
        self.assertGreater(len(trials), len(state["results"]))

    def test_resumes_in_the_training_after_it(self):
        state, trials = self.stops_and_resumes(r"settings chosen", *SLOWLY, "--patience", 50)
        self.assertTrue(state["done"])
        self.assertEqual(len(trials), len(state["results"]))

    def test_coordinator_that_dies_in_the_search(self):
        options = ["--checkpoint-dir", self.directory / "saved", "--checkpoint-every", 1, "--coordinator-wait", "60s"]
        job = self.start(self.command(self.graph(), *SLOWLY, *options), 4)
        self.wait_for_stderr(job, r"trial 1:")
        os.kill(job.ranks()[0][1], signal.SIGKILL)
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        self.assertIn("resumed from", job.stderr)
        self.assertGreater(len(self.check(self.summary())["trials"]), 3)

    def test_job_that_is_killed_before_its_first_checkpoint(self):
        command = self.command(self.graph(), "--checkpoint-dir", self.directory / "saved", "--checkpoint-every", 1000)
        job = self.start([*command, *SLOWLY], 4)
        self.wait_for_stderr(job, r"epoch 8: valid")
        for agent, child in job.ranks().values():
            for pid in (agent, child):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        self.assertNotEqual(self.exit_code(job), 0)
        job = self.run_to_end([*command, "--resume"], 4)
        self.assertIn("starting from the beginning", job.stderr)
        self.assertNotIn("cannot", job.stderr)
        self.assertGreater(len(self.check(self.summary())["trials"]), 3)

    def test_workers_and_ps_that_die_in_the_search(self):
        for rank in (1, 3):  # a worker, the ps
            job = self.start(self.command(self.graph(), *SLOWLY), 4)
            self.wait_for_stderr(job, r"trial 1:")
            os.kill(job.ranks()[rank][1], signal.SIGKILL)
            self.assertEqual(self.exit_code(job), 0, job.stderr)
            self.assertIn("was killed by signal 9", job.stderr)
            self.assertGreater(len(self.check(self.summary())["trials"]), 3)


if __name__ == "__main__":
    main()
