"""TensorFlow's test cases of ClusterCoordinator. The numbers above each test are those in
tests/conformance/rows.txt."""
import threading
import time

import numpy as np
import pytest

import capstan as cs
import functions_of_a_module as functions


def fail(message="out of range"):
    raise cs.errors.InvalidArgumentError(message)


def outcome(value):
    try:
        return value.fetch()
    except cs.errors.CancelledError:
        return "cancelled"


def push_two(v):
    v.push_dense(np.full(v.shape, -2.0))


@pytest.fixture
def v(variable):
    return variable(np.zeros(1), name="v", optimizer=cs.optimizers.SGD(1.0))


# A5.2, A5.7, B15-B16: same.
def test_nested_results(coordinator):
    result = coordinator.schedule(lambda x: (x + 1, (x + 2, x + 3), [x + 4], {"v": x}), (1,))
    assert result.fetch() == (2, (3, 4), [5], {"v": 1})
    assert coordinator.fetch([result, {"again": (result,)}])[1] == {"again": ((2, (3, 4), [5], {"v": 1}),)}


# A5.8, B17: same.
def test_a_function_reads_a_dataset_and_updates_a_variable(coordinator, v):
    iterator = iter(coordinator.create_per_worker_dataset(lambda: iter([1.0, 1.0, 1.0])))

    def step(iterator, v):
        value = next(iterator)
        v.push_dense([-value])
        return value

    assert coordinator.fetch([coordinator.schedule(step, (iterator, v)) for _ in range(2)]) == [1, 1]
    coordinator.join()
    assert v.pull() == 2


# A5.5-A5.6, B18: same.
def test_schedule_and_join_several_times(coordinator, v):
    coordinator.join()
    assert v.pull() == 0
    for expected in (10, 20):
        for _ in range(5):
            coordinator.schedule(push_two, (v,))
        for _ in range(3):
            coordinator.join()
        assert v.pull() == expected and coordinator.done()


# B20: same.
def test_variables_in_a_dataset_function_are_rejected(coordinator):
    iterator = iter(coordinator.create_per_worker_dataset(lambda: [cs.Variable(0.0)]))
    with pytest.raises(cs.errors.FailedPreconditionError, match="scope"):
        coordinator.schedule(next, (iterator,)).fetch()
    with pytest.raises(cs.errors.FailedPreconditionError):
        coordinator.join()


# A5.10, B13: same.
def test_a_dataset_sharded_by_the_workers_index(coordinator):
    def dataset_fn():
        return cs.data.Dataset.range(10).shard(2, cs.current_worker_index())

    iterator = iter(coordinator.create_per_worker_dataset(dataset_fn))
    assert coordinator.run_on_every_worker(lambda it: sum(int(n) for n in it), (iterator,)) == [20, 25]


# B21: same.
def test_shuffled_datasets_differ_between_workers(coordinator):
    iterator = iter(coordinator.create_per_worker_dataset(lambda: cs.data.Dataset.range(100).shuffle(100)))
    first, second = coordinator.run_on_every_worker(list, (iterator,))
    assert sorted(first) == sorted(second) == list(range(100)) and first != second


class Calls:
    def __init__(self):
        self.count = 0

    def add(self):
        self.count += 1
        return self.count


# A5.9, B22: same.
def test_each_worker_counts_for_itself(coordinator):
    calls = coordinator.create_per_worker_resource(Calls)
    for _ in range(10):
        coordinator.schedule(lambda calls: calls.add(), (calls,))
    coordinator.join()
    assert sum(coordinator.run_on_every_worker(lambda calls: calls.count, (calls,))) == 10


# B23: better: the result of an earlier function may be an argument; the function waits for it.
def test_a_pending_result_as_an_argument(coordinator):
    slow = coordinator.schedule(lambda: time.sleep(0.05) or 4)  # still runs at the next call
    assert coordinator.schedule(lambda x: x + 1, (slow,)).fetch() == 5


# B24: same.
def test_a_function_that_workers_cannot_run(coordinator):
    lock = threading.Lock()
    with pytest.raises(cs.errors.InvalidArgumentError, match="lock"):
        coordinator.schedule(lambda: lock)
    coordinator.join()


# B26: same.
def test_a_finished_dataset_is_read_by_each_worker(coordinator):
    iterator = iter(coordinator.create_per_worker_dataset(lambda: cs.data.Dataset.range(1, 11).batch(4)))
    assert coordinator.schedule(lambda it: next(it).tolist(), (iterator,)).fetch() == [1, 2, 3, 4]


# B27: same.
def test_two_datasets_as_arguments(coordinator):
    first = iter(coordinator.create_per_worker_dataset(lambda: cs.data.Dataset.range(0, 5)))
    second = iter(coordinator.create_per_worker_dataset(lambda: cs.data.Dataset.range(5, 10)))
    assert coordinator.schedule(lambda a, b: int(next(a) + next(b)), (first, second)).fetch() == 5


