#!/usr/bin/env python3
"""`capstan serve` on models that `capstan train` saved: answers, limits, signals, and replacement of the model."""
# Tests: launch/serve/api.cpp
# Tests: launch/serve/command_line.cpp
# Tests: launch/serve/http_server.cpp
# Tests: launch/serve/request.hpp
# Tests: launch/serve/run.cpp
# Tests: launch/serve/served_model.cpp
# Tests: src/train/saved_rows.cpp
# Tests: src/train/scoring/click_scorer.cpp
# Tests: src/train/scoring/factorization_scorer.cpp
# Tests: src/train/scoring/kge_scorer.cpp
# Tests: src/train/scoring/named_scores.hpp
# Tests: src/train/scoring/scorer.cpp
# Tests: src/train/scoring/text_examples.cpp
# Tests: src/train/scoring/word_scorer.cpp
import array
import ctypes
import errno
import json
import math
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import stat
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import small_graph
import small_models
from http_client import Client
from job import CAPSTAN, JobTest, main, train
from small_models import write_criteo, write_ratings
from train_word2vec_test import word, write_topics

INTERRUPTED = 130
PIDFD_GETFD = 438  # the number of the system call, since Linux 5.6 and on all architectures
TOO_MANY = 10**9
JSON = {"Content-Type": "application/json"}


def log_loss(probabilities, labels):
    return -sum(math.log(p if y else 1 - p) for p, y in zip(probabilities, labels)) / len(labels)


class ServeTest(JobTest):
    def setUp(self):
        super().setUp()
        self.saved = self.directory / "saved"

    def train(self, program, *options):
        """Returns the summary."""
        self.run_to_end([CAPSTAN, "train", program, "--checkpoint-dir", self.saved, "--checkpoint-every", 1, "--summary",
                         self.directory / "summary.json", *options])
        return self.summary()

    def train_graph(self, epochs=5, **options):
        self.run_to_end([*train(self.graph(), epochs=epochs), "--checkpoint-dir", self.saved, *options.get("more", [])])

    def serve(self, *options, model=None, on_socket=None):
        """Starts a server; returns (job, client)."""
        address = ["--socket", on_socket] if on_socket else ["--port", 0]
        job = self.start([CAPSTAN, "serve", model or self.saved, *address, *options])
        found = job.wait_for(lambda: re.search(r"^serving step .* on (?:http://127.0.0.1:(\d+)|the socket (.*))$", job.stdout, re.M))
        self.assertTrue(found, job.stderr)
        client = Client(found[2] if on_socket else int(found[1]))
        self.addCleanup(client.close)
        return job, client

    def end(self, job, number=signal.SIGTERM, code=0):
        os.kill(job.command.pid, number)
        self.assertEqual(self.exit_code(job), code, job.stderr)

    def exported(self, variable):
        """Returns (shape, floats) of a variable, by `capstan checkpoint export`."""
        path = self.directory / "exported.npy"
        self.run_to_end([CAPSTAN, "checkpoint", "export", self.saved, path, "--variable", variable, "--force"])
        content = path.read_bytes()
        end = 10 + int.from_bytes(content[8:10], "little")
        shape = [int(n) for n in re.search(rb"'shape': \(([^)]*)\)", content[:end])[1].replace(b" ", b"").split(b",") if n]
        return shape, array.array("f", content[end:]).tolist()

    def refused(self, answer, status, *names):
        self.assertEqual(answer[0], status, answer)
        self.assert_names(answer[1]["error"], *names)


