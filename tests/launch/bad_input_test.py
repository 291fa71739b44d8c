#!/usr/bin/env python3
"""Invalid input to `capstan train kge`: the exit code, and a single message that names the cause.

Each case runs as one process; a few also run under mpirun, where every rank must exit and only one may report.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import JobTest, main, train

USAGE, ENVIRONMENT, DAMAGED = 2, 3, 5  # docs/errors.md


class BadInput(JobTest):
    def setUp(self):
        super().setUp()
        self.data = self.graph()
        self.checkpoints = self.directory / "checkpoints"

    def refused(self, code, *texts, command, ranks=(0,), env=None):
        for count in ranks:
            with self.subTest(ranks=count):
                job = self.start(command, count, env=env)
                self.assertEqual(self.exit_code(job), code, job.stderr)
                self.assertEqual(job.stdout, "")
                for text in texts:
                    self.assertIn(text, job.stderr)
                self.assertEqual(job.stderr.count(texts[0]), 1, job.stderr)
                self.assertEqual(job.stderr.count("hint: "), 1, job.stderr)
                self.assertNotIn("is dead", job.stderr)
                self.assertNotIn("epoch ", job.stderr.replace("after epoch", ""), "found before training")

    def change_line(self, file, line, text):
        path = self.data / file
        lines = path.read_text().splitlines(keepends=True)
        lines[line - 1] = text
        path.write_text("".join(lines))

    def save(self, *options):
        """Trains briefly to create a checkpoint; returns its directory."""
        self.run_to_end(train(self.data, "--checkpoint-dir", self.checkpoints, *options, epochs=5))
        (directory,) = self.checkpoints.glob("checkpoint-*")
        return directory

    def resume(self, *options):
        return train(self.data, "--checkpoint-dir", self.checkpoints, "--resume", *options, epochs=10)

    def test_missing_gpu(self):
        # CUDA_VISIBLE_DEVICES hides existing GPUs.
        self.refused(USAGE, "no GPU: ", "worker 0", "--device cpu", command=train(self.data, "--device", "cuda"), ranks=(0, 3),
                     env={"CUDA_VISIBLE_DEVICES": ""})

    # The data

    def test_malformed_line(self):
        self.change_line("train.txt", 12, "hour01 after hour02\n")
        self.refused(USAGE, "train.txt:12: expected head<TAB>relation<TAB>tail, found 1 field",
                     command=train(self.data), ranks=(0, 3))

    def test_other_malformed_lines(self):
        for file, line, text, message in (
            ("valid.txt", 3, "a\tb\tc\td\n", "valid.txt:3: expected head<TAB>relation<TAB>tail, found 4 fields"),
            ("test.txt", 1, "\tafter\thour02\n", "test.txt:1: the head is empty"),
            ("train.txt", 2, "hour01\tafter\0\thour02\n", "train.txt:2: found a NUL byte"),
        ):
            self.data = self.graph()
            self.change_line(file, line, text)
            self.refused(USAGE, message, command=train(self.data))

    def test_missing_file(self):
        (self.data / "valid.txt").unlink()
        self.refused(USAGE, str(self.data / "valid.txt"), command=train(self.data))

    def test_missing_directory(self):
        self.refused(USAGE, f"{self.directory}/nowhere, expected", "train.txt", command=train(self.directory / "nowhere"))

    def test_empty_file(self):
        for file in ("train.txt", "test.txt"):
            self.data = self.graph()
            (self.data / file).write_text("")
            self.refused(USAGE, f"{self.data / file} is empty", command=train(self.data))

    def test_entity_seen_only_in_test(self):
        self.change_line("test.txt", 2, "hour01\tafter\tnoon\n")
        job = self.run_to_end(train(self.data))
        self.assertIn("note: 1 held-out triples have one of 1 entities", job.stderr)
        self.assertIn('test.txt:2: entity "noon"', job.stderr)
        self.refused(USAGE, "1 held-out triples", 'test.txt:2: entity "noon"', "--unseen keep",
                     command=train(self.data, "--unseen", "error"), ranks=(0, 3))

    # Options and settings

    def test_sizes_below_one(self):
        for option in ("--dim", "--negatives", "--batch", "--epochs", "--slice-batches", "--checkpoint-every"):
            for value in (0, -3):
                self.refused(USAGE, f"flag {option}: ", "at least 1", f'"{value}"', command=train(self.data, option, value))
        for option in ("--ps", "--workers"):
            self.refused(USAGE, f"flag {option}: ", "at least 0", command=train(self.data, option, -1))
        self.refused(USAGE, "flag --learning-rate: ", "above 0", command=train(self.data, "--learning-rate", 0))

    def test_odd_dimension_for_complex(self):
        self.refused(USAGE, "--dim 33", "even", command=train(self.data, "--model", "complex", "--dim", 33))

    def test_16_bit_tables_on_a_gpu(self):
        self.refused(USAGE, "--table-dtype float16: ", "--device cuda",
                     command=train(self.data, "--table-dtype", "float16", "--device", "cuda"))

    def test_int8_tables(self):
        self.refused(USAGE, "--table-dtype int8: ", "--dim 2", "at least 3",
                     command=train(self.data, "--table-dtype", "int8", "--dim", 2))
        self.refused(USAGE, "--table-dtype int8: ", "--device cuda", "cpu",
                     command=train(self.data, "--table-dtype", "int8", "--device", "cuda"))

    def test_unknown_option(self):
        self.refused(USAGE, "--epoch: there is no such option", "did you mean --epochs?",
                     command=train(self.data, "--epoch", 3))

    def test_unknown_choice(self):
        self.refused(USAGE, "flag --model: ", "transe", '"tucker"', command=train(self.data, "--model", "tucker"))

    def test_unknown_variable(self):
        self.refused(USAGE, "variable CAPSTAN_EPOCH: ", "CAPSTAN_EPOCHS", command=train(self.data), env={"CAPSTAN_EPOCH": "3"})

    def test_unknown_setting_in_a_file(self):
        config = self.directory / "run.toml"
        config.write_text("[kge]\nepoch = 3\n")
        self.refused(USAGE, f"{config}:2", "epochs", command=train(self.data, "--config", config))

    def test_two_ranks(self):
        self.refused(USAGE, "two ranks are too few", "mpirun -np 4", command=train(self.data), ranks=(2,))

    def test_accepts_more_ps_than_rows(self):
        # One relation has two rows, its reciprocal included.
        data = self.graph(relations=["same_hour"])
        for ranks, workers in ((0, 1), (5, 1)):
            command = train(data, "--ps", 3, "--workers", workers, "--summary", self.directory / "summary.json")
            self.run_to_end(command, ranks)
            self.assertEqual(self.summary()["data"]["relations"], 1)
            self.assertEqual(self.summary()["cluster"]["ps"], 3)

    # Checkpoints

    def test_resume_without_checkpoint_directory(self):
        self.refused(USAGE, "--checkpoint-dir is not set", command=train(self.data, "--resume"))

    def test_resume_with_another_model(self):
        directory = self.save("--model", "complex")
        self.refused(USAGE, f"{directory} was saved with --model complex, this run has distmult",
                     command=self.resume("--model", "distmult"), ranks=(0, 3))

    def test_resume_with_another_dimension(self):
        directory = self.save()
        self.refused(USAGE, f"{directory} was saved with --dim 32, this run has 48", command=self.resume("--dim", 48))

    def test_resume_with_another_optimizer(self):
        directory = self.save()
        self.refused(USAGE, f"checkpoint {directory} does not match", "adagrad", "adam",
                     command=self.resume("--optimizer", "adam"))

    def test_resume_with_other_data(self):
        directory = self.save()
        self.data = self.graph(relations=["after", "hour_of"])
        self.refused(USAGE, str(directory), "relations of 4, this run has 2", command=self.resume())

    def test_rejects_directory_with_checkpoints_of_an_earlier_run(self):
        self.save()
        self.refused(USAGE, f"{self.checkpoints} holds checkpoints of an earlier run", "--resume",
                     command=train(self.data, "--checkpoint-dir", self.checkpoints))

    def test_truncated_checkpoint(self):
        part = next(self.save().glob("part-*.h5"))
        part.write_bytes(part.read_bytes()[:-100])
        self.refused(DAMAGED, f"{part} has", command=self.resume(), ranks=(0, 3))

    def test_foreign_hdf5_file_in_a_checkpoint(self):
        directory = self.save()
        part = next(directory.glob("part-*.h5"))
        another = next(path for path in directory.glob("*.h5") if path != part).read_bytes()
        size = part.stat().st_size
        part.write_bytes(another[:size].ljust(size, b"\0"))
        self.refused(DAMAGED, f"{part} is ", "HDF5 metadata", command=self.resume())

    def test_part_that_is_not_hdf5(self):
        part = next(self.save().glob("part-*.h5"))
        part.write_bytes(b"x" * part.stat().st_size)
        self.refused(DAMAGED, f"{part} is not an HDF5 file", command=self.resume())

    def test_missing_part(self):
        part = next(self.save().glob("part-*.h5"))
        part.unlink()
        self.refused(DAMAGED, f"{part} is missing", command=self.resume())

    def test_skips_damaged_newest_checkpoint(self):
        self.run_to_end(train(self.data, "--checkpoint-dir", self.checkpoints, "--checkpoint-every", 2, epochs=4))
        older, newest = sorted(self.checkpoints.glob("checkpoint-*"))
        part = next(newest.glob("part-*.h5"))
        part.write_bytes(part.read_bytes()[:-100])
        job = self.run_to_end(self.resume())
        self.assertIn(f"{newest.name}: {part} has", job.stderr)
        self.assertIn(f"resumed from {older} after epoch 2", job.stderr)

    def test_foreign_directory_with_checkpoint_name(self):
        theirs = self.checkpoints / "checkpoint-00000007"
        theirs.mkdir(parents=True)
        (theirs / "model.h5").write_text("foreign")
        self.refused(DAMAGED, str(theirs), command=self.resume())
        self.assertEqual((theirs / "model.h5").read_text(), "foreign")

    def test_keeps_foreign_files_in_the_checkpoint_directory(self):
        (self.checkpoints / "notes").mkdir(parents=True)
        (self.checkpoints / "notes" / "readme.txt").write_text("mine")
        (self.checkpoints / "data.h5").write_text("mine too")
        self.save()
        self.assertEqual((self.checkpoints / "notes" / "readme.txt").read_text(), "mine")
        self.assertEqual((self.checkpoints / "data.h5").read_text(), "mine too")

    def test_unwritable_checkpoint_directory(self):
        # Not even root can create a directory below a file.
        (self.directory / "file").write_text("")
        target = self.directory / "file" / "checkpoints"
        self.refused(ENVIRONMENT, f"cannot write checkpoints to {target}", "--checkpoint-dir",
                     command=train(self.data, "--checkpoint-dir", target), ranks=(0, 3))

    def test_unwritable_summary(self):
        target = self.directory / "nowhere" / "summary.json"
        self.refused(ENVIRONMENT, f"cannot write {target}", command=train(self.data, "--summary", target), ranks=(0, 3))


if __name__ == "__main__":
    main()
