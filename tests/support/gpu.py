"""Flags with which ranks see GPUs: none with CAPSTAN_TEST_GPU in the environment, where they have some; stand-ins elsewhere."""
import os


def gpu_flags(gpus=1, prefix="--"):
    return [] if "CAPSTAN_TEST_GPU" in os.environ else [f"{prefix}gpu-stand-ins={gpus}"]
