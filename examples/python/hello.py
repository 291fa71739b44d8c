"""The smallest program: a variable on the ps, workers that pull and push, and their sum."""
import sys

import numpy as np

import capstan as cs


# Runs on any free worker. SGD with a learning rate of 1 is w -= g, so pushing -number adds it.
def add(w, number):
    values = w.pull()
    w.push_dense(np.full(w.shape, -number))
    return f"worker {cs.current_worker_index()} adds {number} to {values[0]:.0f}"


cluster = cs.Cluster.join()
if cluster.role != "coordinator":
    sys.exit(cs.Server(cluster).join())

strategy = cs.ParameterServerStrategy(cluster)
with strategy.scope():
    w = cs.Variable(np.zeros(3), name="w", optimizer=cs.optimizers.SGD(1.0))

coordinator = cs.ClusterCoordinator(strategy)
lines = [coordinator.schedule(add, args=(w, number)) for number in range(1, 11)]
coordinator.join()  # every push is applied now
for line in lines:
    print(line.fetch())
print("w is", *w.pull())
sys.exit(0 if (w.pull() == 55).all() else 1)
