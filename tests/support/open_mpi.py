"""open_mpi.py -- the environment in which Open MPI runs the ranks of tests and benchmarks; importing this module sets it.

By default, Open MPI refuses to run as root and to start more ranks than cores, and it binds all threads of a rank to one core
if there are at most two ranks. Version 5 (PRRTE) reads other variables than version 4. MPICH ignores all of them. Variables
that the caller has set are left unchanged.

ob1 is Open MPI's choice without InfiniBand. To look for a better transport, it loads libpsm2, which measures the clock for
0.2 s: half of the start time of a job. Capstan uses MPI only to start.
"""
import os

ENVIRONMENT = {
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_MCA_pml": "ob1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
}
if os.geteuid() == 0:
    ENVIRONMENT.update({f"{mpi}_ALLOW_RUN_AS_ROOT{suffix}": "1" for mpi in ("OMPI", "PRTE") for suffix in ("", "_CONFIRM")})

for name, value in ENVIRONMENT.items():
    os.environ.setdefault(name, value)
