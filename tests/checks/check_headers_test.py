"""check_headers_test.py COMPILER -- the header check must refuse what it is there to refuse."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import check_headers  # noqa: E402

COMPILER = sys.argv.pop(1)

# name, text, what the complaint must say (None: no complaint)
CASES = [
    ("fine.hpp", "#pragma once\n#include <vector>\nstruct A { std::vector<int> a; };  // not ucp_ep_h\n", None),
    ("twice.hpp", "struct A {};\n", "does not compile alone"),
    ("leans.hpp", "#pragma once\nstd::string name();\n", "does not compile alone"),
    ("ucx.hpp", "#pragma once\nstruct ucp_ep;\ntypedef ucp_ep* ucp_ep_h;\n", "mentions UCX"),
    ("hdf5.hpp", "#pragma once\nusing hid_t = long;\n", "mentions HDF5"),
    ("other.hpp", "#pragma once\nusing MPI_Comm = int;\n", "mentions MPI"),
    ("mpi.hpp", "#pragma once\nusing MPI_Comm = int;\n", None),
    ("cuda.hpp", "#pragma once\nusing MPI_Comm = int;\n", "mentions MPI"),
]


class CheckHeaders(unittest.TestCase):
    def test_judges_single_headers(self):
        for name, text, wanted in CASES:
            with self.subTest(name=name), tempfile.TemporaryDirectory() as folder:
                header = pathlib.Path(folder, "capstan", name)
                header.parent.mkdir()
                header.write_text(text)
                found = "\n".join(check_headers.check(pathlib.Path(folder), header, [COMPILER]))
                if wanted is None:
                    self.assertEqual(found, "")
                else:
                    self.assertIn(wanted, found)

    def test_follows_includes_to_the_library(self):
        with tempfile.TemporaryDirectory() as folder:
            public = pathlib.Path(folder, "include", "capstan", "x.hpp")
            foreign = pathlib.Path(folder, "library", "ucp", "api", "ucp.h")
            for path in (public, foreign):
                path.parent.mkdir(parents=True)
            public.write_text("#pragma once\n#include <ucp/api/ucp.h>\n")
            foreign.write_text("#pragma once\n")
            found = check_headers.check(pathlib.Path(folder, "include"), public,
                                        [COMPILER, f"-I{folder}/library"])
            self.assertIn("reaches UCX", "\n".join(found))


if __name__ == "__main__":
    unittest.main()
