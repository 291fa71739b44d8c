"""Dynamic tables: rows by key."""
import pickle

import ml_dtypes
import numpy as np
import pytest

import capstan as cs

COUNTING = cs.optimizers.SGD(-1.0)


@pytest.fixture
def table(strategy):
    """Returns a function that creates a table in the scope of the strategy."""

    def make(*args, **options):
        options.setdefault("optimizer", COUNTING)
        with strategy.scope():
            return cs.DynamicTable(*args, **options)

    return make


def test_adds_looks_up_and_erases_keys(table):
    t = table("user", 2, cs.initializers.constant(1.0), max_keys=1000)
    assert t.name == "user" and t.dtype == np.float32 and len(t) == 0
    t.push([-5, 1 << 62], [[1, 2], [3, 4]])
    t.flush()
    np.testing.assert_array_equal(t.lookup([[1 << 62], [-5]]), [[[4, 5]], [[2, 3]]])
    np.testing.assert_array_equal(t.lookup([7]), [[0, 0]])
    np.testing.assert_array_equal(t.lookup_or_insert([7, -5]), [[1, 1], [2, 3]])
    t.assign([8], [[9, 10]]).erase([-5, 100])
    np.testing.assert_array_equal(t.contains([7, 8, -5]), [True, True, False])
    assert len(t) == 3
    counts = t.statistics()
    assert (counts["keys"], counts["erased"], counts["refused"]) == (3, 1, 0)
    np.testing.assert_array_equal(t.lookup_async([8]).wait(), [[9, 10]])


@pytest.mark.parametrize(("missing", "row"), [("zeros", 0), ("default_row", 5), ("initial", 1)])
def test_missing_keys(table, missing, row):
    t = table("t", 2, cs.initializers.constant(1.0), missing=missing)
    t.set_default_row([5, 5])
    np.testing.assert_array_equal(t.lookup([3]), [[row, row]])
    assert len(t) == 0


def test_a_missing_key_is_an_error_if_requested(table):
    t = table("t", 1, missing="error")
    with pytest.raises(cs.errors.NotFoundError, match="17"):
        t.lookup([17])


def test_a_full_table_evicts_keys(table):
    t = table("t", 1, max_keys=100, when_full="evict_least_frequent")
    for first in range(0, 1000, 50):
        t.push(np.arange(first, first + 50), np.ones((50, 1)))
    t.push([-1], [[1]])
    t.flush()
    counts = t.statistics()
    assert counts["evicted"] == counts["inserted"] - counts["keys"] > 700
    assert counts["refused"] == 0
    assert len(t) == counts["keys"] <= counts["max_keys"] + 50


def test_keys_are_evicted_by_age(table):
    t = table("t", 1, evict_after=10)
    t.insert(np.arange(8))
    for _ in range(20):
        t.push(np.arange(-8, 0), np.ones((8, 1)))
    t.flush()
    assert len(t) == t.statistics()["evicted"] == 8
    assert t.statistics()["probes"] >= 1


def test_keys_are_admitted_after_some_occurrences(table):
    t = table("t", 1, admit_after=2, missing="default_row")
    t.push([1], [[1]])
    t.flush()
    assert len(t) == 0
    np.testing.assert_array_equal(t.lookup([1]), [[1]])  # the default row was trained
    t.push([1], [[1]])
    t.flush()
    assert t.contains([1]) and t.statistics()["not_admitted"] == 1


def test_keys_are_admitted_with_a_probability(table):
    t = table("t", 1, admit_probability=0.25)
    t.push(np.arange(4000), np.ones((4000, 1)))
    t.flush()
    assert 850 < len(t) < 1150


def test_erases_keys_that_a_predicate_selects(table):
    t = table("t", 2)
    t.assign(np.arange(10), np.repeat(np.arange(10.0), 2).reshape(10, 2))
    assert t.erase_if(lambda keys, rows: np.linalg.norm(rows, axis=1) < 4.0) == 3
    np.testing.assert_array_equal(t.contains([0, 2, 3]), [False, False, True])


def test_rejects_invalid_options(table):
    with pytest.raises(cs.errors.InvalidArgumentError, match="when_full"):
        table("t", 1, when_full="explode")
    with pytest.raises(cs.errors.InvalidArgumentError, match="admit_after"):
        table("t", 1, admit_after=99)
    with pytest.raises(cs.errors.InvalidArgumentError, match="admit_probability"):
        table("t", 1, admit_probability=0)


def test_int8_rows(table):
    t = table("t", 4, optimizer=cs.optimizers.SGD(-1.0), int8_rows=True, stochastic_rounding=True)
    t.push([7], np.array([[0, 255, 17, 3]], np.float32))
    t.flush()
    assert t.lookup([7]).tolist() == [[0, 255, 17, 3]]
    with pytest.raises(cs.errors.InvalidArgumentError, match="int8_rows"):
        table("u", 2, int8_rows=True)


