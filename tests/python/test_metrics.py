"""Metrics, whose state is on a ps, and resolvers."""
import json

import numpy as np
import pytest

import capstan as cs


@pytest.fixture
def metric(strategy):
    def make(kind, *args, **options):
        with strategy.scope():
            return kind(*args, **options)

    return make


# S75: same.
def test_metrics_of_values(metric):
    total, mean = metric(cs.metrics.Sum), metric(cs.metrics.Mean, name="loss")
    total.update_state([1, 2, 3])
    total.update_state(4, sample_weight=0.5)
    mean.update_state(np.array([[1.0, 3.0], [5.0, 7.0]], np.float32), sample_weight=[3, 1])
    assert total.result() == 8 and mean.result() == (2 * 3 + 6) / 4
    assert (total.name, mean.name) == ("sum", "loss")
    mean.reset_state()
    assert mean.result() == 0


def test_metrics_of_predictions(metric):
    accuracy, error = metric(cs.metrics.Accuracy), metric(cs.metrics.MeanSquaredError)
    accuracy.update_state([[1], [2], [3], [4]], [1, 2, 0, 4], sample_weight=[1, 1, 1, 0])
    error.update_state([0.0, 1.0], [0.5, 1.0])
    assert accuracy.result() == pytest.approx(2 / 3) and error.result() == 0.125
    with pytest.raises(cs.errors.InvalidArgumentError):
        accuracy.update_state([1, 2], [1, 2, 3])


@pytest.mark.parametrize("curve", ["ROC", "PR"])
def test_auc_approaches_the_exact_area(metric, curve):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 4000)
    predicted = np.clip(0.3 * truth + rng.random(4000) * 0.7, 0, 1)
    auc = metric(cs.metrics.AUC, num_thresholds=1000, curve=curve)
    auc.update_state(truth[:1000], predicted[:1000])
    auc.update_state(truth[1000:], predicted[1000:])
    ranks = predicted.argsort().argsort() + 1
    positives = truth.sum()
    exact = (ranks[truth == 1].sum() - positives * (positives + 1) / 2) / (positives * (4000 - positives))
    if curve == "ROC":
        assert auc.result() == pytest.approx(exact, abs=2e-3)
    else:
        assert 0.5 < auc.result() < 1
    counts = auc.confusion_counts()
    assert counts["true_positives"][0] == positives and len(auc.thresholds) == 1000
    with pytest.raises(ValueError, match="DET"):
        cs.metrics.AUC(curve="DET")
    with pytest.raises(cs.errors.InvalidArgumentError):
        auc.update_state([1], [1.5])


def test_functions_update_a_metric(coordinator, metric):
    mean, auc = metric(cs.metrics.Mean), metric(cs.metrics.AUC)

    def step(mean, auc, number):
        mean.update_state(number)
        auc.update_state([0, 1], [0.2, 0.9])
        return mean.name

    names = [coordinator.schedule(step, (mean, auc, number)) for number in range(11)]
    coordinator.join()
    assert mean.result() == 5 and auc.result() == 1 and names[0].fetch() == "mean"


def test_metrics_are_in_checkpoints(strategy, metric, tmp_path):
    mean = metric(cs.metrics.Mean)
    mean.update_state([2, 4])
    manager = cs.CheckpointManager(strategy, str(tmp_path))
    manager.save(1)
    mean.reset_state()
    manager.restore_latest()
    assert mean.result() == 3


def test_tf_config_is_read(monkeypatch):
    spec = {"chief": ["h0:1"], "worker": ["h1:1", "h2:1"], "ps": ["h3:1"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": spec, "task": {"type": "worker", "index": 1}, "rpc_layer": "grpc"}))
    resolver = cs.cluster_resolver.TFConfigClusterResolver()
    assert resolver.cluster_spec() == spec
    assert (resolver.task_type, resolver.task_id, resolver.rpc_layer) == ("worker", 1, "grpc")
    assert resolver.master("ps", 0) == "grpc://h3:1"
    resolver.task_type, resolver.task_id = "ps", 0
    assert (resolver.task_type, resolver.master()) == ("ps", "grpc://h3:1")
    monkeypatch.setenv("TF_CONFIG", "{")
    with pytest.raises(cs.errors.InvalidArgumentError, match="TF_CONFIG"):
        cs.cluster_resolver.TFConfigClusterResolver()


# A1.9: same.
def test_resolvers_are_united_and_validated(cluster):
    simple = cs.cluster_resolver.SimpleClusterResolver
    first = simple({"worker": ["a:1"]}, master="a:1", task_type="worker", task_id=0, num_accelerators={"GPU": 2})
    both = cs.cluster_resolver.UnionResolver(first, simple({"worker": ["b:1"], "ps": ["c:1"]}))
    assert isinstance(both, cs.cluster_resolver.ClusterResolver)
    assert both.cluster_spec() == {"worker": ["a:1", "b:1"], "ps": ["c:1"]}
    assert both.num_accelerators() == {"GPU": 2} and both.master() == "a:1"
    cs.cluster_resolver.validate_cluster(both.cluster_spec(), "worker", 1)
    with pytest.raises(cs.errors.InvalidArgumentError, match="ps"):
        cs.cluster_resolver.validate_cluster(first.cluster_spec(), "worker", 0)
    roles = cs.cluster_resolver.of_cluster(cluster).cluster_spec()
    assert {job: len(tasks) for job, tasks in roles.items()} == {"chief": 1, "ps": 2, "worker": 2}


# A1.10, B223: same.
def test_slurm_is_read_from_the_environment(monkeypatch):
    for name, value in {
        "SLURM_STEP_NODELIST": "n[1-2]", "SLURM_STEP_TASKS_PER_NODE": "2(x2)", "SLURM_PROCID": "1",
        "SLURM_STEP_NUM_TASKS": "4", "SLURM_NTASKS": "4", "SLURM_LOCALID": "1", "SLURM_JOB_ID": "1", "SLURM_STEP_ID": "0",
    }.items():
        monkeypatch.setenv(name, value)
    resolver = cs.cluster_resolver.SlurmClusterResolver({"ps": 1, "worker": 3}, port_base=100, gpus_per_node=0)
    assert resolver.cluster_spec() == {"ps": ["n1:100"], "worker": ["n1:101", "n2:100", "n2:101"]}
    assert (resolver.task_type, resolver.task_id, resolver.gpus_per_task) == ("worker", 0, 0)