class Lookups(ServeTest):
    def test_rows_of_a_checkpoint(self):
        self.train_graph()
        (rows, dim), values = self.exported("entities")
        self.assertEqual((rows, dim), (small_graph.ENTITIES, 32))
        job, client = self.serve(on_socket=self.directory / "socket")
        self.assertEqual(client.get("/v1/health"), (200, {"status": "ok"}))
        status, model = client.get("/v1/model")
        self.assertEqual((status, model["step"]), (200, 5))
        self.assertEqual(model["variables"]["entities"], {"shape": [60, 32], "dtype": "float32", "table": False})
        self.assertEqual(model["scores"]["program"], "kge")

        ids = [7, 0, 59, 7]
        expected = [values[i * dim : (i + 1) * dim] for i in ids]
        status, found = client.post("/v1/lookup", {"variable": "entities", "ids": ids})
        self.assertEqual(status, 200)
        self.assertEqual((found["shape"], found["dtype"]), ([4, 32], "float32"))
        self.assertEqual([array.array("f", row).tolist() for row in found["rows"]], expected)
        for binary_request in (True, False):
            shape, floats = client.binary_rows("entities", ids, binary_request)
            self.assertEqual((shape, floats), ([4, 32], sum(expected, [])))
        self.assertEqual(client.binary_rows("entities", []), ([0, 32], []))
        # The names of the graph are those of its rows.
        _, by_name = client.post("/v1/lookup", {"variable": "entities", "names": ["hour20"]})
        _, hours = client.post("/v1/score", {"similar": "hour20", "count": 1})
        self.assertNotEqual(hours["entities"][0]["entity"], "hour20")
        self.assertIn(array.array("f", by_name["rows"][0]).tolist(), [values[i * dim : (i + 1) * dim] for i in range(rows)])

        self.assertEqual(stat.S_IMODE((self.directory / "socket").stat().st_mode), 0o600)
        self.end(job)
        self.assertFalse((self.directory / "socket").exists())

    def test_rows_of_16_bits_are_widened(self):
        self.train_graph(more=["--table-dtype", "bfloat16"])
        _, values = self.exported("entities")
        _, client = self.serve()
        self.assertEqual(client.binary_rows("entities", [3]), ([1, 32], values[96:128]))

    def test_keys_of_a_dynamic_table(self):
        data = self.directory / "clicks"
        write_criteo(data, 300, 1, "categories")
        self.train("lr", "--data", data, "--format", "criteo", "--dynamic", "--epochs", 2)
        _, client = self.serve()
        keys_file = self.directory / "model.h5"
        self.run_to_end([CAPSTAN, "checkpoint", "export", self.saved, keys_file])
        _, found = client.post("/v1/lookup", {"variable": "weights", "ids": [-(2**63), 12345]})
        self.assertEqual(found["present"], [True, False])  # the bias, and a key that no feature has
        self.assertNotEqual(found["rows"][0], [0])
        self.assertEqual(found["rows"][1], [0])