def test_stochastic_rounding(table):
    t = table("t", 2, dtype=ml_dtypes.bfloat16, optimizer=cs.optimizers.SGD(1.0), stochastic_rounding=True)
    keys = np.arange(1000)
    t.assign(keys, np.ones((1000, 2), ml_dtypes.bfloat16))
    for _ in range(16):
        t.push(keys, np.full((1000, 2), -(2**-11), ml_dtypes.bfloat16))
    t.flush()
    assert abs(t.lookup(keys).astype(np.float32).mean() - (1 + 2**-7)) < 2**-10
    with pytest.raises(cs.errors.InvalidArgumentError, match="float32"):
        table("u", 2, stochastic_rounding=True)


def test_keys_may_be_strings(table):
    t = table("t", 1)
    t.push(["red", "green", "red"], [[1], [2], [3]])
    t.flush()
    np.testing.assert_array_equal(t.lookup(np.array(["green", "red", "blue"])), [[2], [4], [0]])
    np.testing.assert_array_equal(t.lookup(cs.hash_keys(["red"])), [[4]])
    assert cs.hash_keys("red", salt=1) != cs.hash_keys("red")
    with pytest.raises(cs.errors.InvalidArgumentError):
        t.lookup([1.5])


def test_embedding_lookups(table, variable):
    t = table("t", 2)
    v = variable(np.ones((3, 1), np.float32), name="v")
    t.assign([10, 20], [[1, 2], [3, 4]])
    np.testing.assert_array_equal(cs.embedding_lookup(t, [20, 10, 20]), [[3, 4], [1, 2], [3, 4]])
    bags = cs.embedding_lookup_sparse(t, [10, 20, 20], [0, 2, 2, 3], combiner="sum")
    np.testing.assert_array_equal(bags, [[4, 6], [0, 0], [3, 4]])
    rows, others = cs.lookup_all([(t, [20]), (v, [2])]).wait()
    np.testing.assert_array_equal(rows, [[3, 4]])
    np.testing.assert_array_equal(others, [[1]])


def test_exports_all_rows(table):
    t = table("t", 1)
    keys = np.arange(-500, 500) * 1_000_003
    t.assign(keys, keys.astype(np.float32)[:, None] % 97)
    exported = {}
    for some, rows in t.export_rows():
        exported.update(zip(some.tolist(), rows[:, 0].tolist()))
    assert exported == dict(zip(keys.tolist(), (keys.astype(np.float32) % 97).tolist()))


def push_once(t, key):
    t.push([key], [[1.0]])
    return t.lookup_or_insert([-1]).shape


def test_is_an_argument_of_functions(table, coordinator):
    t = table("t", 1)
    results = [coordinator.schedule(push_once, (t, i % 10)) for i in range(50)]
    coordinator.join()
    assert results[0].fetch() == (1, 1)
    np.testing.assert_array_equal(t.lookup(np.arange(10)), np.full((10, 1), 5))
    assert len(t) == 11


def test_rejects_invalid_arguments(table):
    for options in ({"dim": 0}, {"dim": 1, "max_keys": 0}, {"dim": 1, "missing": "none"}):
        with pytest.raises(cs.errors.InvalidArgumentError):
            table("t", **options)
    with pytest.raises(cs.errors.FailedPreconditionError):
        cs.DynamicTable("t", 1)
    t = table("t", 2)
    with pytest.raises(cs.errors.InvalidArgumentError, match="shape"):
        t.push([1], [[1.0]])


@pytest.fixture
def words(strategy):
    with strategy.scope():
        return cs.KeyTexts("words", max_bytes=10, max_keys=1000)


def test_texts_of_keys_are_kept(words):
    keys = words.keys_of([["red", "green"], ["red", ""]], salt=3)
    np.testing.assert_array_equal(keys, cs.hash_keys([["red", "green"], ["red", ""]], 3))
    assert words.texts_of(keys).tolist() == [["red", "green"], ["red", ""]]
    assert words.texts_of(cs.hash_keys(["blue"])).tolist() == [""]
    words.keys_of(["green"], salt=3)
    words.keys_of([])
    assert len(words.table) == 2


def test_the_start_of_a_long_text_is_kept(words):
    texts = ["0123456789abcdefg", "0123456789abcde\u20ac", "a\0b"]
    keys = words.keys_of(texts)
    assert words.texts_of(keys).tolist() == ["0123456789abcdef", "0123456789abcde", "a"]
    np.testing.assert_array_equal(words.keys_of(texts), keys)


def test_a_text_with_the_key_of_another_is_rejected(words):
    words.table.assign(cs.hash_keys(["red"]), [[int.from_bytes(b"blue", "little"), 0]])
    with pytest.raises(cs.errors.AlreadyExistsError, match=r"'red' and 'blue'.*'words'"):
        words.keys_of(["red"])


def test_key_texts_are_an_argument_of_functions(words):
    keys = words.keys_of(["red"])
    assert pickle.loads(pickle.dumps(words)).texts_of(keys).tolist() == ["red"]
