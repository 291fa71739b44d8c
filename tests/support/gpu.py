"""Flags with which ranks see GPUs: none with CAPSTAN_TEST_GPU in the environment, where they have some; stand-ins elsewhere."""
import os


def gpu_flags(gpus=1):
    return [] if "CAPSTAN_TEST_GPU" in os.environ else [f"--gpu-stand-ins={gpus}"]
