"""Functions on workers: serialization, results, errors, per-worker objects, and waits."""
import functools
import gc
import os
import signal
import threading
import time

import numpy as np
import pytest

import capstan as cs
import functions_of_a_module as functions


def test_results_are_fetched(coordinator):
    assert coordinator.schedule(functions.add, (1,)).fetch() == 2
    assert coordinator.schedule(functions.add, (1,), {"b": 5}).get() == 6
    assert coordinator.schedule(len, ("abc",)).fetch() == 3
    array = coordinator.schedule(functions.add, (np.arange(3),)).fetch()
    np.testing.assert_array_equal(array, [1, 2, 3])
    value = coordinator.schedule(functions.add, (1,))
    coordinator.join()
    assert value.ready() and coordinator.done()
    assert coordinator.fetch({"a": [value, 5], "b": (value,)}) == {"a": [2, 5], "b": (2,)}


def test_pushes_of_a_function_are_applied_when_it_is_done(coordinator, variable):
    v = variable(np.zeros((6, 2)), name="v", optimizer=cs.optimizers.SGD(1.0))
    for _ in range(20):
        coordinator.schedule(functions.push_ones, (v,))
    coordinator.join()
    np.testing.assert_array_equal(v.pull(), np.full((6, 2), 20))
    assert coordinator.schedule(lambda parts: [part.name for part in parts], (v.variables,)).fetch() == ["v/part_0", "v/part_1"]


def test_combined_pushes_are_applied_when_the_function_is_done(coordinator, variable):
    v = variable(np.zeros((6, 2)), name="v", optimizer=cs.optimizers.SGD(1.0), combine_pushes=cs.CombinePushes(rows=4, pushes=3))

    def push_often():
        for i in range(10):
            v.push([0, i % 6], np.full((2, 2), -1.0))

    for _ in range(5):
        coordinator.schedule(push_often)
    coordinator.join()
    np.testing.assert_array_equal(v.pull()[:, 0], [60, 10, 10, 10, 5, 5])
    # Adagrad divides the first gradient g by |g|; then it applies the sum of the two others, 2g, once.
    once = variable(np.zeros(2), name="once", optimizer=cs.optimizers.Adagrad(1.0, 0.0, 0.0), combine_pushes=cs.CombinePushes(pushes=3))
    coordinator.schedule(lambda: [once.push([0], [-2.0]) for _ in range(3)] and None).fetch()
    np.testing.assert_allclose(once.pull(), [1 + 2 / np.sqrt(5), 0])
    with pytest.raises(cs.errors.InvalidArgumentError, match="0 rows"):
        variable(0.0, combine_pushes=cs.CombinePushes(rows=0))


def test_results_are_arguments_of_later_functions(coordinator):
    one = coordinator.schedule(functions.add, (0,))
    two = coordinator.schedule(functions.add, (one,))
    nested = coordinator.schedule(lambda values: sum(values["all"]), ({"all": [one, two, one]},))
    assert nested.fetch() == 4
    with pytest.raises(TypeError, match="RemoteValue"):
        __import__("pickle").dumps(one)


def test_lambdas_and_closures_are_sent_by_value(coordinator):
    offset = 7

    def shifted(x):
        return functions.add(x, offset)

    assert coordinator.schedule(shifted, (1,)).fetch() == 8
    assert coordinator.schedule(lambda: offset).fetch() == 7


class Unhashable:
    __hash__ = None

    def __call__(self):
        return 3

    def method(self):
        return 4


def test_any_callable_can_be_scheduled(coordinator):
    assert coordinator.schedule(Unhashable()).fetch() == 3
    assert coordinator.schedule(Unhashable().method).fetch() == 4
    assert coordinator.schedule(functools.partial(functions.add, 1, b=2)).fetch() == 3


