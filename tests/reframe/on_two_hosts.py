#!/usr/bin/env python3
"""on_two_hosts.py RANKS PROGRAM... -- runs a job on two hosts of tests/hosts/two_hosts.py; the second has the last ranks."""
import os
import pathlib
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "hosts"), str(TESTS / "support")]
import open_mpi  # sets the environment of mpirun
import two_hosts

ranks, program = int(sys.argv[1]), sys.argv[2:]
with tempfile.TemporaryDirectory(prefix="capstan-reframe-") as directory, two_hosts.TwoHosts(directory) as hosts:
    slots = (ranks + 1) // 2
    # nsenter changes the working directory to the root.
    command = [*hosts.launcher("mpirun", slots), "-n", ranks, "-wdir", os.getcwd(), *program]
    done = subprocess.run([str(word) for word in command], env={**os.environ, **hosts.environment})
sys.exit(done.returncode)