# B28: same.
def test_iterators_created_repeatedly(coordinator):
    dataset = coordinator.create_per_worker_dataset(lambda: cs.data.Dataset.range(1, 100))
    for _ in range(10):
        assert coordinator.schedule(next, (iter(dataset),)).fetch() >= 1
    coordinator.join()


# A5.11, B6, B32, B36: same.
def test_join_raises_the_error_once(coordinator):
    failed = coordinator.schedule(fail)
    with pytest.raises(cs.errors.InvalidArgumentError, match="out of range"):
        coordinator.join()
    coordinator.join()
    with pytest.raises(cs.errors.InvalidArgumentError, match="out of range"):
        failed.fetch()


# B7-B9, B33: same.
@pytest.mark.parametrize("call", [lambda c: c.done(), lambda c: c.schedule(len, ("",))], ids=["done", "schedule"])
def test_done_and_schedule_raise_the_error_too(coordinator, call):
    failed = coordinator.schedule(fail)
    with pytest.raises(cs.errors.InvalidArgumentError):
        failed.fetch()
    with pytest.raises(cs.errors.InvalidArgumentError):
        call(coordinator)
    coordinator.join()


# B10, B34-B35, B74: same.
def test_several_errors_raise_one_and_are_cleared(coordinator, v):
    for message in ("first", "second"):
        for _ in range(3):
            try:
                coordinator.schedule(fail, (message,))
            except cs.errors.InvalidArgumentError as error:
                assert message in str(error)
        try:
            coordinator.join()
        except cs.errors.InvalidArgumentError as error:
            assert message in str(error)
        coordinator.join()
    coordinator.schedule(push_two, (v,))
    coordinator.join()
    assert v.pull() == 2


# A5.12, B37: same.
def test_an_argument_that_cannot_be_created(coordinator):
    def broken():
        raise ValueError("no such data")

    iterator = iter(coordinator.create_per_worker_dataset(broken))
    result = coordinator.schedule(next, (iterator,))
    with pytest.raises(cs.errors.UnknownError, match="no such data"):
        result.fetch()
    with pytest.raises(cs.errors.UnknownError, match="no such data"):
        coordinator.join()


# B39: same.
def test_an_error_cancels_waiting_functions(coordinator, v):
    functions.may_fail.clear(), functions.may_end.clear()
    running = coordinator.schedule(functions.end_when_told)
    coordinator.schedule(functions.fail_when_told)
    waiting = [coordinator.schedule(push_two, (v,)) for _ in range(1000)]
    functions.may_fail.set()
    with pytest.raises(cs.errors.UnknownError, match="told to"):
        threading.Timer(0.2, functions.may_end.set).start()  # join waits for the running function
        coordinator.join()
    outcomes = [outcome(value) for value in waiting]
    assert "cancelled" in outcomes and v.pull() == 2 * outcomes.count(None)
    assert outcome(running) in (None, "cancelled")
    coordinator.schedule(push_two, (v,))
    coordinator.join()


# B40: same.
def test_objects_of_workers_survive_an_error(coordinator):
    iterator = iter(coordinator.create_per_worker_dataset(lambda: range(100)))
    before = coordinator.schedule_on(0, next, (iterator,)).fetch()
    coordinator.schedule(fail)
    with pytest.raises(cs.errors.InvalidArgumentError):
        coordinator.join()
    assert coordinator.schedule_on(0, next, (iterator,)).fetch() == before + 1


# A5.4, B12: same.
def test_functions_for_one_worker_do_not_block_join(coordinator):
    gate = coordinator.schedule_on(1, time.sleep, (0.3,))
    coordinator.schedule(len, ("abc",))
    coordinator.join()
    assert not gate.ready() or coordinator.done()
    gate.fetch()


# A5.17, B80: same.
def test_states_of_all_tasks(coordinator):
    states = {(role, index): dead for role, index, dead, _ in coordinator.task_states()}
    assert states == {("ps", 0): False, ("ps", 1): False, ("worker", 0): False, ("worker", 1): False}


# B42: same.
def test_two_functions_assign_two_variables(coordinator, variable):
    first, second = variable(0.0), variable(0.0)
    coordinator.schedule(lambda a: a.assign(0.1) and None, (first,))
    coordinator.schedule(lambda a: a.assign(0.8) and None, (second,))
    coordinator.join()
    np.testing.assert_allclose([first.pull(), second.pull()], [0.1, 0.8], rtol=1e-6)


# B55: same.
def test_five_thousand_functions(coordinator):
    values = [coordinator.schedule(lambda x: x + 1, (3,)) for _ in range(5000)]
    assert set(coordinator.fetch(values)) == {4}
    coordinator.join()
