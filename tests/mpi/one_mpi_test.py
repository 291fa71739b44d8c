#!/usr/bin/env python3
"""one_mpi_test.py PROGRAM MPICH_BIN -- programs in MPICH_BIN load only MPICH; PROGRAM, built with the other MPI, does not load MPICH."""
import pathlib
import re
import subprocess
import sys
import unittest

PROGRAM, MPICH_BIN = sys.argv[1], pathlib.Path(sys.argv[2])
MPI_LIBRARY = re.compile(r"^\s*(lib(?:mpi|mpich|open-rte|open-pal)\b[^ ]*)\.so", re.M)


def mpi_libraries(program):
    """Names of the MPI libraries that the loader finds, such as {"libmpich"}."""
    loaded = subprocess.run(["ldd", program], capture_output=True, text=True, check=True, timeout=20).stdout
    return set(MPI_LIBRARY.findall(loaded))


class OneMpi(unittest.TestCase):
    def test_mpich_programs_load_only_mpich(self):
        programs = [path for path in MPICH_BIN.iterdir() if path.is_file()]
        self.assertGreater(len(programs), 3)
        for program in programs:
            self.assertEqual(mpi_libraries(program), {"libmpich"}, program)

    def test_other_program_does_not_load_mpich(self):
        found = mpi_libraries(PROGRAM)
        self.assertTrue(found, PROGRAM)
        self.assertNotIn("libmpich", found)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
