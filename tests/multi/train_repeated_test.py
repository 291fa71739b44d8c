#!/usr/bin/env python3
"""Two runs of `capstan train` with the same seed and the same ranks end with the same bits, if docs/training.md promises it."""
# Tests: src/train/shares.hpp
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import CAPSTAN, JobTest, main
from small_models import write_criteo, write_libsvm, write_pictures, write_ratings

# Three gradients per row: the sum of two does not depend on their order.
WORKERS, PS = 3, 2
SYNCHRONOUS = ["--mode", "synchronous"]


class TrainRepeated(JobTest):
    def trained(self, program, ranks, number, *options):
        """Returns the directory of the checkpoint of the result."""
        saved = self.directory / f"{program}{number}"
        roles = ["--ps", PS, "--workers", ranks - 1 - PS if ranks else WORKERS]
        self.run_to_end([CAPSTAN, "train", program, *options, *roles, "--checkpoint-dir", saved], ranks)
        return saved

    def same(self, one, other):
        """Returns whether all values and optimizer slots of the newest checkpoints have the same bits."""
        job = self.start([CAPSTAN, "checkpoint", "diff", one, other])
        code = self.exit_code(job)
        self.assertIn(code, (0, 1), job.stderr)
        return code == 0

    def check(self, program, *options, workers=WORKERS):
        ranks = 1 + PS + workers
        options = ["--epochs", 3, "--batch", 8, *options]
        first, second = (self.trained(program, ranks, number, *options) for number in (1, 2))
        self.assertTrue(self.same(first, second), program)
        other = self.trained(program, 0, 3, *options, "--seed", 2)
        self.assertFalse(self.same(first, other), f"{program}: the seed matters")

    def criteo(self):
        path = self.directory / "criteo"
        write_criteo(path, 200, 1, "categories")
        return ["--data", path, "--format", "criteo"]

    def test_lr(self):
        path = self.directory / "train.txt"
        write_libsvm(path, 200)
        self.check("lr", "--data", path, *SYNCHRONOUS)

    def test_lr_in_16_bits_with_admission(self):
        self.check("lr", *self.criteo(), "--dynamic", "--admit-after", 2, "--table-dtype", "bfloat16", *SYNCHRONOUS)

    def test_fm(self):
        self.check("fm", *self.criteo(), "--dynamic", "--factors", 4, "--valid-fraction", 0.2, "--patience", 1, *SYNCHRONOUS)

    def test_mf(self):
        train, test = self.directory / "train.dat", self.directory / "test.dat"
        write_ratings(train, test, users=20, items=20)
        self.check("mf", "--data", train, "--factors", 4, *SYNCHRONOUS)

    def test_mf_of_implicit_feedback(self):
        train, test = self.directory / "train.dat", self.directory / "test.dat"
        write_ratings(train, test, users=20, items=40)
        self.check("mf", "--data", train, "--factors", 4, "--implicit", *SYNCHRONOUS)

    def test_mlp(self):
        images, labels = write_pictures(self.directory)[:2]
        self.check("mlp", "--data", images, "--labels", labels, "--hidden", 16, "--replicas", 2, *SYNCHRONOUS)

    def test_deepfm(self):
        self.check("deepfm", *self.criteo(), "--hash-bits", 10, "--factors", 4, *SYNCHRONOUS)

    def test_dlrm(self):
        self.check("dlrm", *self.criteo(), "--dynamic", "--factors", 4, *SYNCHRONOUS)

    def test_dcn(self):
        self.check("dcn", *self.criteo(), "--hash-bits", 10, "--factors", 4, *SYNCHRONOUS)

    def test_one_asynchronous_worker(self):
        self.check("kge", "--data", self.graph(), "--dim", 16, "--negatives", 16, "--slice-batches", 1, workers=1)
        self.check("deepfm", *self.criteo(), "--hash-bits", 10, "--factors", 4, workers=1)


if __name__ == "__main__":
    main()
