"""TensorFlow's test cases of variables, containers, placement and resolvers. The numbers above each test are those in
tests/conformance/rows.txt."""
import json

import numpy as np
import pytest

import capstan as cs

partitioners = cs.partitioners


@pytest.fixture
def make(cluster):
    """Returns a function that creates a strategy with a partitioner, and closes the previous strategy."""
    made = []

    def strategy(partitioner=None):
        while made:
            made.pop().close()
        made.append(cs.ParameterServerStrategy(cluster, partitioner))
        return made[-1]

    yield strategy
    for each in made:
        each.close()


def sharded(make, values, shards, **options):
    strategy = make(partitioners.FixedShardsPartitioner(shards))
    with strategy.scope():
        return cs.Variable(values, **options)


# A2.2: same.
def test_variables_are_placed_round_robin(make):
    strategy = make()
    with strategy.scope():
        variables = [cs.Variable(0.0) for _ in range(5)]
    assert [variable.shards()[0][3] for variable in variables] == [0, 1, 0, 1, 0]


# A2.7, B89: same.
def test_a_variable_without_a_partitioner_has_one_shard(make):
    strategy = make()
    with strategy.scope():
        assert len(cs.Variable(np.zeros((10, 2))).shards()) == 1


# A2.8, A3.2, B90: same.
@pytest.mark.parametrize("rows, sizes", [(5, [3, 2]), (6, [3, 3])])
def test_rows_are_divided_by_the_div_rule(make, rows, sizes):
    values = np.arange(rows * 2.0).reshape(rows, 2)
    v = sharded(make, values, 2)
    assert [(size, ps) for _, _, size, ps in v.shards()] == [(sizes[0], 0), (sizes[1], 1)]
    first, second = v.variables
    np.testing.assert_array_equal(first.pull(), values[: sizes[0]])
    np.testing.assert_array_equal(second.pull(), values[sizes[0]:])


# A2.6, B98: same.
def test_shape_and_dtype_come_from_the_value(make):
    values = [[0.0, 1.0], [2.0, 3.0]]
    for initial in (values, np.array(values, np.float32), lambda: np.array(values, np.float32)):
        v = sharded(make, initial, 2)
        assert v.shape == (2, 2) and v.dtype == np.float32
        assert [part.pull().tolist() for part in v.variables] == [[values[0]], [values[1]]]


# A2.9, B110: same.
def test_partitioner_with_a_fixed_number_of_shards():
    assert partitioners.FixedShardsPartitioner(2)([10, 3], 1) == [2]


# A2.10, B111-B112, B116: same.
@pytest.mark.parametrize(
    "bytes_, most, shape, shards", [(4, 2, [6, 1], 2), (4, 10, [6, 1], 6), (256 << 10, 16, [1024, 1024], 16), (256 << 10, 2, [1024, 1024], 2)]
)
def test_partitioner_by_minimum_size(bytes_, most, shape, shards):
    assert partitioners.MinSizePartitioner(bytes_, most)(shape, 1) == [shards]


# A2.11, B113-B115: same.
@pytest.mark.parametrize("arguments, shards", [((4,), 6), ((4, 2), 2), ((1024,), 1)])
def test_partitioner_by_maximum_size(arguments, shards):
    assert partitioners.MaxSizePartitioner(*arguments)([6, 1], 1) == [shards]


# B118: same.
def test_thirteen_rows_in_five_shards(make):
    assert [rows for _, _, rows, _ in sharded(make, np.zeros(13), 5).shards()] == [3, 3, 3, 2, 2]


# B119: same.
def test_properties_of_a_small_container(make):
    v = sharded(make, [0, 1], 2, name="s")
    assert (v.shape, v.dtype, v.name, [part.name for part in v.variables]) == ((2,), np.int32, "s", ["s/part_0", "s/part_1"])


# A3.3-A3.4, B120-B122, B133: same.
def test_assignments_reach_every_shard(make):
    v = sharded(make, np.zeros((4, 2)), 3)
    np.testing.assert_array_equal(v.assign([[4, 4], [5, 5], [6, 6], [7, 7]]).pull(), [[4, 4], [5, 5], [6, 6], [7, 7]])
    v.assign([[0, 0], [1, 1], [2, 2], [3, 3]]).assign_add([[1, 1], [1, 1], [2, 2], [2, 2]])
    assert v.pull()[:, 0].tolist() == [1, 2, 4, 5]
    v.assign_sub([[0, 0], [1, 1], [1, 1], [3, 3]])
    assert v.pull()[:, 0].tolist() == [1, 1, 3, 2]


# A3.5, B124-B131: same.
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "max", "min", "update"])
def test_scatter_twice_equals_an_unsharded_variable(make, name):
    rows, values = [0, 10, 12, 21, 22], np.arange(1, 6, dtype=np.float32)
    results = []
    for shards in (1, 3):
        v = sharded(make, np.ones(30, np.float32), shards)
        for _ in range(2):
            getattr(v, f"scatter_{name}")(cs.IndexedSlices(values, rows))
        results.append(v.pull())
    np.testing.assert_array_equal(results[0], results[1])
    assert not np.array_equal(results[0], np.ones(30)) or name == "min"