class Scores(ServeTest):
    def test_graph(self):
        for i, model in enumerate(("complex", "transe", "rotate")):
            self.saved = self.directory / str(i)
            self.train_graph(more=["--model", model])
            job, client = self.serve()
            for head, relation, tail in small_graph.triples()[:3]:
                command = [CAPSTAN, "predict", "kge", head, relation, "--count", 60, "--checkpoint", self.saved, "--json"]
                expected = json.loads(self.run_to_end(command).stdout)
                _, found = client.post("/v1/score", {"head": head, "relation": relation, "count": 60})
                self.assertEqual((found["tails"], found["step"]), (expected, 5))
                score = next(one["score"] for one in expected if one["entity"] == tail)
                _, found = client.post("/v1/score", {"head": head, "relation": relation, "tail": tail})
                self.assertEqual(found["score"], score)
                _, found = client.post("/v1/score", {"triples": [[head, relation, tail]] * 2})
                self.assertEqual(found["scores"], [score, score])
            command = [CAPSTAN, "similar", "hour20", "--count", 5, "--checkpoint", self.saved, "--json"]
            _, found = client.post("/v1/score", {"similar": "hour20", "count": 5})
            self.assertEqual(found["entities"], json.loads(self.run_to_end(command).stdout))
            self.refused(client.post("/v1/score", {"head": "horu17", "relation": "after"}), 404, "horu17", "hour17")
            self.refused(client.post("/v1/lookup", {"variable": "entities", "names": ["horu17"]}), 404, "horu17", "hour17")
            self.refused(client.post("/v1/score", {"head": "hour17"}), 400, "relation")
            self.refused(client.post("/v1/score", {"head": 17, "relation": "after"}), 400, "head", 17)
            self.refused(client.post("/v1/score", {"triples": [["hour17", "after"]]}), 400, "triples")
            self.refused(client.post("/v1/score", {"haed": "hour17"}), 400, "haed", "head")
            self.end(job)

    def test_words(self):
        corpus = self.directory / "corpus.txt"
        write_topics(corpus)
        self.train("word2vec", "--data", corpus, "--dim", 16, "--epochs", 2)
        (rows, dim), values = self.exported("words")
        _, client = self.serve()
        self.assertEqual(client.get("/v1/model")[1]["scores"], {"program": "word2vec", "words": rows})
        command = [CAPSTAN, "similar", word(2, 0), "--count", 3, "--checkpoint", self.saved, "--json"]
        status, found = client.post("/v1/score", {"similar": word(2, 0), "count": 3})
        self.assertEqual((status, found["words"]), (200, json.loads(self.run_to_end(command).stdout)))
        _, by_name = client.post("/v1/lookup", {"variable": "words", "names": [word(2, 0)]})
        self.assertIn(array.array("f", by_name["rows"][0]).tolist(), [values[i * dim : (i + 1) * dim] for i in range(rows)])
        self.refused(client.post("/v1/score", {"similar": "nowhere"}), 404, "word", "nowhere")
        self.refused(client.post("/v1/score", {"head": word(2, 0)}), 400, "head", "similar")

    def test_ratings(self):
        data, test = self.directory / "train.dat", self.directory / "test.dat"
        write_ratings(data, test)
        summary = self.train("mf", "--data", data, "--test", test, "--factors", 4, "--epochs", 20, "--batch", 32)
        users, items = {}, {}  # numbers by name, in the order of the file
        ratings = [line.split("::") for line in data.read_text().splitlines()]
        for user, item, *_ in ratings:
            users.setdefault(user, len(users))
            items.setdefault(item, len(items))
        mean = sum(float(line[2]) for line in ratings) / len(ratings)
        _, p = self.exported("users")
        _, q = self.exported("items")

        def expected(user, item):
            u, i = p[5 * user : 5 * user + 5], q[5 * item : 5 * item + 5]
            return mean + u[4] + i[4] + sum(a * b for a, b in zip(u[:4], i[:4]))

        _, client = self.serve()
        squares = []
        for user, item, rating, _ in [line.split("::") for line in test.read_text().splitlines()]:
            status, found = client.post("/v1/score", {"user": users[user], "items": [items[item]]})
            self.assertEqual(status, 200, found)
            self.assertAlmostEqual(found["scores"][0], expected(users[user], items[item]), places=5)
            squares.append((found["scores"][0] - float(rating)) ** 2)
        self.assertAlmostEqual(math.sqrt(sum(squares) / len(squares)), summary["test"]["rmse"], places=6)

        order = sorted(range(len(items)), key=lambda item: -expected(3, item))
        _, found = client.post("/v1/score", {"user": 3, "count": 5})
        self.assertEqual([one["item"] for one in found["items"]], order[:5])
        _, found = client.post("/v1/score", {"user": 3, "count": 5, "exclude": order[1:3]})
        self.assertEqual([one["item"] for one in found["items"]], [order[0], *order[3:7]])
        self.refused(client.post("/v1/score", {"user": len(users), "count": 1}), 400, len(users))
        self.refused(client.post("/v1/score", {"user": -1, "items": [0]}), 400, -1)
        self.refused(client.post("/v1/score", {"user": 0, "items": [len(items)]}), 400, len(items))

    def test_implicit_feedback_has_no_bias_of_users(self):
        data = self.directory / "train.dat"
        write_ratings(data, self.directory / "test.dat")
        self.train("mf", "--data", data, "--implicit", "--factors", 4, "--epochs", 3)
        _, p = self.exported("users")
        _, q = self.exported("items")
        _, client = self.serve()
        _, found = client.post("/v1/score", {"user": 2, "items": [7]})
        u, i = p[10:15], q[35:40]
        self.assertAlmostEqual(found["scores"][0], i[4] + sum(a * b for a, b in zip(u[:4], i[:4])), places=6)

    def expect_the_loss_of_training(self, program, test, labels, *options):
        self.saved = self.directory / f"saved{len(list(self.directory.glob('saved*')))}"
        summary = self.train(program, "--test", test, *options)
        job, client = self.serve()
        lines = test.read_text().splitlines()
        status, found = client.post("/v1/score", {"lines": lines})
        self.assertEqual(status, 200, found)
        self.assertEqual(len(found["probabilities"]), len(lines))
        self.assertAlmostEqual(log_loss(found["probabilities"], labels), summary["test"]["logloss"], places=6, msg=(program, options))
        self.assertGreater(max(found["probabilities"]) - min(found["probabilities"]), 0.1)
        # One example has the same probability alone, and its label does not matter.
        _, alone = client.post("/v1/score", {"lines": [re.sub(r"^\S+", "0", lines[5])]})
        self.assertAlmostEqual(alone["probabilities"][0], found["probabilities"][5], places=6)
        return job, client

    def test_libsvm_examples(self):
        data, test = self.directory / "data.svm", self.directory / "test.svm"
        small_models.write_libsvm(data, 300)
        labels = [y > 0 for y, _ in small_models.write_libsvm(test, 100, seed=2)]
        for program, more in (("lr", []), ("lr", ["--no-bias"]), ("fm", ["--factors", 3]), ("fm", ["--table-dtype", "float16"])):
            job, client = self.expect_the_loss_of_training(program, test, labels, "--data", data, "--epochs", 5, *more)
            self.refused(client.post("/v1/score", {"lines": ["1 1:1", "1 2:x"]}), 400, "lines:2", "x")
            self.refused(client.post("/v1/score", {"lines": ["1 1:1\n1 2:1"]}), 400, "lines:1")
            self.refused(client.post("/v1/score", {"lines": ["1 1000000:1"]}), 400, "lines:1", 1000000)
            self.refused(client.post("/v1/score", {"lines": ["# 1"]}), 400, "lines")
            self.assertEqual(client.post("/v1/score", {"lines": []})[1]["probabilities"], [])
            self.end(job)

    def test_criteo_examples(self):
        data, test = self.directory / "data", self.directory / "test"
        write_criteo(data, 1000, 1, "categories")
        write_criteo(test, 200, 2, "categories")
        labels = [line[0] == "1" for line in test.read_text().splitlines()]
        sizes = ["--data", data, "--epochs", 8, "--batch", 20, "--l2", 0]
        small = ["--hidden", "8", "--factors", 4, "--learning-rate", 0.02]
        for program, more in (("fm", ["--format", "criteo", "--hash-bits", 14]), ("deepfm", ["--hash-bits", 14, *small]),
                              ("dlrm", ["--hash-bits", 14, *small]), ("dcn", ["--dynamic", *small])):
            job, client = self.expect_the_loss_of_training(program, test, labels, *sizes, *more)
            self.refused(client.post("/v1/score", {"lines": ["0\tx"]}), 400, "lines:1")
            self.end(job)

    def test_model_file(self):
        self.train_graph()
        model, part = self.directory / "model.h5", self.directory / "part.h5"
        self.run_to_end([CAPSTAN, "checkpoint", "export", self.saved, model])
        self.run_to_end([CAPSTAN, "checkpoint", "export", self.saved, part, "--variable", "entities"])
        _, of_checkpoint = self.serve()
        _, of_file = self.serve(model=model)
        _, of_part = self.serve(model=part)
        request = {"head": "hour03", "relation": "after"}
        self.assertEqual(of_file.post("/v1/score", request), of_checkpoint.post("/v1/score", request))
        self.assertEqual(of_part.binary_rows("entities", [4]), of_checkpoint.binary_rows("entities", [4]))
        self.assertIsNone(of_part.get("/v1/model")[1]["scores"])
        self.refused(of_part.post("/v1/score", request), 400, "entity_names")
        self.refused(of_part.post("/v1/lookup", {"variable": "entities", "names": ["hour03"]}), 400, "names")


