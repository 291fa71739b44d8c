"""open_mpi.py -- environment in which Open MPI runs the ranks of tests and benchmarks; importing this module sets it.

Open MPI refuses to run as root, and to start more ranks than cores, unless told otherwise; and it binds two ranks to a core each, all
their threads with them. Its version 5 (PRRTE) has other variables than version 4. MPICH ignores all of them. A variable
that the caller has set stays as it is.

ob1 is what Open MPI takes where there is no InfiniBand. To look for something better it loads libpsm2, which measures
the clock for 0.2 s: half of the start of a job. Capstan needs MPI for the start alone.
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
