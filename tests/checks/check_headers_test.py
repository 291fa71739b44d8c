"""check_headers_test.py COMPILER -- each violation in a small header is reported."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import check_headers  # noqa: E402

COMPILER = sys.argv.pop(1)

# name, text, expected complaint (None: no complaint)
CASES = [
    ("correct.hpp", "#pragma once\n#include <vector>\nstruct A { std::vector<int> a; };  // not ucp_ep_h\n", None),
    ("twice.hpp", "struct A {};\n", "does not compile alone"),
    ("incomplete.hpp", "#pragma once\nstd::string name();\n", "does not compile alone"),
    ("ucx.hpp", "#pragma once\nstruct ucp_ep;\ntypedef ucp_ep* ucp_ep_h;\n", "mentions UCX"),
    ("hdf5.hpp", "#pragma once\nusing hid_t = long;\n", "mentions HDF5"),
    ("other.hpp", "#pragma once\nusing MPI_Comm = int;\n", "mentions MPI"),
    ("mpi.hpp", "#pragma once\nusing MPI_Comm = int;\n", None),
    ("mpi.hpp", "#pragma once\nusing cudaStream_t = void*;\n", "mentions CUDA"),
]


class CheckHeaders(unittest.TestCase):
    def test_reports_violations_in_a_header(self):
        for name, text, expected in CASES:
            with self.subTest(name=name), tempfile.TemporaryDirectory() as directory:
                header = pathlib.Path(directory, "capstan", name)
                header.parent.mkdir()
                header.write_text(text)
                found = "\n".join(check_headers.check(pathlib.Path(directory), header, [COMPILER]))
                if expected is None:
                    self.assertEqual(found, "")
                else:
                    self.assertIn(expected, found)

    def test_reports_an_included_header_of_a_library(self):
        with tempfile.TemporaryDirectory() as directory:
            public = pathlib.Path(directory, "include", "capstan", "x.hpp")
            foreign = pathlib.Path(directory, "library", "ucp", "api", "ucp.h")
            for path in (public, foreign):
                path.parent.mkdir(parents=True)
            public.write_text("#pragma once\n#include <ucp/api/ucp.h>\n")
            foreign.write_text("#pragma once\n")
            found = check_headers.check(pathlib.Path(directory, "include"), public,
                                        [COMPILER, f"-I{directory}/library"])
            self.assertIn("includes UCX", "\n".join(found))


if __name__ == "__main__":
    unittest.main()
