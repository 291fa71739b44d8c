#!/usr/bin/env python3
"""`capstan train word2vec` as one process and as ranks, on a text whose words have topics."""
# Tests: src/train/word2vec/closures.cpp
# Tests: src/train/word2vec/program.cpp
# Tests: src/train/word2vec/program_options.cpp
# Tests: src/train/word2vec/results.cpp
# Tests: src/train/word2vec/saved_words.cpp
# Tests: src/train/word2vec/vectors_file.cpp
import gzip
import json
import pathlib
import random
import re
import signal
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import CAPSTAN, LONG_TIMEOUTS, JobTest, Roles, kill_and_await_death, main

TOPICS, WORDS_OF_TOPIC = 6, 12
USAGE, OUTSIDE, DAMAGED, REQUEUE = 2, 3, 5, 85  # docs/errors.md
LONG = 300  # epochs that take some seconds
VOCABULARY = "words in 1 files"  # is logged before the training
# Similar words have their topic's contexts. Above this is a clear majority; random neighbors reach 1 / TOPICS.
LEARNED = 0.9


def word(topic, number):
    return f"wörd{topic}x{number}"


def write_topics(path, sentences=1500, seed=1):
    """Writes sentences of 10 words of one topic each, and returns the number of each word."""
    draw = random.Random(seed)
    counts = {}
    with open(path, "w", encoding="utf-8") as file:
        for _ in range(sentences):
            topic = draw.randrange(TOPICS)
            words = [word(topic, min(int(draw.expovariate(0.3)), WORDS_OF_TOPIC - 1)) for _ in range(10)]
            for one in words:
                counts[one] = counts.get(one, 0) + 1
            file.write(" ".join(words) + "\n")
        file.write("once")  # a rare word, without an end of line
    return counts


