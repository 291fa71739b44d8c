"""Several replicas in a worker: threads that run a function together."""
import threading

import numpy as np
import pytest

import capstan as cs


@pytest.fixture(scope="session")
def cluster():
    return cs.Cluster.join(ps=2, workers=2, replicas=2, log_level="error")


def on_a_worker(coordinator, function, *args):
    try:
        return coordinator.schedule(function, args).fetch()
    finally:
        coordinator.join()


# A4.1, A4.5, B185: same.
def test_replicas_run_at_the_same_time(coordinator, strategy):
    def step(strategy):
        barrier = threading.Barrier(2)

        def each():
            barrier.wait(30)
            replica = cs.get_replica_context()
            return replica.replica_id_in_sync_group, replica.num_replicas_in_sync

        assert cs.get_replica_context() is None
        return strategy.run(each).values

    assert on_a_worker(coordinator, step, strategy) == ((0, 2), (1, 2))


# A4.4, A4.6, B220: same.
def test_arguments_by_replica(coordinator, strategy):
    def step(strategy):
        values = strategy.experimental_distribute_values_from_function(lambda context: context.replica_id_in_sync_group * 10)
        nested = strategy.run(lambda a, b, c: (a, b["x"], c), ([values][0], {"x": values}), {"c": 7})
        return nested.values, strategy.experimental_local_results(values), list(values) == [values[0], values[1]]

    assert on_a_worker(coordinator, step, strategy) == (((0, 0, 7), (10, 10, 7)), (0, 10), True)


# A4.2-A4.3, B205-B206, B211-B212: same.
def test_reduce_and_gather(coordinator, strategy):
    def step(strategy):
        parts = cs.PerReplica([np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [5.0, 6.0]])])
        same = cs.PerReplica([np.array([1, 2]), np.array([3, 5])])
        sparse = cs.PerReplica([cs.IndexedSlices([[1.0]], [0]), cs.IndexedSlices([[3.0]], [2])])
        rows = strategy.reduce("MEAN", sparse)
        return {
            "sum": strategy.reduce("SUM", same),
            "mean": strategy.reduce("MEAN", {"a": same})["a"],
            "along": strategy.reduce("MEAN", parts, axis=0),
            "gathered": strategy.gather(parts, 0),
            "sparse": (rows.values, rows.indices),
            "plain": strategy.reduce("MEAN", 3.0),
        }

    result = on_a_worker(coordinator, step, strategy)
    assert result["sum"].tolist() == [4, 7] and result["mean"].tolist() == [2, 3.5]
    assert result["along"].tolist() == [3, 4]
    assert result["gathered"].tolist() == [[1, 2], [3, 4], [5, 6]]
    assert [part.tolist() for part in result["sparse"]] == [[[0.5], [1.5]], [0, 2]] and result["plain"] == 3


# A2.13-A2.14, A4.5, B207, B218: same.
def test_collective_calls(coordinator, strategy, variable):
    total = variable(np.zeros(2), name="total", aggregation="MEAN")

    def step(strategy, total):
        def each():
            replica = cs.get_replica_context()
            mine = float(replica.replica_id_in_sync_group + 1)
            summed = replica.all_reduce("SUM", {"x": mine, "y": np.full(2, mine)})
            joined = replica.all_gather(np.full(replica.replica_id_in_sync_group + 1, mine), 0)
            merged = replica.merge_call(lambda strategy, v, x: (v.name, cs.PerReplica([x[1], x[0]])), (total, mine))
            total.assign_add(np.full(2, mine))
            return summed["x"], summed["y"].tolist(), joined.tolist(), merged

        return strategy.run(each).values

    first, second = on_a_worker(coordinator, step, strategy, total)
    assert first[:3] == second[:3] == (3, [3, 3], [1, 2, 2])
    assert (first[3], second[3]) == (("total", 2), ("total", 1))
    assert total.pull().tolist() == [1.5, 1.5]


