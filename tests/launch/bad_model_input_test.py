#!/usr/bin/env python3
"""Invalid input to `capstan train lr`, `fm`, `mf` and `mlp`: the exit code, and a single message that names the cause."""
import gzip
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import CAPSTAN, JobTest, main
from small_models import write_idx, write_libsvm, write_pictures

USAGE, ENVIRONMENT = 2, 3  # docs/errors.md


class BadModelInput(JobTest):
    def setUp(self):
        super().setUp()
        self.data = self.directory / "train.txt"
        write_libsvm(self.data, 20)

    def refused(self, *texts, command, ranks=(0,), code=USAGE):
        for count in ranks:
            with self.subTest(command=command, ranks=count):
                job = self.start([CAPSTAN, "train", *command], count)
                self.assertEqual(self.exit_code(job), code, job.stderr)
                self.assertEqual(job.stdout, "")
                for text in texts:
                    self.assertIn(text, job.stderr)
                self.assertEqual(job.stderr.count(texts[0]), 1, job.stderr)
                self.assertEqual(job.stderr.count("hint: "), 1, job.stderr)
                self.assertNotIn("epoch ", job.stderr, "found before training")

    def write(self, name, text):
        path = self.directory / name
        path.write_text(text)
        return path

    def test_missing_files(self):
        missing = self.directory / "missing"
        self.refused(str(missing), command=["lr", "--data", missing], ranks=(0, 4))
        self.refused(str(missing), command=["fm", "--data", self.data, "--test", missing])
        self.refused("--data is not set", command=["lr"])
        self.refused("--labels is not set", command=["mlp", "--data", self.data])
        self.refused("--test-labels is not set",
                     command=["mlp", "--data", self.data, "--labels", self.data, "--test", self.data])

    def test_malformed_lines(self):
        for text, message in (("1 1:1\n2 1:1\n", ':2: expected 0 or 1, or -1 or +1, as the label, found "2"'),
                              ("1 1:1\n\n1 one:1\n", ':3: expected id:value, found "one:1"'),
                              ("1 1:nan\n", ':1: expected a finite value, found "1:nan"'),
                              ("1 -1:3\n", ":1: the id is -1; ids begin at 0"),
                              ("", " has no examples")):
            path = self.write("wrong.txt", text)
            self.refused(f"{path}{message}", command=["lr", "--data", self.data, path] if text else ["lr", "--data", path])

    def test_malformed_ratings(self):
        for text, message in (("1 2 3\n4 5\n", ":2: expected user, item, rating"),
                              ("1::2::x::0\n", ':1: expected a finite number as the rating, found "x"'),
                              ("user,item,rating\n", " has no ratings")):
            path = self.write("ratings", text)
            self.refused(f"{path}{message}", command=["mf", "--data", path], ranks=(0, 4))
        good = self.write("good", "1 2 3\n")
        self.refused(f"{path} has no ratings", command=["mf", "--data", good, "--test", path])
        self.refused(f"{good}: all held-out pairs are training pairs too",
                     command=["mf", "--data", good, "--test", good, "--implicit"])
        self.refused("--table-dtype int8: found --factors 1", command=["mf", "--data", good, "--table-dtype", "int8",
                                                                       "--factors", 1])
        self.refused("--device cuda", command=["mf", "--data", good, "--device", "cuda"])

    def test_wrong_format(self):
        self.refused(f"{self.data}:1: expected 40 ", "--format criteo",
                     command=["lr", "--format", "criteo", "--data", self.data])
        day = self.write("day", "\t".join(["1", *["7"] * 39]) + "\n")
        self.refused(f'{day}:1: expected id:value, found "7"', "--format libsvm", command=["fm", "--data", day])
        day = self.write("day", "\t".join(["3", *["7"] * 39]) + "\n")
        self.refused(f'{day}:1: expected 0 or 1 as the label, found "3"',
                     command=["lr", "--format", "criteo", "--data", day])
        self.refused("flag --format: ", '"tsv"', "libsvm, criteo, csv",
                     command=["lr", "--data", self.data, "--format", "tsv"])

    def test_csv(self):
        schema = self.write("schema.toml", 'label = "click"\nintegers = ["hour"]\n')
        data = self.write("data.csv", "click,hour\n1,14\n0,noon\n")
        csv = ["--format", "csv", "--data", data]
        self.refused("--schema is not set", command=["lr", *csv])
        self.refused("--schema: ", "--format csv", "libsvm", command=["lr", "--data", self.data, "--schema", schema])
        missing = self.directory / "missing.toml"
        self.refused(str(missing), command=["lr", *csv, "--schema", missing])
        self.refused(f'{data}:3: column "hour": expected an integer, found "noon"', command=["fm", *csv, "--schema", schema],
                     ranks=(0, 3))
        other = self.write("other.toml", 'label = "click"\ncategories = ["site"]\n')
        self.refused(f"{data}:1: ", '"site"', command=["lr", *csv, "--schema", other])
        wrong = self.write("wrong.toml", 'label = "click"\nints = ["hour"]\n')
        self.refused(f"{wrong}:2: unknown key ints", command=["lr", *csv, "--schema", wrong])

    def test_feature_id_out_of_range(self):
        path = self.write("wide.txt", "1 3:1\n0 8:1\n")
        self.refused(f"{path}:2: the id is 8; with 8 features the last is 7",
                     command=["lr", "--data", self.data, "--test", path, "--features", 8])

    def test_incompatible_options(self):
        files = ["--data", self.data]
        self.refused("flag --mode: ", '"sync"', "asynchronous, stale_synchronous, synchronous",
                     command=["lr", *files, "--mode", "sync"], ranks=(0, 3))
        self.refused("--staleness: ", "stale_synchronous", command=["fm", *files, "--staleness", 3])
        self.refused("--features: ", "libsvm", command=["lr", *files, "--format", "criteo", "--features", 3])
        for option in ("--features", "--hash-bits"):
            self.refused(f"{option} ", "--dynamic", command=["lr", *files, "--dynamic", option, 3])
        for option in ("--max-keys", "--admit-after"):
            self.refused(f"{option} ", "--dynamic", command=["lr", *files, option, 3])
        self.refused("--dynamic: ", "--ps-memory", command=["fm", *files, "--dynamic", "--ps-memory", "device"])
        self.refused("flag --table-dtype: ", '"int4"', "float32, float16, bfloat16, int8",
                     command=["lr", *files, "--table-dtype", "int4"])
        self.refused("--table-dtype int8: ", "rows of 1 element", "--factors 3 or more",
                     command=["lr", *files, "--table-dtype", "int8"])
        self.refused("--table-dtype int8: ", "rows of 2 elements", "--factors 3 or more",
                     command=["fm", *files, "--factors", 2, "--table-dtype", "int8"])
        self.refused("flag --table-rounding: ", '"up"', "stochastic, nearest",
                     command=["fm", *files, "--table-rounding", "up"])
        self.refused("--table-rounding: ", "--table-dtype float32",
                     command=["fm", *files, "--table-rounding", "nearest"])
        self.refused("--table-dtype bfloat16: ", "--communication-dtype bfloat16",
                     command=["lr", *files, "--table-dtype", "bfloat16", "--communication-dtype", "bfloat16"])
        self.refused("--table-dtype int8: ", "--communication-dtype bfloat16", "float32",
                     command=["fm", *files, "--table-dtype", "int8", "--communication-dtype", "bfloat16"])
        self.refused("--table-dtype bfloat16: ", "--int8-lookups",
                     command=["fm", *files, "--table-dtype", "bfloat16", "--int8-lookups"])
        self.refused("--table-dtype: there is no such option",
                     command=["mlp", *files, "--labels", self.data, "--table-dtype", "bfloat16"])
        self.refused("--int8-lookups: there is no such option",
                     command=["mlp", *files, "--labels", self.data, "--int8-lookups"])
        self.refused("`capstan train lr`", "--device cpu", command=["lr", *files, "--device", "cuda"])
        self.refused("--replicas 1", command=["mlp", *files, "--labels", self.data, "--device", "cuda",
                                                                "--replicas", 2])
        self.refused("--checkpoint-dir is not set", command=["lr", *files, "--resume"])
        self.refused("--factors: there is no such option", command=["lr", *files, "--factors", 3])
        self.refused("flag --factors: ", "at least 0", command=["fm", *files, "--factors", -1])
        for option in ("--batch", "--epochs"):
            self.refused(f"flag {option}: ", "at least 1", command=["lr", *files, option, 0])
        self.refused('--hidden "64,x"', "such as 128,64", command=["mlp", *files, "--labels", self.data, "--hidden", "64,x"])
        self.refused("`capstan train dlrm`", "--format criteo", command=["dlrm", *files, "--format", "libsvm"])
        self.refused("--no-bias: ", "deepfm", command=["deepfm", *files, "--no-bias"])
        self.refused("--factors: ", "at least 1", command=["dcn", *files, "--factors", 0])
        self.refused('--bottom "64,x"', "such as 128,64", command=["dlrm", *files, "--bottom", "64,x"])
        self.refused("flag --cross-layers: ", "at least 1", command=["dcn", *files, "--cross-layers", 0])
        self.refused("--bottom: there is no such option", command=["deepfm", *files, "--bottom", "8"])
        summary = self.directory / "nowhere" / "summary.json"
        self.refused(f"cannot write {summary}", command=["lr", *files, "--summary", summary], code=ENVIRONMENT)

    def test_images_and_labels(self):
        images, labels, test_images, test_labels = write_pictures(self.directory, train=30, test=10)
        given = ["mlp", "--data", images, "--labels", labels]
        self.refused(f"{images} has 30 images and {test_labels} has 10 labels",
                     command=["mlp", "--data", images, "--labels", test_labels])
        self.refused("--data has 2 files and --labels has 1", command=["mlp", "--data", images, images, "--labels", labels])
        self.refused(f"{images}: an item has 36 values", command=["mlp", "--data", images, "--labels", images])
        self.refused(f"{self.data}: not an IDX file", command=["mlp", "--data", self.data, "--labels", labels])
        small, more = self.directory / "small", self.directory / "more"
        write_idx(small, (10, 5, 5), [0] * 250)
        self.refused("the images of --test have 25 pixels, expected 36",
                     command=[*given, "--test", small, "--test-labels", test_labels])
        write_idx(more, (10,), [99] * 10)
        self.refused("--test-labels has the label 99, expected at most 9",
                     command=[*given, "--test", test_images, "--test-labels", more])
        cut = self.directory / "cut.gz"
        cut.write_bytes(gzip.compress(images.read_bytes())[:-40])
        self.refused(str(cut), command=["mlp", "--data", cut, "--labels", labels])


if __name__ == "__main__":
    main()