def read_text(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    rows, dim = map(int, lines[0].split())
    vectors = {fields[0]: [float(x) for x in fields[1:]] for fields in map(str.split, lines[1:])}
    assert len(vectors) == rows and all(len(row) == dim for row in vectors.values())
    return vectors


def read_binary(path):
    data = path.read_bytes()
    end = data.index(b"\n") + 1
    rows, dim = map(int, data[:end].split())
    vectors = {}
    for _ in range(rows):
        space = data.index(b" ", end)
        name, end = data[end:space].decode("utf-8"), space + 1 + 4 * dim
        vectors[name] = struct.unpack(f"{dim}f", data[space + 1:end])
        assert data[end:end + 1] == b"\n"
        end += 1
    assert end == len(data)
    return vectors


def cosine(a, b):
    return sum(x * y for x, y in zip(a, b)) / (sum(x * x for x in a) * sum(x * x for x in b)) ** 0.5


def share_of_own_topic(vectors):
    """The share of the 3 nearest words of each word that have its topic."""
    right = total = 0
    for name, row in vectors.items():
        others = sorted((other for other in vectors if other != name), key=lambda other: -cosine(row, vectors[other]))
        right += sum(other.split("x")[0] == name.split("x")[0] for other in others[:3])
        total += 3
    return right / total


class TrainWord2vec(JobTest):
    environment = LONG_TIMEOUTS

    def setUp(self):
        super().setUp()
        self.text, self.vectors = self.directory / "text.txt", self.directory / "vectors"
        self.counts = write_topics(self.text)

    def command(self, *options, data=None, **sizes):
        sizes = {"dim": 16, "subsample": 0, "learning_rate": 0.05, "batch": 1000, **sizes}
        words = [text for name, value in sizes.items() for text in ("--" + name.replace("_", "-"), value)]
        return [CAPSTAN, "train", "word2vec", "--data", *(data or [self.text]), *words, "--output", self.vectors, "--summary",
                self.directory / "summary.json", *options]

    def trained(self, ranks, *options, **sizes):
        self.run_to_end(self.command(*options, **sizes), ranks)
        return self.summary()

    def refused(self, *names, data=None, options=(), code=USAGE, ranks=0, **sizes):
        job = self.start(self.command(*options, data=data, **sizes), ranks)
        self.assertEqual(self.exit_code(job), code, job.stderr)
        self.assert_names(job.stderr, *names)

    def test_words_of_a_topic_are_similar(self):
        pairs = self.directory / "pairs.tsv"
        pairs.write_text("".join(f"{word(0, i)}\t{word(topic, j)}\t{9 if topic == 0 else 1}\n"
                                 for i in range(4) for topic in (0, 3) for j in range(4, 8)) + "once\tmissing\t5\n")
        for ranks, *more in ((0,), (3,), (5, "--ps", 2)):
            summary = self.trained(ranks, *more, "--similarity", pairs)
            vectors = read_text(self.vectors)
            self.assertGreater(share_of_own_topic(vectors), LEARNED, more)
            self.assertEqual((summary["similarity"]["pairs"], summary["similarity"]["total"]), (32, 33))
            self.assertGreater(summary["similarity"]["spearman"], 0.8, "0.87 is the most that two scores allow")
            self.assertEqual(summary["data"]["trained_words"], sum(self.counts.values()))
            self.assertEqual(summary["data"]["words"], sum(self.counts.values()) + 1)
            self.assertEqual(summary["training"]["words"], 5 * sum(self.counts.values()), "each block once an epoch")
            losses = [epoch["loss"] for epoch in summary["training"]["epochs"]]
            self.assertEqual(len(losses), 5)
            self.assertLess(losses[-1], losses[0])
        # The next run must not learn: its rate is too small.
        self.trained(0, learning_rate=1e-6)
        self.assertLess(share_of_own_topic(read_text(self.vectors)), 0.4)

    def test_both_formats_have_the_same_vectors_in_the_order_of_the_counts(self):
        self.trained(0, epochs=1)
        text = read_text(self.vectors)
        self.trained(0, "--output-format", "binary", epochs=1)
        binary = read_binary(self.vectors)
        self.assertEqual(list(text), list(binary))
        for name, row in text.items():
            for x, y in zip(row, binary[name]):
                self.assertAlmostEqual(x, y, delta=5.1e-7)
        expected = sorted(((-count, name.encode()) for name, count in self.counts.items() if count >= 5))
        self.assertEqual([name.encode() for name in text], [name for _, name in expected])

    def test_one_worker_repeats_its_results(self):
        found = []
        for seed in (1, 1, 2):
            self.trained(3, "--seed", seed, epochs=2)
            found.append(self.vectors.read_text())
        self.assertEqual(found[0], found[1])
        self.assertNotEqual(found[0], found[2])

    def test_directory_of_files_is_one_text(self):
        parts = self.directory / "parts"
        (parts / "sub").mkdir(parents=True)
        lines = self.text.read_text(encoding="utf-8").splitlines(keepends=True)
        for path, part in (("a", lines[:500]), ("b", lines[500:900]), ("sub/c", lines[900:])):
            (parts / path).write_text("".join(part), encoding="utf-8")
        self.trained(0, epochs=1)
        one_file = read_text(self.vectors)
        summary = self.trained(0, data=[parts], epochs=1)
        self.assertEqual(summary["data"]["files"], 3)
        self.assertEqual(list(read_text(self.vectors)), list(one_file))

    def test_gzip_file_is_the_same_text(self):
        packed = self.directory / "text.gz"
        packed.write_bytes(gzip.compress(self.text.read_bytes()))
        self.trained(3, epochs=2)
        plain = self.vectors.read_text()
        self.trained(3, data=[packed], epochs=2)
        self.assertEqual(self.vectors.read_text(), plain)
        summary = self.trained(4, data=[packed], epochs=2)
        self.assertEqual(summary["training"]["words"], 2 * sum(self.counts.values()))
        packed.write_bytes(packed.read_bytes()[:-100])
        self.refused(str(packed), "truncated", data=[packed], code=DAMAGED)

    def test_resumed_run_equals_an_uninterrupted_run(self):
        saved = ["--checkpoint-dir", self.directory / "checkpoints"]
        self.trained(0, epochs=4, learning_rate=0.02)
        uninterrupted = read_text(self.vectors)
        self.trained(0, *saved, "--checkpoint-every", 2, epochs=4, learning_rate=0.02)
        # The run is complete: it trains no more.
        summary = self.trained(3, *saved, "--resume", epochs=4, learning_rate=0.02)
        self.assertEqual(summary["training"]["words"], 0)
        for name, row in read_text(self.vectors).items():
            for x, y in zip(row, uninterrupted[name]):
                self.assertAlmostEqual(x, y, delta=1e-5)
        self.text.write_text(self.text.read_text(encoding="utf-8") + " once once once once", encoding="utf-8")
        self.refused("checkpoints", "a number of words", data=[self.text], options=[*saved, "--resume", "--epochs", 5])

    def test_run_that_was_stopped_within_an_epoch_is_resumed(self):
        saved = ["--checkpoint-dir", self.directory / "checkpoints"]
        job = self.start(self.command(*saved, epochs=LONG, batch=200))
        self.wait_for_stderr(job, VOCABULARY)
        job.command.send_signal(signal.SIGUSR1)
        self.assertEqual(self.exit_code(job), REQUEUE, job.stderr)
        job = self.run_to_end(self.command(*saved, "--resume", epochs=LONG, batch=200))
        epoch, words = re.search(r"after epoch (\d+)(?: and (\d+) words)?", job.stderr).groups(default="0")
        left = (LONG - int(epoch)) * sum(self.counts.values()) - int(words)
        self.assertLess(left, LONG * sum(self.counts.values()))
        self.assertAlmostEqual(self.summary()["training"]["words"], left, delta=200)
        self.assertGreater(share_of_own_topic(read_text(self.vectors)), LEARNED)

    def test_worker_is_killed(self):
        job = self.start(self.command("--ps", 1, epochs=LONG, batch=200), 4)
        self.wait_for_stderr(job, VOCABULARY)
        worker = Roles(4, 1).workers[0]
        kill_and_await_death(job.ranks()[worker][1])
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        self.assertIn("killed by signal 9", job.stderr)
        summary = self.summary()
        self.assertEqual(summary["training"]["words"], LONG * sum(self.counts.values()), "each block counts once")
        self.assertGreater(share_of_own_topic(read_text(self.vectors)), LEARNED)

    def contexts_of_linear_training(self, name, kill):
        """Trains at a rate so small that rows hardly change, and returns the contexts. Each is the sum of the pushed differences
        in any order, up to rounding: half the rate times the rows of its words, less those that it was a negative of."""
        saved = self.directory / name
        job = self.start(self.command("--ps", 2, "--checkpoint-dir", saved, "--checkpoint-every", LONG, epochs=LONG, batch=2000, dim=512, learning_rate=1e-9),
                         5)
        self.wait_for_stderr(job, VOCABULARY)
        kill(job)
        self.assertEqual(self.exit_code(job), 0, job.stderr)
        self.assertEqual(self.summary()["training"]["words"], LONG * sum(self.counts.values()), "each block counts once")
        self.run_to_end([CAPSTAN, "checkpoint", "export", saved, self.directory / f"{name}.npy", "--variable", "contexts"])
        data = (self.directory / f"{name}.npy").read_bytes()
        begin = 10 + int.from_bytes(data[8:10], "little")
        return struct.unpack(f"<{(len(data) - begin) // 4}f", data[begin:])

    def test_pushes_count_once_when_a_worker_and_a_ps_are_killed(self):
        def kill(job):
            for rank, recovered in ((roles.workers[0], "worker 0 .* replaces"), (roles.ps[1], "ps 1 .* has recovered")):
                kill_and_await_death(job.ranks()[rank][1])
                self.wait_for_stderr(job, recovered)

        roles = Roles(5, 2)
        expected = self.contexts_of_linear_training("undisturbed", lambda job: None)
        found = self.contexts_of_linear_training("killed", kill)
        norm = sum(x * x for x in expected) ** 0.5
        difference = sum((x - y) ** 2 for x, y in zip(expected, found)) ** 0.5
        # Rounding makes 5e-6 of the norm. One push of about 2400 that is lost or counted twice early makes 9e-4.
        self.assertLess(difference, 5e-5 * norm, difference / norm)

    def test_similar_words_of_a_checkpoint(self):
        checkpoints = self.directory / "checkpoints"
        self.trained(0, "--checkpoint-dir", checkpoints)
        similar = [CAPSTAN, "similar", word(2, 0), "--checkpoint", checkpoints, "--count", 3, "--json"]
        found = json.loads(self.run_to_end(similar).stdout)
        vectors = read_text(self.vectors)
        expected = sorted((-cosine(vectors[word(2, 0)], row), name) for name, row in vectors.items())[1:4]
        self.assertEqual([one["word"] for one in found], [name for _, name in expected])
        self.assertAlmostEqual(found[0]["cosine"], -expected[0][0], delta=1e-4)
        job = self.start([CAPSTAN, "predict", "kge", word(2, 0), "x", "--checkpoint", checkpoints])
        self.assertEqual(self.exit_code(job), USAGE, job.stderr)
        self.assert_names(job.stderr, "capstan train kge")

    def test_training_without_a_result_is_an_error(self):
        for ranks in (0, 4):
            self.refused("--learning-rate 1000", ranks=ranks, learning_rate=1000)
        self.refused("--subsample 1e-15", str(sum(self.counts.values())), subsample=1e-15)

    def test_refuses_bad_input(self):
        missing, empty, binary = (self.directory / name for name in ("missing", "empty", "binary"))
        empty.write_text("")
        binary.write_bytes(b"some text \0")
        self.refused("--data", str(missing), data=[missing])
        self.refused("--data", str(empty), data=[empty])
        self.refused("--data", str(binary), "NUL", data=[binary])
        self.refused("--data", str(binary), "NUL", data=[binary], ranks=3)
        self.refused("--min-count 1000000", options=["--min-count", 1_000_000])
        self.refused("--similarity", str(missing), options=["--similarity", missing])
        self.refused("--optimizer adam", "sgd", options=["--optimizer", "adam"])
        self.refused("--patience 3", options=["--patience", 3, "--eval-every", 1])
        self.refused("--output", "/missing/vectors", options=["--output", "/missing/vectors"], code=OUTSIDE)


if __name__ == "__main__":
    main()