def test_functions_created_in_a_loop_are_freed(coordinator):
    values = [coordinator.schedule(lambda i=i: i) for i in range(50)]
    assert coordinator.fetch(values) == list(range(50))
    coordinator.join()
    gc.collect()
    assert len(coordinator._functions) == 0


def test_a_closure_may_capture_a_variable(coordinator, variable):
    v = variable(np.full(3, 2.0), name="v")
    assert coordinator.schedule(lambda: float(v.pull().sum())).fetch() == 6


def test_a_closure_may_capture_an_object_per_worker(coordinator):
    iterator = iter(coordinator.create_per_worker_dataset(lambda: iter(range(5, 1000))))
    assert coordinator.schedule(lambda: int(next(iterator))).fetch() == 5


def test_errors_name_objects_that_cannot_be_serialized(coordinator):
    lock = threading.Lock()
    with pytest.raises(cs.errors.InvalidArgumentError, match="lock"):
        coordinator.schedule(lambda: lock)
    with pytest.raises(cs.errors.InvalidArgumentError, match="argument 1.*lock"):
        coordinator.schedule(functions.add, (1, lock))
    with pytest.raises(cs.errors.InvalidArgumentError, match="argument 'b'"):
        coordinator.schedule(functions.add, (1,), {"b": lock})
    large = np.zeros(1 << 20)
    with pytest.raises(cs.errors.InvalidArgumentError, match="8 MiB.*large"):
        coordinator.schedule(lambda: large)
    with pytest.raises(cs.errors.InvalidArgumentError, match="result.*lock"):
        coordinator.schedule(lambda: threading.Lock()).fetch()
    with pytest.raises(cs.errors.InvalidArgumentError, match="result"):
        coordinator.join()
    with pytest.raises(ValueError, match="lambda"):
        cs.function(lambda: 0)
    coordinator.join()


def test_the_first_error_is_raised_once_with_the_traceback(coordinator):
    failed = coordinator.schedule(functions.fail, (KeyError("it"),))
    with pytest.raises(cs.errors.UnknownError, match=r"KeyError: 'it'\n(.*\n)*.*functions_of_a_module.py.*in fail"):
        coordinator.join()
    coordinator.join()
    with pytest.raises(cs.errors.UnknownError, match="KeyError"):
        failed.fetch()
    assert coordinator.schedule(functions.add, (1,)).fetch() == 2


@pytest.mark.parametrize("error", [error for error in cs.errors.CapstanError.__subclasses__() if error.code != 1])
def test_errors_keep_their_class(coordinator, error):
    with pytest.raises(error, match="the reason"):
        coordinator.schedule(functions.fail, (error("the reason"),)).fetch()
    with pytest.raises(error):
        coordinator.join()


def test_each_worker_has_its_own_dataset(coordinator):
    iterator = iter(coordinator.create_per_worker_dataset(lambda: range(5)))
    assert [coordinator.schedule_on(0, next, (iterator,)).fetch() for _ in range(3)] == [0, 1, 2]
    assert coordinator.schedule_on(1, next, (iterator,)).fetch() == 0
    with pytest.raises(TypeError, match="scheduled"):
        next(iterator)
    assert coordinator.schedule_on(0, functions.last_of, (iterator,)).fetch() == 4
    coordinator.schedule(next, (iterator,), affinity=0)
    with pytest.raises(cs.errors.OutOfRangeError, match="end of the dataset"):
        for _ in range(10):
            coordinator.schedule(next, (iterator,))
        coordinator.join()


def test_each_worker_has_its_own_resource(coordinator):
    resource = coordinator.create_per_worker_resource(functions.Resource, (10,))
    assert sorted(coordinator.run_on_every_worker(functions.use, (resource,))) == [11, 11]
    assert coordinator.schedule_on(1, functions.use, (resource,)).fetch() == 12
    broken = coordinator.create_per_worker_resource(functions.fail, (ValueError("no resource"),))
    with pytest.raises(cs.errors.UnknownError, match="no resource"):
        coordinator.schedule(functions.use, (broken,)).fetch()
    with pytest.raises(cs.errors.UnknownError):
        coordinator.join()