# A3.6, B132: same.
def test_sparse_read_equals_an_unsharded_variable(make):
    values = np.random.default_rng(0).random((30, 2))
    np.testing.assert_array_equal(sharded(make, values, 3).sparse_read([0, 10, 12, 21, 22]), values[[0, 10, 12, 21, 22]])


# A3.7, B134, B151-B175: same.
@pytest.mark.parametrize("index", [
    slice(None, 2), slice(-8, 2), slice(-10, 2), slice(5, None), slice(5, -1), slice(None, None, 3), slice(None, None, 5),
    slice(1, None, 6), slice(1, 5, 6), slice(1, None, 7), slice(2, 7), slice(2, 7, 2), slice(2, 7, 3), slice(-1, -2, None),
    slice(None, None, -1), slice(-1, -3, -1), slice(5, 1, -2), slice(3, 3), (slice(None), 0), (..., 1), (0, 1), -1,
    (slice(None), None), np.array([True, False] * 4),
], ids=repr)
def test_slices_of_a_container(make, index):
    values = np.arange(1, 17).reshape(8, 2)
    v = sharded(make, values, 3)
    np.testing.assert_array_equal(v[index], values[index])
    np.testing.assert_array_equal(np.asarray(v), values)


# A3.8-A3.9, B150: same.
def test_embedding_lookups_over_three_shards(make):
    v = sharded(make, np.arange(1, 11, dtype=np.float32).reshape(5, 2), 3)
    np.testing.assert_array_equal(cs.embedding_lookup(v, [0, 3, 4]), [[1, 2], [7, 8], [9, 10]])
    combined = cs.embedding_lookup_sparse(v, [0, 3, 4, 1], [0, 2, 3, 4], combiner="mean")
    np.testing.assert_array_equal(combined, [[4, 5], [9, 10], [3, 4]])


# B178, B180: same.
def test_arithmetic_and_comparison(make):
    v, w = sharded(make, [1, 2], 2), [1, 2]
    assert (v == np.array(w)).tolist() == [True, True] and (v + w).tolist() == [2, 4] and v.numpy().tolist() == [1, 2]


# A3.10, B101-B104, B135-B139, B181: same.
@pytest.mark.parametrize("saved, restored", [(2, 2), (2, 4), (4, 2), (3, 1), (1, 3)])
def test_restored_into_other_shards(make, tmp_path, saved, restored):
    values = np.arange(12.0).reshape(6, 2)
    strategy = make(partitioners.FixedShardsPartitioner(saved))
    with strategy.scope():
        cs.Variable(values, name="v")
    cs.CheckpointManager(strategy, str(tmp_path)).save(1)
    strategy.close()
    other = make(partitioners.FixedShardsPartitioner(restored))
    manager = cs.CheckpointManager(other, str(tmp_path))
    with other.scope():
        v = cs.Variable(np.zeros((6, 2)), name="v")
        assert manager.restore_latest() == 1
        np.testing.assert_array_equal(v.pull(), values)


# A2.1: same.
def test_scopes_nest_and_end(make):
    strategy = make()
    assert cs.current_strategy() is None
    with strategy.scope() as entered:
        assert entered is strategy and cs.current_strategy() is strategy
        with strategy.scope():
            cs.Variable(1.0)
        assert cs.current_strategy() is strategy
    assert cs.current_strategy() is None


# A1.2, B105-B109: same.
@pytest.mark.parametrize("spec, task, word", [
    ({"worker": ["a:1"], "ps": ["b:1"], "other": ["c:1"]}, ("worker", 0), "other"),
    ({"chief": ["c:1"], "worker": ["a:1"], "ps": ["b:1"]}, ("other", 0), "other"),
    ({"chief": ["c:1", "d:1"], "worker": ["a:1"], "ps": ["b:1"]}, ("chief", 0), "chief"),
    ({"chief": ["c:1"], "ps": ["b:1"]}, ("chief", 0), "worker"),
    ({"chief": ["c:1"], "worker": ["a:1"]}, ("chief", 0), "ps"),
])
def test_invalid_clusters_are_named(spec, task, word):
    with pytest.raises(cs.errors.InvalidArgumentError, match=word):
        cs.cluster_resolver.validate_cluster(spec, *task)


# A1.7-A1.8, B229-B232, B237: same.
def test_tf_config_of_a_task(monkeypatch):
    spec = {"ps": ["localhost:1111"], "worker": ["localhost:2222", "localhost:3333"]}
    config = {"cluster": spec, "task": {"type": "ps", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    resolver = cs.cluster_resolver.TFConfigClusterResolver
    assert resolver().cluster_spec() == spec
    assert resolver().master() == "localhost:1111" and resolver().master("worker", 1) == "localhost:3333"
    assert resolver(task_type="worker", task_id=0).master() == "localhost:2222"
    monkeypatch.setenv("TF_CONFIG", json.dumps({**config, "session_master": "sessionmaster:2222", "rpc_layer": "grpc"}))
    assert resolver().master() == "sessionmaster:2222" and resolver().rpc_layer == "grpc"
    monkeypatch.setenv("TF_CONFIG", "")
    assert resolver().master() == "" and resolver().cluster_spec() == {}
