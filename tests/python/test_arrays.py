"""Arrays of other libraries, and views of mapped memory."""
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import capstan as cs


class Tensor:
    """A tensor whose only interface is DLPack; `device` is a device type of DLPack."""

    def __init__(self, array, device=1):
        self.array, self.device = array, device

    def __dlpack__(self, **options):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return (self.device, 0)


def test_dlpack_tensors_are_values_and_ids(variable):
    v = variable(Tensor(np.arange(6.0).reshape(3, 2)), name="v", optimizer=cs.optimizers.SGD(1.0))
    assert v.dtype == np.float64
    v.push(Tensor(np.array([2, 0])), Tensor(np.ones((2, 2))))
    v.flush()
    np.testing.assert_array_equal(v.lookup(Tensor(np.array([0, 2]))), [[-1, 0], [3, 4]])
    transposed = Tensor(np.arange(6.0).reshape(2, 3).T)
    v.assign(transposed)
    np.testing.assert_array_equal(v.pull(), transposed.array)
    np.testing.assert_array_equal(np.from_dlpack(v), transposed.array)


def test_rows_are_copied_into_a_tensor(variable):
    v = variable(np.arange(6, dtype=np.float32).reshape(3, 2), name="v")
    memory = np.zeros((2, 2), np.float32)
    out = Tensor(memory)
    assert v.lookup([2, 1], out=out) is out
    np.testing.assert_array_equal(memory, [[4, 5], [2, 3]])
    with pytest.raises(cs.errors.InvalidArgumentError, match="float64"):
        v.lookup([2, 1], out=Tensor(np.zeros((2, 2))))


def test_memory_of_a_gpu_is_rejected(variable):
    v = variable(np.zeros((3, 2)), name="v")
    with pytest.raises(cs.errors.InvalidArgumentError, match=r"Tensor.*\.cpu\(\)"):
        v.push_dense(Tensor(np.zeros((3, 2)), device=2))


def test_a_view_shows_the_memory_of_the_ps(variable):
    v = variable(np.arange(8, dtype=np.float32).reshape(4, 2), name="v")
    with pytest.raises(cs.errors.FailedPreconditionError, match="2 shards"):
        v.view()
    second = v.variables[1].view()
    assert second.shape == (2, 2) and second.dtype == np.float32
    v.assign_add(10)
    np.testing.assert_array_equal(second, [[14, 15], [16, 17]])
    with pytest.raises(ValueError, match="read-only"):
        second[0] = 0
    assert second[1].base is not None


def test_a_view_of_bfloat16(variable):
    v = variable(np.arange(4).astype(ml_dtypes.bfloat16), name="v")
    assert v.variables[0].view().dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(v.variables[1].view(), [2, 3])


def test_a_view_outlives_the_job(cluster):
    strategy = cs.ParameterServerStrategy(cluster)
    with strategy.scope():
        row = cs.Variable(np.arange(6.0).reshape(3, 2), name="v").view()[2]
    strategy.close()
    np.testing.assert_array_equal(row, [4, 5])


PROGRAM = """
import os, sys
import numpy as np
import capstan as cs
cluster = cs.Cluster.join(ps=1, workers=1, log_level="error")
strategy = cs.ParameterServerStrategy(cluster)
with strategy.scope():
    v = cs.Variable(np.arange(6.0), name="v")
view = v.view()
child = os.fork()
if child == 0:
    os._exit(0 if view.sum() == 15 else 1)
assert os.waitpid(child, 0)[1] == 0
iterator = iter(cs.data.Dataset.range(10**6).map(lambda n: n, num_parallel_calls=2).prefetch(4))
next(iterator)
print("end", view.sum())
"""


def test_a_program_ends_with_views_and_iterators_alive():
    """A forked child reads a view; the interpreter ends while threads of a pipeline call Python."""
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (0, "end 15.0\n"), ended.stderr
