"""check_layers_test.py -- each include that violates the layers or a library's ownership is reported."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import check_layers  # noqa: E402

# path, line, whether it is allowed
CASES = [
    ("src/ps/shard/heap.cpp", '#include "base/error.hpp"', True),
    ("src/ps/shard/heap.cpp", '#include "ps/shard/heap.hpp"', True),
    ("src/ps/shard/heap.cpp", '#include <vector>', True),
    ("src/ps/shard/heap.cpp", '#include <hwloc.h>', True),
    ("src/base/log.cpp", '#include "ps/shard/heap.hpp"', False),         # a higher layer
    ("src/base/log.cpp", '  #  include "launch/x.hpp"', False),       # a higher layer, unusual spacing
    ("src/ps/shard/heap.cpp", '#include "client/variable.hpp"', False),  # a layer of the same set
    ("src/transport/window.cpp", '#include "io/hdf5/file.hpp"', False),
    ("src/transport/window.cpp", '#include <ucp/api/ucp.h>', True),
    ("src/client/pull.cpp", '#include <ucp/api/ucp.h>', False),
    ("io/hdf5/file.cpp", '#include <hdf5.h>', True),
    ("io/data/triples.cpp", '#include <hdf5.h>', False),
    ("src/train/kge.cpp", '#include <H5Cpp.h>', False),
    ("src/mpi/communicator.cpp", '#include <mpi.h>', True),
    ("src/cluster/bootstrap/join.cpp", '#include <mpi.h>', False),
    ("launch/version.cpp", '#include <mpi.h>', False),
    ("src/transport/window.cpp", '#include "mpi/communicator.hpp"', False),
    ("include/capstan/mpi.hpp", '#include <mpi.h>', True),
    ("include/capstan/cluster.hpp", '#include <mpi.h>', False),
    ("src/ps/shard/heap.cpp", '#include <mpi.h>', False),
    ("src/gpu/stream.cpp", '#include <cuda_runtime.h>', True),
    ("src/ps/shard/heap.cu", '#include <cuda_runtime.h>', False),
    ("src/train/kge.cpp", '#include <nccl.h>', False),
    ("src/client/pull.cpp", '#include <hwloc.h>', False),
    ("include/capstan/client.hpp", '#include "capstan/error.hpp"', True),
    ("include/capstan/client.hpp", '#include "client/impl.hpp"', False),
    ("include/capstan/client.hpp", '#include <ps/shard/heap.hpp>', False),
    ("src/novelty/x.cpp", '#include "base/error.hpp"', False),        # a directory that is not a layer
    ("tests/ps/heap_test.cpp", '#include "launch/x.hpp"', True),   # tests are above all layers
]


class CheckLayers(unittest.TestCase):
    def test_reports_forbidden_includes(self):
        for path, line, allowed in CASES:
            with self.subTest(path=path, line=line), tempfile.TemporaryDirectory() as directory:
                source = pathlib.Path(directory, path)
                source.parent.mkdir(parents=True)
                source.write_text(f"// a comment\n{line}\n")
                found = check_layers.check(pathlib.Path(directory))
                self.assertEqual(len(found), 0 if allowed else 1, found)
                if not allowed:
                    self.assertTrue(found[0].startswith(f"{path}:2: "), found)

    def test_rejects_an_empty_tree(self):
        with tempfile.TemporaryDirectory() as directory:
            self.assertEqual(len(check_layers.check(pathlib.Path(directory))), 1)


if __name__ == "__main__":
    unittest.main()
