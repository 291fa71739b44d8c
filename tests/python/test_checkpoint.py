"""Checkpoints: saved values are restored, and errors name the variables that do not match."""
import numpy as np
import pytest

import capstan as cs


def make(cluster, shards, shape=(10, 2)):
    strategy = cs.ParameterServerStrategy(cluster, cs.partitioners.FixedShardsPartitioner(shards))
    with strategy.scope():
        v = cs.Variable(np.zeros(shape), name="v", optimizer=cs.optimizers.Adam(0.1))
    return strategy, v


def test_restores_into_another_number_of_shards(cluster, tmp_path):
    strategy, v = make(cluster, 2)
    manager = cs.CheckpointManager(strategy, tmp_path, max_to_keep=2)
    assert manager.restore_latest() is None and manager.latest() is None
    for step in range(3):
        v.push([1, 7], np.ones((2, 2)))
        path = manager.save(step, {"epoch": step})
    saved = v.pull()
    assert len(manager.checkpoints()) == 2 and manager.latest() == 2 and path.exists()
    strategy.close()

    strategy, v = make(cluster, 1)
    manager = cs.CheckpointManager(strategy, tmp_path, every_steps=5)
    assert manager.restore_latest() == 2
    assert manager.user_state == {"epoch": 2} and manager.restored_from == path and manager.unmatched() == []
    manager.assert_consumed()
    np.testing.assert_array_equal(v.pull(), saved)
    assert not manager.due(6) and manager.due(7)
    manager.save(7, background=True, incremental=True)
    manager.wait()
    strategy.close()


def test_writes_and_reads_one_checkpoint(cluster, tmp_path):
    strategy, v = make(cluster, 2)
    v.assign(np.arange(20).reshape(10, 2))
    checkpoint = cs.Checkpoint(strategy)
    checkpoint.write(tmp_path / "one", [1, "two"])
    v.assign(0)
    assert checkpoint.read(tmp_path / "one") == 0
    assert checkpoint.user_state == [1, "two"]
    np.testing.assert_array_equal(v.pull(), np.arange(20).reshape(10, 2))
    with pytest.raises(cs.errors.NotFoundError):
        checkpoint.read(tmp_path / "none")
    strategy.close()


def test_user_state_may_contain_numbers_of_numpy(cluster, tmp_path):
    strategy, _ = make(cluster, 1)
    manager = cs.CheckpointManager(strategy, tmp_path)
    manager.save(1, {"loss": np.float32(0.5), "history": np.arange(3)})
    assert manager.restore_latest() == 1 and manager.user_state == {"loss": 0.5, "history": [0, 1, 2]}
    with pytest.raises(cs.errors.InvalidArgumentError, match="object"):
        manager.save(2, object())
    with pytest.raises(cs.errors.InvalidArgumentError, match="CheckpointManager: found a Checkpoint"):
        cs.CheckpointManager(cs.Checkpoint(strategy), tmp_path)
    strategy.close()


def test_errors_name_variables_that_do_not_match(cluster, tmp_path):
    strategy, _ = make(cluster, 2)
    cs.Checkpoint(strategy).write(tmp_path / "one")
    strategy.close()
    strategy, v = make(cluster, 2, shape=(11, 2))
    with pytest.raises(cs.errors.FailedPreconditionError, match="v"):
        cs.Checkpoint(strategy).read(tmp_path / "one")
    strategy.close()
