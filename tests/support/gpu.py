"""gpu.py -- flags that give ranks GPUs: none if CAPSTAN_TESTS_GPU is set, since real GPUs are used then; stand-ins otherwise."""
import os


def gpu_flags(gpus=1, prefix="--"):
    return [] if "CAPSTAN_TESTS_GPU" in os.environ else [f"{prefix}gpu-stand-ins={gpus}"]
