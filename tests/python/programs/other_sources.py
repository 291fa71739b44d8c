"""Ranks whose sources differ: a worker rejects a function that it lacks, or that differs from the coordinator's."""
import os
import sys

import capstan as cs

if os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK")) == "0":

    def step():
        return 1

else:

    def step():
        return 2


cluster = cs.Cluster.join()
if cluster.role != "coordinator":
    sys.exit(cs.Server(cluster).join())


def later():
    return 3


strategy = cs.ParameterServerStrategy(cluster)
coordinator = cs.ClusterCoordinator(strategy)
for function in (step, later):
    try:
        print(coordinator.schedule(function).fetch())
    except cs.errors.FailedPreconditionError as error:
        print(str(error).splitlines()[0])
    try:
        coordinator.join()
    except cs.errors.FailedPreconditionError:
        pass
