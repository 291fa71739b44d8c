"""Variables: creation, reads, pushes, assignments, slices, dtypes."""
import sys

import ml_dtypes
import numpy as np
import pytest

import capstan as cs

DTYPES = ["float32", "float64", "float16", "bfloat16", "int32", "int64"]


def values(rows=10, width=3, dtype="float32"):
    return np.arange(rows * width).reshape(rows, width).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_reads_return_what_was_assigned(variable, dtype):
    expected = values(dtype=dtype)
    v = variable(expected, name="v")
    assert v.dtype == expected.dtype and v.shape == (10, 3) and v.ndim == 2 and len(v) == 10
    np.testing.assert_array_equal(v.pull(), expected)
    np.testing.assert_array_equal(v.lookup([7, 0, 7]), expected[[7, 0, 7]])
    np.testing.assert_array_equal(v.lookup([[1], [2]], consistent=True), expected[[[1], [2]]])
    v.assign(expected[::-1])
    np.testing.assert_array_equal(np.asarray(v), expected[::-1])


def test_asynchronous_reads_keep_their_array_alive(variable):
    v = variable(np.zeros((4, 2), np.float32))
    out = np.empty((1, 2), np.float32)
    count = sys.getrefcount(out)
    for start in (
        lambda: v._native.lookup_async(np.array([1]), out),
        lambda: cs._capstan.lookup_all_async([(v._native, np.array([1]), out)]),
    ):
        pending = start()
        assert sys.getrefcount(out) > count
        del pending
        assert sys.getrefcount(out) == count


def test_int8_rows(variable):
    v = variable(np.array([[0, 255, 17, 3]], np.float32), name="v", int8_rows=True)
    assert v.numpy().tolist() == [[0, 255, 17, 3]]
    with pytest.raises(cs.errors.FailedPreconditionError, match="int8 rows"):
        v.view()
    with pytest.raises(cs.errors.InvalidArgumentError, match="int8_rows"):
        variable(np.zeros((2, 4)), int8_rows=True)


def test_stochastic_rounding(variable):
    ones = np.ones((4, 1000), ml_dtypes.bfloat16)
    nearest = variable(ones, name="n", optimizer=cs.optimizers.SGD(1.0))
    v = variable(ones, name="v", optimizer=cs.optimizers.SGD(1.0), stochastic_rounding=True)
    for _ in range(16):
        for one in (nearest, v):
            one.push_dense(np.full(ones.shape, -(2**-11), ml_dtypes.bfloat16))
    v.flush()
    assert (nearest.pull() == 1).all()
    assert abs(v.pull().astype(np.float32).mean() - (1 + 2**-7)) < 2**-10
    with pytest.raises(cs.errors.InvalidArgumentError, match="float32"):
        variable(0.0, stochastic_rounding=True)
    variable(0.0, stochastic_rounding=True, communication_dtype="bfloat16")  # rounds gradients that are sent


def test_bfloat16_communication(variable, strategy):
    exact = 1 + 2.0**-12
    v = variable([[0.0, 0.0]], name="v", optimizer=cs.optimizers.SGD(-1.0), communication_dtype="bfloat16")
    v.push([0], [[exact, 2.0]])
    v.flush()
    # One process sends nothing. tests/python/programs/sums.py checks ranks.
    np.testing.assert_array_equal(v.pull(), np.array([[exact, 2.0]], np.float32))
    for communication_dtype in ("float16", ml_dtypes.bfloat16):
        with pytest.raises(cs.errors.InvalidArgumentError, match="communication_dtype"):
            variable(np.zeros(2), communication_dtype=communication_dtype)
    with strategy.scope():
        table = cs.DynamicTable("t", 2, communication_dtype="bfloat16")
    np.testing.assert_array_equal(table.lookup([7]), [[0, 0]])


def test_int8_lookups(variable, strategy):
    rows = np.linspace(0, 1, 30, dtype=np.float32).reshape(3, 10)
    v = variable(rows, name="v", int8_lookups=True)
    # One process sends nothing. tests/python/programs/sums.py checks ranks.
    np.testing.assert_array_equal(v.lookup([2, 0]), rows[[2, 0]])
    variable(np.zeros(2), int8_lookups=False)
    with pytest.raises(cs.errors.InvalidArgumentError, match="int8_lookups"):
        variable(np.zeros(2), int8_lookups=True)
    with strategy.scope():
        table = cs.DynamicTable("t", 2, int8_lookups=True)
    np.testing.assert_array_equal(table.lookup([7]), [[0, 0]])


