"""Fixtures: one cluster for all tests of a process, whose roles are threads, and a strategy for each test."""
import pytest

import capstan as cs

collect_ignore = ["jobs_test.py"]  # starts its own processes, and needs the arguments of a job test


@pytest.fixture(scope="session")
def cluster():
    return cs.Cluster.join(ps=2, workers=2, log_level="error")


@pytest.fixture
def strategy(cluster):
    strategy = cs.ParameterServerStrategy(cluster, cs.partitioners.FixedShardsPartitioner(2))
    yield strategy
    strategy.close()


@pytest.fixture
def coordinator(strategy):
    return cs.ClusterCoordinator(strategy)


@pytest.fixture
def variable(strategy):
    """Returns a function that creates a variable in the scope of the strategy."""

    def make(*args, **options):
        with strategy.scope():
            return cs.Variable(*args, **options)

    return make
