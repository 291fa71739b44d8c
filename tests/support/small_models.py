"""small_models.py -- small data for the programs of `capstan train`, and an independent solution of logistic regression."""
import math
import random
import struct


def solve(matrix, right):
    """Returns x with matrix x = right, by Gaussian elimination; the matrix is symmetric and positive definite."""
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


def newton(examples, features, penalty):
    """Returns the minimum of mean log-loss + penalty / 2 |w|^2 over examples (y, {feature: value}) with y = 1 or -1."""
    w = [0.0] * features
    for _ in range(30):
        value = penalty / 2 * sum(x * x for x in w)
        gradient = [penalty * x for x in w]
        hessian = [[penalty * (i == j) for j in range(features)] for i in range(features)]
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
    raise ValueError("Newton's method did not converge")


def write_idx(path, shape, values):
    head = struct.pack(f">HBB{len(shape)}I", 0, 8, len(shape), *shape)  # 8: unsigned bytes
    path.write_bytes(head + bytes(values))


def write_libsvm(path, rows, seed=1):
    """Writes random examples. Each has about half of the features 1 to 6; its label follows from them with high probability."""
    draw = random.Random(seed)
    truth = [2, -1, 1.5, -2, 0.5, -1]
    examples, lines = [], []
    for _ in range(rows):
        x = {i: draw.randint(1, 3) / 2 for i in range(6) if draw.random() < 0.5}
        y = 1 if draw.random() < 1 / (1 + math.exp(-sum(v * truth[i] for i, v in x.items()))) else -1
        examples.append((y, x))
        lines.append(" ".join([f"{y:+d}", *(f"{i + 1}:{v}" for i, v in x.items())]))
    path.write_text("\n".join(lines) + "\n")
    return examples


def write_pictures(directory, train=300, test=100):
    """Writes images of 6 x 6: class c is a random picture plus noise. Returns paths: train images, train labels, test ..."""
    draw = random.Random(2)
    pictures = [[draw.choice((0, 200)) for _ in range(36)] for _ in range(10)]
    for name, count in (("train", train), ("test", test)):
        labels = [draw.randrange(10) for _ in range(count)]
        pixels = [min(255, p + draw.randrange(56)) for label in labels for p in pictures[label]]
        write_idx(directory / f"{name}-images", (count, 6, 6), pixels)
        write_idx(directory / f"{name}-labels", (count,), labels)
    return [directory / f"{name}-{kind}" for name in ("train", "test") for kind in ("images", "labels")]


def write_criteo(path, rows, seed, pair):
    """Writes examples whose label is whether two parities agree: those of two categories, or of a category and the sign
    of an integer. Each of the two alone says nothing about the label."""
    draw = random.Random(seed)
    lines = []
    for _ in range(rows):
        count, first, second = draw.choice((-5, 5)), draw.randint(0, 9), draw.randint(0, 9)
        other = second % 2 if pair == "categories" else int(count > 0)
        integers = [count, *(draw.choice(("", 1, 2)) for _ in range(12))]
        categories = [f"a{first}", f"b{second}", *(f"c{draw.randint(0, 2)}" for _ in range(4)), *[""] * 20]
        lines.append("\t".join(map(str, [int(first % 2 == other), *integers, *categories])) + "\n")
    path.write_text("".join(lines))


def write_ratings(train, test, users=60, items=40, seed=1):
    """Writes ratings of rank 2, with biases and noise of 0.05. Returns the standard deviation of the test ratings."""
    draw = random.Random(seed)
    p, q = ([(draw.gauss(0, 0.8), draw.gauss(0, 0.8), draw.gauss(0, 0.3)) for _ in range(n)] for n in (users, items))
    lines, values = ([], []), []
    for u in range(users):
        for i in range(items):
            value = 3 + p[u][0] * q[i][0] + p[u][1] * q[i][1] + p[u][2] + q[i][2] + draw.gauss(0, 0.05)
            is_test = draw.random() < 0.2
            lines[is_test].append(f"user{u}::{i}::{value:.4f}::0\n")
            if is_test:
                values.append(value)
    for path, text in zip((train, test), lines):
        draw.shuffle(text)
        path.write_text("".join(text))
    mean = sum(values) / len(values)
    return (sum((x - mean) ** 2 for x in values) / len(values)) ** 0.5


def write_words_on_a_circle(text, pairs, words=60, sentences=1500, seed=1):
    """Writes sentences of 10 words that are near each other on a circle, and all pairs of words with the negative distance."""
    draw = random.Random(seed)
    with open(text, "w") as file:
        for _ in range(sentences):
            center = draw.randrange(words)
            file.write(" ".join(f"w{round(center + draw.gauss(0, words / 12)) % words}" for _ in range(10)) + "\n")
    distance = {(i, j): min(j - i, words - j + i) for i in range(words) for j in range(i + 1, words)}
    pairs.write_text("".join(f"w{i}\tw{j}\t{-d}\n" for (i, j), d in distance.items()))
