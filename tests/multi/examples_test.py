#!/usr/bin/env python3
"""The programs of examples/ on small data whose answer another way finds: Newton's method, or how the data was made."""
import math
import pathlib
import random
import re
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import BIN, JobTest, main

LAMBDA = 1e-4  # of example_logistic_regression


def solve(matrix, right):
    """x with matrix x = right, by Gaussian elimination; the matrix is symmetric and positive definite."""
    rows = [row + [b] for row, b in zip(matrix, right)]
    n = len(rows)
    for i in range(n):
        for j in range(i + 1, n):
            factor = rows[j][i] / rows[i][i]
            rows[j] = [a - factor * b for a, b in zip(rows[j], rows[i])]
    x = [0.0] * n
    for i in reversed(range(n)):
        x[i] = (rows[i][n] - sum(rows[i][j] * x[j] for j in range(i + 1, n))) / rows[i][i]
    return x


def newton(examples, features):
    """The least value of mean log-loss + LAMBDA / 2 |w|^2, for examples (y, {feature: value}), y being 1 or -1."""
    w = [0.0] * features
    for _ in range(30):
        value = LAMBDA / 2 * sum(x * x for x in w)
        gradient = [LAMBDA * x for x in w]
        hessian = [[LAMBDA * (i == j) for j in range(features)] for i in range(features)]
        for y, x in examples:
            margin = y * sum(v * w[i] for i, v in x.items())
            value += math.log1p(math.exp(-margin)) / len(examples)
            p = 1 / (1 + math.exp(margin))
            for i, v in x.items():
                gradient[i] -= y * p * v / len(examples)
                for j, u in x.items():
                    hessian[i][j] += p * (1 - p) * u * v / len(examples)
        if sum(g * g for g in gradient) < 1e-24:
            return value
        w = [a - b for a, b in zip(w, solve(hessian, gradient))]
    raise ValueError("Newton's method has not converged")


def write_idx(path, shape, values):
    head = struct.pack(f">HBB{len(shape)}I", 0, 8, len(shape), *shape)  # 8: unsigned bytes
    path.write_bytes(head + bytes(values))


class Examples(JobTest):
    def test_hello(self):
        for ranks in (0, 4):
            job = self.run_to_end([BIN / "example_hello"], ranks)
            self.assertIn("w is 55 55 55\n", job.stdout)

    def libsvm_file(self, rows):
        """Of features 1 to 6 an example has about half; labels are likely, not certain, to follow from them."""
        draw = random.Random(1)
        truth = [2, -1, 1.5, -2, 0.5, -1]
        examples, lines = [], []
        for _ in range(rows):
            x = {i: draw.randint(1, 3) / 2 for i in range(6) if draw.random() < 0.5}
            y = 1 if draw.random() < 1 / (1 + math.exp(-sum(v * truth[i] for i, v in x.items()))) else -1
            examples.append((y, x))
            lines.append(" ".join([f"{y:+d}", *(f"{i + 1}:{v}" for i, v in x.items())]))
        path = self.folder / "train.txt"
        path.write_text("\n".join(lines) + "\n")
        return path, newton(examples, 6)

    def regression(self, mode, ranks, rows):
        path, optimum = self.libsvm_file(rows)
        job = self.run_to_end([BIN / "example_logistic_regression", mode, path, path], ranks)
        values = [float(x) for x in re.findall(r"^\d+ steps: objective ([\d.]+),", job.stdout, re.M)]
        accuracy = float(re.search(r"^test accuracy ([\d.]+)$", job.stdout, re.M)[1])
        self.assertGreater(accuracy, 0.7)
        return values[-1] - optimum

    def test_synchronous_regression_reaches_the_optimum(self):
        # 301 examples are not the same number for each of two workers.
        for ranks in (0, 4):
            above = self.regression("synchronous", ranks, 301)
            self.assertLess(abs(above), 1e-6)

    def test_asynchronous_regression_comes_near_it(self):
        above = self.regression("asynchronous", 4, 1000)
        self.assertGreater(above, -1e-9)
        self.assertLess(above, 0.005)

    def test_stale_synchronous(self):
        job = self.run_to_end([BIN / "example_stale_synchronous"], 5, )
        found = re.search(r"^3 workers, at most (\d) steps ahead, largest error (\S+)$", job.stdout, re.M)
        self.assertEqual(found[1], "2")  # the bound, which the fast ones reach
        self.assertLess(float(found[2]), 1e-4)

    def test_mlp(self):
        """Images of 6 x 6: class c is a random picture with noise."""
        draw = random.Random(2)
        pictures = [[draw.choice((0, 200)) for _ in range(36)] for _ in range(10)]
        for name, count in (("train", 300), ("test", 100)):
            labels = [draw.randrange(10) for _ in range(count)]
            pixels = [min(255, p + draw.randrange(56)) for label in labels for p in pictures[label]]
            write_idx(self.folder / f"{name}-images", (count, 6, 6), pixels)
            write_idx(self.folder / f"{name}-labels", (count,), labels)
        files = [self.folder / f"{name}-{kind}" for name in ("train", "test") for kind in ("images", "labels")]
        for ranks, replicas in ((3, 2), (4, 1)):
            job = self.run_to_end([BIN / "example_mlp", 2, *files, f"--capstan-replicas={replicas}"], ranks)
            rounds = re.findall(r"^\d+ steps: test loss ([\d.]+), accuracy ([\d.]+)$", job.stdout, re.M)
            losses = [float(loss) for loss, _ in rounds]
            self.assertLess(losses[0], 0.5)  # by chance it is 2.3
            self.assertLess(losses[1], losses[0])
            self.assertGreater(float(rounds[1][1]), 0.95)


if __name__ == "__main__":
    main()