class Refusals(ServeTest):
    def setUp(self):
        super().setUp()
        self.train_graph(epochs=1)

    def test_malformed_requests(self):
        job, client = self.serve("--max-ids", 100, "--max-body", "4KiB")
        lookup = lambda request: client.post("/v1/lookup", request)
        ids = lambda values: lookup(json.dumps({"variable": "entities", "ids": ["@"]}).replace('"@"', values))
        self.refused(lookup("{"), 400, "line 1")
        self.refused(lookup("[" * 1000), 400)
        self.refused(lookup("[]"), 400, "object")
        self.refused(lookup("{}"), 400, "variable")
        self.refused(lookup({"variable": "entities"}), 400, "ids", "names")
        self.refused(lookup({"variable": "entities", "ids": 3}), 400, "ids")
        self.refused(lookup({"variable": "none", "ids": [0]}), 404, "none", "entities")
        for wrong in ("60", "-1", "9223372036854775807", "-9223372036854775808"):
            self.refused(ids(wrong), 400, wrong, 60)
        for wrong in ("9223372036854775808", "1e9", "NaN", "1.5", "null", '"1"', "[1]", "true"):
            self.refused(ids(wrong), 400)
        self.refused(ids(",".join(["1"] * 101)), 413, 101, 100)
        self.refused(lookup(" " * 5000), 413, 5000, 4096)
        self.refused(client.post("/v1/score", {"head": "hour01", "relation": "after", "count": TOO_MANY}), 413, TOO_MANY, 100)
        self.refused(client.post("/v1/score", {"head": "hour01", "relation": "after", "count": -1}), 400, -1)
        self.refused(client.post("/v1/score", "\xff".encode("latin-1")), 400)
        self.refused(client.get("/v2/lookup"), 404, "/v1/lookup")
        self.refused(client.get("/v1/lookup"), 404, "/v1/lookup")
        for status, headers in ((415, {"Content-Type": "text/plain"}), (415, {**JSON, "Content-Encoding": "gzip"}),
                                (413, {**JSON, "Content-Length": str(10**18)}), (411, {**JSON, "Content-Length": "x"}),
                                (411, {**JSON, "Transfer-Encoding": "chunked"})):
            # Without a body that the server must skip: the connection would be reset before the answer is read.
            raw = "POST /v1/lookup HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            with socket.create_connection(("127.0.0.1", client.address), timeout=60) as connection:
                connection.sendall((raw + ("" if "Content-Length" in headers else "Content-Length: 0\r\n") + "\r\n").encode())
                if headers.get("Content-Length", "x").isdigit():
                    connection.shutdown(socket.SHUT_WR)
                answer = connection.makefile("rb").read()
                self.assertIn(f" {status} ".encode(), answer.split(b"\r\n")[0], (headers, answer))
        for status, raw in ((405, "PUT /v1/lookup HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"),
                            (400, "GET /v1/health HTTP/1.1\r\nContent-Length: 30\r\n\r\nGET /v1/model HTTP/1.1\r\n\r\n"),
                            (400, "GET /v1/model HTTP/1.1\r\nRange: bytes=0-,0-\r\n\r\n")):
            with socket.create_connection(("127.0.0.1", client.address), timeout=60) as connection:
                connection.sendall(raw.encode())
                answer = connection.makefile("rb").read()
                self.assertEqual(answer.count(b"HTTP/1.1 "), 1, answer)
                self.assertIn(f" {status} ".encode(), answer.split(b"\r\n")[0], answer)
        # A line without an end: the server closes the connection, long before all bytes are sent.
        with socket.create_connection(("127.0.0.1", client.address), timeout=60) as connection:
            with self.assertRaises(OSError):
                for _ in range(1000):
                    connection.sendall(b"x" * 65536)
        self.assertEqual(client.get("/v1/health")[0], 200)
        binary = {"Content-Type": "application/octet-stream"}
        self.assertEqual(client.send("POST", "/v1/lookup?variable=entities", b"1234567", binary)[0], 400)
        self.assertEqual(client.send("POST", "/v1/lookup", b"12345678", binary)[0], 400)
        self.end(job)

    def test_random_bytes(self):
        job, client = self.serve("--timeout", "300ms")
        body = json.dumps({"variable": "entities", "ids": [1, 2, 3]})
        valid = f"POST /v1/lookup HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        draw = random.Random(5)
        for _ in range(150):
            changed = bytearray(valid)
            for _ in range(draw.randint(1, 4)):
                changed[draw.randrange(len(changed))] = draw.randrange(256)
            if draw.random() < 0.3:
                changed = changed[: draw.randrange(len(changed))]
            with socket.create_connection(("127.0.0.1", client.address), timeout=60) as connection:
                connection.sendall(changed)
                connection.shutdown(socket.SHUT_WR)
                try:
                    answer = connection.makefile("rb").read()
                except ConnectionResetError:
                    continue  # the server closed the connection before it read everything
                if answer:
                    self.assertRegex(answer, rb"^HTTP/1\.1 (200|400|404|411|413|414|415) ")
        self.assertEqual(client.post("/v1/lookup", body)[0], 200)
        self.end(job)

    def test_slow_client_is_disconnected(self):
        job, client = self.serve("--timeout", "500ms", "--threads", 1)
        with socket.create_connection(("127.0.0.1", client.address), timeout=60) as slow:
            slow.sendall(b"POST /v1/lookup HTTP/1.1\r\n")
            stopped = threading.Event()

            def send_slowly():
                try:
                    while not stopped.wait(0.1):
                        slow.sendall(b"a: b\r\n")
                except OSError:
                    pass  # disconnected

            thread = threading.Thread(target=send_slowly)
            thread.start()
            # Served after the slow client, which holds the only thread.
            self.assertEqual(client.get("/v1/health")[0], 200)
            stopped.set()
            thread.join()
        self.end(job)

    def test_full_queue(self):
        job, client = self.serve("--threads", 1, "--queue", 1, "--timeout", "60s")
        held = [socket.create_connection(("127.0.0.1", client.address), timeout=60) for _ in range(2)]
        self.addCleanup(lambda: [one.close() for one in held])
        held[0].sendall(b"GET")  # takes the thread; the other one waits
        answer = None
        for _ in range(100):
            other = Client(client.address)
            answer = other.get("/v1/health")
            other.close()
            if answer[0] == 503:
                break
        self.refused(answer, 503, 1)
        for one in held:
            one.close()
        self.end(job)

    def test_idle_connection_makes_room(self):
        job, client = self.serve("--threads", 1)
        self.assertEqual(client.get("/v1/health")[0], 200)  # keeps its connection open
        other = Client(client.address)
        self.addCleanup(other.close)
        self.assertEqual(other.get("/v1/health")[0], 200)
        self.end(job)

    def fails(self, *options, names):
        job = self.start([CAPSTAN, "serve", *options])
        self.assertNotEqual(self.exit_code(job), 0)
        self.assertEqual(job.stdout, "")
        self.assert_names(job.stderr, *names)

    def test_addresses(self):
        directory = tempfile.TemporaryDirectory(prefix="capstan-sockets-")  # not checked for sockets that jobs left behind
        self.addCleanup(directory.cleanup)
        path = pathlib.Path(directory.name, "socket")
        stale = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        stale.bind(str(path))
        stale.close()
        job, client = self.serve(on_socket=path)  # replaces the stale socket
        self.fails(self.saved, "--socket", path, names=["--socket", path])
        self.assertEqual(client.get("/v1/health")[0], 200)
        path.unlink()
        other = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        other.bind(str(path))
        self.end(job)
        self.assertTrue(path.exists(), "the socket of another process")
        other.close()
        path.unlink()
        path.write_text("a file")
        self.fails(self.saved, "--socket", path, names=["--socket", path])
        self.assertEqual(path.read_text(), "a file")
        self.fails(self.saved, "--socket", "x" * 200, names=[200])
        self.fails(self.saved, names=["--socket", "--port"])
        self.fails(self.saved, "--socket", path, "--port", 0, names=["--socket", "--port"])
        self.fails(self.saved, "--port", 0, "--timeout", "x", names=["--timeout", "x"])
        self.fails(self.saved, "--port", 0, "--max-body", "1", names=["--max-body"])
        self.fails(self.directory / "none", "--port", 0, names=["none"])
        _, client = self.serve()
        self.fails(self.saved, "--port", client.address, names=["--port", client.address])

    def test_failed_accept_ends_the_server(self):
        job, client = self.serve("--idle-timeout", "1h")
        self.assertEqual(client.get("/v1/health")[0], 200)  # the connection stays open, and must not delay the end
        pid = os.pidfd_open(job.command.pid)
        self.addCleanup(os.close, pid)
        libc = ctypes.CDLL(None, use_errno=True)
        for name in os.listdir(f"/proc/{job.command.pid}/fd"):
            copy = libc.syscall(PIDFD_GETFD, pid, int(name), 0)
            if copy < 0 and ctypes.get_errno() == errno.EBADF:
                continue  # closed since the directory was read
            if copy < 0:
                self.skipTest(f"pidfd_getfd: {os.strerror(ctypes.get_errno())}")
            if not stat.S_ISSOCK(os.fstat(copy).st_mode):
                os.close(copy)
                continue
            with socket.socket(fileno=copy) as one:
                if one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    one.shutdown(socket.SHUT_RDWR)  # accept() of the server fails with EINVAL
        self.assertNotEqual(self.exit_code(job), 0)
        self.assert_names(job.stderr, "accept", os.strerror(errno.EINVAL))

    def test_control_c(self):
        job, client = self.serve()
        self.assertEqual(client.get("/v1/health")[0], 200)  # an idle connection does not delay the end
        self.end(job, signal.SIGINT, INTERRUPTED)