def test_large_reads_reuse_memory(variable):
    v = variable(np.arange(1 << 16, dtype=np.float32).reshape(-1, 64), name="large")
    first = v.pull()
    place = first.ctypes.data
    np.testing.assert_array_equal(first[-1], np.arange((1 << 16) - 64, 1 << 16))
    other = v.pull()
    assert other.ctypes.data != place
    del first
    assert v.lookup(np.arange(1024)).ctypes.data == place
    np.testing.assert_array_equal(other[0], np.arange(64))


def test_booleans(variable):
    v = variable([True, False, True], name="b")
    assert v.dtype == np.bool_
    v.assign([False, False, True])
    np.testing.assert_array_equal(v.pull(), [False, False, True])


def test_python_numbers_have_the_dtypes_of_tensorflow(variable):
    assert variable(1.5).dtype == np.float32
    assert variable([1, 2]).dtype == np.int32
    assert variable(np.zeros(2)).dtype == np.float64
    assert variable([1, 2], dtype="float64").dtype == np.float64


def test_scalars(variable):
    v = variable(2.0)
    assert v.shape == () and v.pull() == 2
    v.assign_add(1)
    assert v.pull() == 3 and v
    with pytest.raises(TypeError):
        len(v)


def test_names(variable):
    assert [variable(0.0).name, variable(0.0).name, variable(0.0, name="w").name] == ["Variable", "Variable_1", "w"]
    with pytest.raises(cs.errors.AlreadyExistsError, match="w"):
        variable(0.0, name="w")


def test_shards_hold_the_rows_in_order(variable):
    v = variable(values(), name="v")
    assert [(name, first, rows) for name, first, rows, _ in v.shards()] == [("v/part_0", 0, 5), ("v/part_1", 5, 5)]
    first, second = v.variables
    np.testing.assert_array_equal(second.lookup([0]), values()[[5]])
    first.assign(np.zeros((5, 3), np.float32))
    np.testing.assert_array_equal(v.lookup([0, 5]), [[0, 0, 0], [15, 16, 17]])


def test_initializers_do_not_depend_on_shards(variable):
    uniform = cs.initializers.uniform(-1, 1, seed=5)
    v = variable(uniform, name="v", shape=(100, 4)).pull()
    assert v.dtype == np.float32 and -1 <= v.min() < -0.9 and 0.9 < v.max() < 1
    np.testing.assert_array_equal(v, variable(uniform, name="w", shape=(100, 4)).pull())
    unseeded = cs.initializers.uniform(-1, 1)
    assert np.any(variable(unseeded, name="x", shape=(9,)).pull() != variable(unseeded, name="y", shape=(9,)).pull())
    assert variable(cs.initializers.ones(), shape=(3,), dtype="int64").pull().tolist() == [1, 1, 1]
    assert variable(lambda: np.full((2, 2), 7.0), name="called").pull().tolist() == [[7, 7], [7, 7]]
    with pytest.raises(cs.errors.InvalidArgumentError, match="shape="):
        variable(uniform)


def test_push_applies_the_optimizer(variable):
    v = variable(np.zeros((10, 3), np.float32), optimizer=cs.optimizers.SGD(0.5))
    v.push([1, 8, 1], np.ones((3, 3)))
    v.flush()
    expected = np.zeros((10, 3), np.float32)
    expected[1], expected[8] = -1, -0.5  # repeated ids add up
    np.testing.assert_array_equal(v.pull(), expected)
    v.push(cs.IndexedSlices(indices=[[0], [9]], values=np.full((2, 1, 3), 2)))
    v.push_dense(np.full((10, 3), 4))
    v.push_async([0], np.zeros((1, 3))).wait()
    assert v.pull()[[0, 1, 9], 0].tolist() == [-3, -3, -3]