# B215, B217: same.
def test_errors_of_replicas(coordinator, strategy):
    def fail(strategy):
        def each():
            if cs.get_replica_context().replica_id_in_sync_group == 1:
                raise KeyError("second")
            return cs.get_replica_context().all_reduce("SUM", 1)

        return strategy.run(each)

    with pytest.raises(cs.errors.UnknownError, match="KeyError: 'second'"):
        coordinator.schedule(fail, (strategy,))
        coordinator.join()

    def differ(strategy):
        def each():
            replica = cs.get_replica_context()
            return replica.all_reduce("SUM" if replica.replica_id_in_sync_group else "MEAN", 1.0)

        return strategy.run(each)

    with pytest.raises(cs.errors.FailedPreconditionError, match="all_reduce"):
        coordinator.schedule(differ, (strategy,))
        coordinator.join()
    for call, error in [
        (lambda s: s.run(lambda: s.reduce("SUM", 1)), cs.errors.FailedPreconditionError),
        (lambda s: s.run(lambda x: x, (cs.PerReplica([1, 2, 3]),)), cs.errors.InvalidArgumentError),
        (lambda s: s.reduce("SUM", 1.0), cs.errors.InvalidArgumentError),
        (lambda s: s.reduce("SUM", cs.PerReplica([np.zeros(1), np.zeros(2)])), cs.errors.InvalidArgumentError),
        (lambda s: s.gather(cs.PerReplica([np.zeros(2), np.zeros(2)]), 1), cs.errors.InvalidArgumentError),
    ]:
        with pytest.raises(error):
            coordinator.schedule(call, (strategy,))
            coordinator.join()


def test_a_failed_merge_call_fails_every_replica(coordinator, strategy):
    def step(strategy):
        def each():
            replica = cs.get_replica_context()
            try:
                replica.merge_call(lambda strategy: 1 / 0)
            except cs.errors.UnknownError as error:
                return str(error)

        return strategy.run(each).values

    assert all("ZeroDivisionError" in text for text in on_a_worker(coordinator, step, strategy))


# A4.7, A4.13, B47: same.
def test_global_batches_are_split(coordinator, strategy):
    def batches(strategy):
        return strategy.experimental_distribute_dataset(cs.data.Dataset.from_tensor_slices((np.arange(7), np.arange(7.0))).batch(5))

    def step(iterator, strategy):
        ids, values = next(iterator).values
        return strategy.run(lambda batch: len(batch[0]), (cs.PerReplica([ids, values]),)).values

    iterator = iter(coordinator.create_per_worker_dataset(lambda: batches(strategy)))
    sizes = [coordinator.schedule_on(0, step, (iterator, strategy)).fetch() for _ in range(2)]
    assert sizes == [(3, 2), (2, 0)]


# A4.8-A4.10, B49: same.
@pytest.mark.parametrize("per_replica", [False, True])
def test_datasets_from_functions(coordinator, strategy, per_replica):
    def make(context):
        size = context.get_per_replica_batch_size(4)
        rows = cs.data.Dataset.range(8).shard(context.num_input_pipelines, context.input_pipeline_id)
        return rows.batch(size)

    iterator = iter(coordinator.create_per_worker_dataset(lambda: strategy.distribute_datasets_from_function(make, per_replica)))
    first = coordinator.schedule_on(0, lambda it: [part.tolist() for part in next(it)], (iterator,)).fetch()
    assert first == ([[0, 2], [1, 3]] if per_replica else [[0, 1], [2, 3]])


def test_pushes_and_lookups_of_replicas(coordinator, strategy, variable):
    v = variable(np.zeros((4, 2)), name="v", optimizer=cs.optimizers.SGD(1.0))

    def step(strategy, v):
        def each():
            row = cs.get_replica_context().replica_id_in_sync_group
            rows = v.lookup([row])
            v.push([row], rows - 1)

        strategy.run(each)

    for _ in range(6):
        coordinator.schedule(step, (strategy, v))
        coordinator.join()
    assert v.pull()[2:].sum() == 0 and (v.pull()[:2] > 0).all()


# B41: same.
def test_the_coordinator_may_run_a_function_itself(strategy):
    assert strategy.num_replicas_in_sync == 2
    assert strategy.run(lambda: cs.get_replica_context().replica_id_in_sync_group).values == (0, 1)