class Reload(ServeTest):
    def wait_for_step(self, job, client, step):
        self.assertTrue(job.wait_for(lambda: client.get("/v1/model")[1]["step"] == step), job.stderr)

    def test_newer_checkpoint(self):
        self.train_graph(epochs=2)
        job, client = self.serve("--reload", "100ms")
        _, before = client.post("/v1/lookup", {"variable": "entities", "ids": [0]})
        stop, wrong = threading.Event(), []

        def look_up():
            one = Client(client.address)
            while not stop.is_set():
                status, _ = one.post("/v1/lookup", {"variable": "entities", "ids": [0]})
                if status != 200:
                    wrong.append(status)
            one.close()

        thread = threading.Thread(target=look_up)
        thread.start()
        self.train_graph(epochs=4, more=["--resume"])
        self.wait_for_step(job, client, 4)
        stop.set()
        thread.join()
        self.assertEqual(wrong, [])
        _, after = client.post("/v1/lookup", {"variable": "entities", "ids": [0]})
        self.assertNotEqual(before["rows"], after["rows"])

        # A damaged checkpoint does not replace the model.
        newest = sorted(self.saved.glob("checkpoint-*"))[-1]
        damaged = newest.with_name("checkpoint-00000009")
        shutil.copytree(newest, self.directory / "copy")
        next((self.directory / "copy").glob("*.h5")).write_bytes(b"damaged")
        (self.directory / "copy").rename(damaged)
        self.wait_for_stderr(job, "keeping step 4")
        self.assertEqual(client.post("/v1/lookup", {"variable": "entities", "ids": [0]})[1], after)
        self.end(job)

    def test_retrained_checkpoint_of_the_same_step(self):
        self.train_graph(epochs=2)
        copies = self.directory / "copies"
        copies.mkdir()
        job, client = self.serve("--reload", "100ms", "--copy-dir", copies)
        self.assertEqual(list(copies.iterdir()), [])
        request = {"variable": "entities", "ids": [0]}
        _, before = client.post("/v1/lookup", request)
        served, self.saved = self.saved, self.directory / "retrained"
        self.train_graph(epochs=2, more=["--seed", 7])
        shutil.rmtree(served)
        self.saved.rename(served)
        self.assertTrue(job.wait_for(lambda: client.post("/v1/lookup", request)[1]["rows"] != before["rows"]), job.stderr)
        self.assertEqual(client.get("/v1/model")[1]["step"], 2)
        self.end(job)
        self.assertEqual(list(copies.iterdir()), [])

    def test_replaced_model_file(self):
        self.train_graph(epochs=2)
        model = self.directory / "model.h5"
        self.run_to_end([CAPSTAN, "checkpoint", "export", self.saved, model])
        job, client = self.serve("--reload", "100ms", model=model)
        self.train_graph(epochs=4, more=["--resume"])
        self.run_to_end([CAPSTAN, "checkpoint", "export", self.saved, model, "--force"])
        self.wait_for_step(job, client, 4)
        self.end(job)


if __name__ == "__main__":
    main()