@pytest.mark.parametrize(
    "optimizer, first_step",
    [
        (cs.optimizers.SGD(0.1), 0.1 * 2),
        (cs.optimizers.Momentum(0.1, momentum=0.9), 0.1 * 2),
        (cs.optimizers.Adagrad(0.1, initial_accumulator_value=0), 0.1),
        (cs.optimizers.Adam(0.1), 0.1),
        (cs.optimizers.AdamW(0.1, weight_decay=0.0), 0.1),
        (cs.optimizers.RMSprop(0.1, rho=0.0), 0.1),
        (cs.optimizers.SGD(cs.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)), 0.1 * 2),
        (cs.optimizers.SGD(cs.optimizers.schedules.PiecewiseConstantDecay([10], [0.1, 0.01])), 0.1 * 2),
        (cs.optimizers.SGD(cs.optimizers.schedules.CosineDecay(0.1, 10)), 0.1 * 2),
        (cs.optimizers.SGD(cs.optimizers.schedules.PolynomialDecay(0.1, 10)), 0.1 * 2),
        (cs.optimizers.SGD(cs.optimizers.schedules.InverseTimeDecay(0.1, 1, 1.0)), 0.1 * 2),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_first_step_of_each_optimizer(variable, optimizer, first_step):
    v = variable(np.ones(4, np.float64), optimizer=optimizer)
    v.push_dense(np.full(4, 2.0))
    v.flush()
    np.testing.assert_allclose(v.pull(), 1 - first_step, rtol=1e-6)


def test_learning_rate_can_change(variable):
    v = variable(np.zeros(2, np.float32), optimizer=cs.optimizers.SGD(1.0))
    v.set_learning_rate(0.25)
    v.push_dense([1, 2])
    v.flush()
    assert v.pull().tolist() == [-0.25, -0.5]


def test_assignments_and_scatter_operations(variable):
    v, expected = variable(values(), name="v"), values()
    ids, rows = [2, 9], np.full((2, 3), 2, np.float32)
    assert v.assign_add(1) is v
    expected += 1
    v.assign_sub(np.full((10, 3), 3))
    expected -= 3
    for call, change in [
        ("scatter_add", lambda old: old + 2),
        ("scatter_sub", lambda old: old - 2),
        ("scatter_mul", lambda old: old * 2),
        ("scatter_div", lambda old: old / 2),
        ("scatter_max", lambda old: np.maximum(old, 2)),
        ("scatter_min", lambda old: np.minimum(old, 2)),
        ("scatter_update", lambda old: rows),
    ]:
        assert getattr(v, call)(ids, rows) is v
        expected[ids] = change(expected[ids])
        np.testing.assert_array_equal(v.pull(), expected, call)
    v.scatter_add(cs.IndexedSlices(rows, ids))
    v.batch_scatter_update([0], np.zeros((1, 3)))
    expected[ids] += 2
    expected[0] = 0
    np.testing.assert_array_equal(v.pull(), expected)


@pytest.mark.parametrize(
    "index",
    [3, -1, slice(2, 7), slice(None, None, -2), slice(8, 1, -3), slice(7, 2), (slice(1, 9, 2), 1), (..., 0), (4, slice(1, None)),
     np.array([1, 3]), (slice(None), None, 2)],
    ids=repr,
)
def test_indices_are_those_of_numpy(variable, index):
    np.testing.assert_array_equal(variable(values())[index], values()[index])


def test_arithmetic_reads_the_variable(variable):
    v = variable(values())
    np.testing.assert_array_equal(v * 2 + 1, values() * 2 + 1)
    np.testing.assert_array_equal(np.sqrt(v), np.sqrt(values()))
    np.testing.assert_array_equal(v - v, np.zeros((10, 3)))
    assert (v >= 0).all() and v in {v}


def test_out_receives_the_rows(variable):
    v, out = variable(values()), np.empty((2, 3), np.float32)
    assert v.lookup([1, 2], out=out) is out
    np.testing.assert_array_equal(out, values()[1:3])
    assert v.lookup_async([5, 6], out=out).wait() is out
    np.testing.assert_array_equal(out, values()[5:7])
    for bad in (np.empty((2, 3)), np.empty((3, 2), np.float32).T):
        with pytest.raises(cs.errors.InvalidArgumentError, match="contiguous"):
            v.lookup([1, 2], out=bad)
    with pytest.raises(cs.errors.InvalidArgumentError):
        v.lookup([1, 2], out=np.empty((5, 3), np.float32))


def test_errors_name_the_invalid_argument(variable):
    v = variable(values(), name="v")
    with pytest.raises(cs.errors.OutOfRangeError, match="10"):
        v.lookup([10])
    with pytest.raises(IndexError, match="12"):
        v[12]
    with pytest.raises(cs.errors.InvalidArgumentError, match="float64"):
        v.lookup([1.5])
    with pytest.raises(ValueError, match=r"push of variable 'v'.*\(1, 2\).*\(1, 3\)"):
        v.push([1], [[1, 2]])
    with pytest.raises(cs.errors.InvalidArgumentError, match="complex"):
        variable(np.zeros(2, complex))
    with pytest.raises(cs.errors.InvalidArgumentError, match="shape"):
        variable(np.zeros(2), shape=(3,))
    with pytest.raises(cs.errors.InvalidArgumentError, match="learning_rate"):
        variable(np.zeros(2), optimizer=cs.optimizers.SGD(float("nan")))
    with pytest.raises(cs.errors.InvalidArgumentError, match="found optimizer 'sgd'"):
        variable(np.zeros(2), optimizer="sgd")


def test_a_variable_needs_a_scope(cluster):
    with pytest.raises(cs.errors.FailedPreconditionError, match="scope"):
        cs.Variable(0.0)


def test_variables_of_a_closed_strategy_are_closed(cluster):
    strategy = cs.ParameterServerStrategy(cluster)
    with strategy.scope():
        v = cs.Variable(np.zeros(2))
    strategy.close()
    strategy.close()
    with pytest.raises(cs.errors.FailedPreconditionError, match="closed"):
        v.pull()
    with pytest.raises(cs.errors.FailedPreconditionError, match="closed"), strategy.scope():
        pass


def test_embedding_lookup(variable):
    v = variable(values(), name="v")
    np.testing.assert_array_equal(cs.embedding_lookup(v, [[3, 1], [3, 3]]), values()[[[3, 1], [3, 3]]])
    clipped = cs.embedding_lookup(v, [0, 9], max_norm=1.0)
    np.testing.assert_allclose(np.linalg.norm(clipped, axis=1), 1, rtol=1e-6)


@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
def test_embedding_lookup_sparse(variable, combiner):
    v, weights = variable(values(), name="v"), np.array([1, 2, 3], np.float32)
    out = cs.embedding_lookup_sparse(v, [1, 4, 4], [0, 2, 2, 3], weights, combiner)
    divisor = {"sum": lambda w: 1, "mean": np.sum, "sqrtn": lambda w: np.sqrt(np.sum(w * w))}[combiner]
    expected = [
        (values()[1] + 2 * values()[4]) / divisor(weights[:2]),
        np.zeros(3),
        3 * values()[4] / divisor(weights[2:]),
    ]
    np.testing.assert_allclose(out, expected, rtol=1e-6)
    with pytest.raises(cs.errors.InvalidArgumentError, match="row_splits"):
        cs.embedding_lookup_sparse(v, [1], [0, 2])


def test_lookups_of_several_variables(variable):
    v, w = variable(values(), name="v"), variable(values(4, 2, "int64"), name="w")
    first, second = cs.lookup_all([(v, [1, 9]), (w, [[3]])]).wait()
    np.testing.assert_array_equal(first, values()[[1, 9]])
    np.testing.assert_array_equal(second, values(4, 2, "int64")[[[3]]])
    with pytest.raises(cs.errors.OutOfRangeError):
        cs.lookup_all([(v, [1]), (w, [4])]).wait()


def test_partitioners(cluster):
    shape = [100, 10]
    assert cs.partitioners.FixedShardsPartitioner(4)(shape, 1) == [4]
    assert cs.partitioners.MaxSizePartitioner(1000)(shape, 1)[0] == 4
    assert cs.partitioners.MinSizePartitioner(1000, 10)(shape, 1)[0] == 4
    with pytest.raises(cs.errors.InvalidArgumentError):
        cs.partitioners.FixedShardsPartitioner(0)(shape, 1)


def test_loads_count_pushes(strategy, variable):
    v = variable(values(), name="v")
    before = strategy.loads()
    v.push([0, 9], np.ones((2, 3)))
    v.flush()
    loads = strategy.loads()
    assert [load.shard_names for load in loads] == [["v/part_0"], ["v/part_1"]]
    assert [now.rows_pushed - then.rows_pushed for now, then in zip(loads, before)] == [1, 1]
    assert strategy.variables() == ["v"] and "v/part_0" in strategy.describe_loads()