def test_options_of_schedule(coordinator):
    assert coordinator.schedule(cs.current_worker_index, affinity=1, priority=3).fetch() in (0, 1)
    assert coordinator.run_on_every_worker(cs.current_worker_index) == [0, 1]
    with pytest.raises(cs.errors.DeadlineExceededError):
        coordinator.schedule(time.sleep, (5,), deadline=0.05).fetch()
    with pytest.raises(TimeoutError):
        coordinator.join()
    with pytest.raises(cs.errors.OutOfRangeError):
        coordinator.schedule_on(7, len, ("",))
    with pytest.raises(cs.errors.FailedPreconditionError):
        cs.current_worker_index()


def test_join_with_a_timeout(coordinator):
    value = coordinator.schedule_on(0, time.sleep, (0.3,))
    busy = coordinator.schedule(time.sleep, (0.3,))
    assert coordinator.join(timeout=0.01) is False
    assert not coordinator.done() or busy.ready()
    assert coordinator.join() is True and coordinator.done()
    value.fetch()


def test_waits_release_the_gil(coordinator):
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.wait(0.001):
            ticks.append(0)

    thread = threading.Thread(target=tick)
    thread.start()
    coordinator.schedule(time.sleep, (0.3,))
    coordinator.join()
    stop.set()
    thread.join()
    assert len(ticks) > 10


@pytest.fixture
def interrupts():
    """Handles SIGINT as a program in the foreground does; a shell starts background jobs with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_control_c_ends_a_wait(coordinator, interrupts):
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    value = coordinator.schedule(time.sleep, (1.0,))
    with pytest.raises(KeyboardInterrupt):
        value.fetch()
    timer.join()
    coordinator.join()


def test_counters_and_groups(coordinator, strategy, variable):
    with strategy.scope():
        counter = cs.Counter("steps")
        group = cs.StaleSynchronous("group", bound=2)
    v = variable(np.zeros(2), name="v", group=group, optimizer=cs.optimizers.SGD(1.0))

    def step(v, group, counter):
        v.push_dense(np.full(2, -1.0))
        counter.add(1)
        group.end_step()
        group.leave()

    for _ in range(6):
        coordinator.schedule(step, (v, group, counter))
    coordinator.join()
    assert counter.value() == 6 and counter.fetch_add(2) == 6 and v.pull().tolist() == [6, 6]


def test_statistics(coordinator):
    coordinator.schedule(len, ("",))
    coordinator.join()
    assert coordinator.statistics()["finished"] >= 1 and coordinator.workers == 2
    states = sorted((role, dead) for role, _, dead, _ in coordinator.task_states())
    assert states == [("ps", False)] * 2 + [("worker", False)] * 2


def test_calls_on_replicas(coordinator, strategy):
    def step(strategy, x):
        per_replica = strategy.run(lambda a, b: np.array([a, b]), args=(x,), kwargs={"b": 5})
        total = strategy.reduce("SUM", per_replica, axis=None)
        return strategy.reduce("MEAN", per_replica, axis=0), total, strategy.gather(per_replica, 0), strategy.num_replicas_in_sync

    mean, total, gathered, replicas = coordinator.schedule(step, (strategy, 1)).fetch()
    assert (mean, total.tolist(), gathered.tolist(), replicas) == (3, [1, 5], [1, 5], 1)
    assert coordinator.schedule(lambda: strategy.run(functions.add, (1,))).fetch() == 2
    assert strategy.experimental_local_results(3) == (3,)
    with pytest.raises(cs.errors.InvalidArgumentError, match="MIN"):
        strategy.reduce("MIN", 1)
    with pytest.raises(cs.errors.InvalidArgumentError, match="axis 1"):
        strategy.gather(np.zeros(2), 1)
