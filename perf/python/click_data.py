"""Click logs for click_rates.py: synthetic text in the format of Criteo, and features hashed as by `capstan train`."""
import numpy as np

INTEGERS, CATEGORIES = 13, 26
FIELDS = INTEGERS + CATEGORIES
MISSING_BUCKET, MISSING_COLUMNS = 1 << 16, FIELDS


def write_synthetic(path, examples, seed):
    """Write examples whose categories are Zipf-distributed, and whose labels depend on a weight per feature."""
    random = np.random.default_rng(seed)
    integers = np.floor(np.exp(random.normal(1.5, 1.5, (examples, INTEGERS)))).astype(np.int64)
    categories = random.zipf(1.2, (examples, CATEGORIES)) % 50_000
    weights = np.random.default_rng(0).normal(0, 0.3, (FIELDS, 1024))
    columns = np.concatenate([np.log2(1 + integers).astype(np.int64), categories], axis=1) % 1024
    logits = weights[np.arange(FIELDS), columns].sum(axis=1) - 1.2
    labels = random.random(examples) < 1 / (1 + np.exp(-logits))
    with open(path, "w") as file:
        for label, numbers, names in zip(labels.astype(int), integers, categories):
            file.write("\t".join([str(label), *map(str, numbers), *(f"{name:08x}" for name in names)]) + "\n")


def mix64(x):
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def buckets_of(x):
    """Return the bucket of each integer, as src/train/sparse/columns.hpp defines it."""
    magnitude = np.abs(x).astype(np.float64)
    mantissa, exponent = np.frexp(magnitude)
    bucket = 2 * exponent.astype(np.int64) + (mantissa * np.sqrt(2) >= 1)
    return np.where(magnitude <= 2, x, np.where(x > 0, bucket, -bucket))


def read(path, hash_bits, fields):
    """Return labels, ids, values and dense inputs of a file, with a row per example.

    A missing category has the value 0, or with `fields` a feature of its own.
    """
    lines = [line.rstrip("\n").split("\t") for line in open(path)]
    labels = np.array([line[0] == "1" for line in lines], np.float32)
    texts = np.array([line[1:] for line in lines])
    present = texts != ""
    integers = np.where(present[:, :INTEGERS], texts[:, :INTEGERS], "0").astype(np.int64)
    buckets = np.where(present[:, :INTEGERS], buckets_of(integers), MISSING_BUCKET)
    parse = np.vectorize(lambda text: int(text or "0", 16), otypes=[np.int64])
    names = np.concatenate([buckets, parse(texts[:, INTEGERS:])], axis=1) & 0xFFFFFFFF
    columns = np.concatenate([CATEGORIES + np.arange(INTEGERS), np.arange(CATEGORIES)])
    columns = np.broadcast_to(columns, names.shape).copy()
    columns[:, INTEGERS:] += np.where(present[:, INTEGERS:], 0, MISSING_COLUMNS)
    ids = mix64((columns.astype(np.uint64) << np.uint64(32)) + names.astype(np.uint64))
    values = np.ones(ids.shape, np.float32)
    if not fields:
        values[:, INTEGERS:] = present[:, INTEGERS:]
    dense = np.copysign(np.log1p(np.abs(integers)), integers).astype(np.float32)
    return labels, (ids & np.uint64((1 << hash_bits) - 1)).astype(np.int64), values, dense
