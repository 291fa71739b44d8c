"""check_layers_test.py -- the layer check must refuse what it is there to refuse."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import check_layers  # noqa: E402

# path, line, whether it is fine
CASES = [
    ("src/ps/shard/heap.cpp", '#include "base/error.hpp"', True),
    ("src/ps/shard/heap.cpp", '#include "ps/shard/heap.hpp"', True),
    ("src/ps/shard/heap.cpp", '#include <vector>', True),
    ("src/ps/shard/heap.cpp", '#include <hwloc.h>', True),
    ("src/base/log.cpp", '#include "ps/shard/heap.hpp"', False),         # upward
    ("src/base/log.cpp", '  #  include "launch/x.hpp"', False),       # upward, oddly spaced
    ("src/ps/shard/heap.cpp", '#include "client/variable.hpp"', False),  # sideways
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
    ("src/novelty/x.cpp", '#include "base/error.hpp"', False),        # a folder that is no layer
    ("tests/ps/heap_test.cpp", '#include "launch/x.hpp"', True),   # tests stand above all
]


class CheckLayers(unittest.TestCase):
    def test_judges_single_includes(self):
        for path, line, fine in CASES:
            with self.subTest(path=path, line=line), tempfile.TemporaryDirectory() as folder:
                source = pathlib.Path(folder, path)
                source.parent.mkdir(parents=True)
                source.write_text(f"// a comment\n{line}\n")
                found = check_layers.check(pathlib.Path(folder))
                self.assertEqual(len(found), 0 if fine else 1, found)
                if not fine:
                    self.assertTrue(found[0].startswith(f"{path}:2: "), found)

    def test_refuses_an_empty_tree(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(len(check_layers.check(pathlib.Path(folder))), 1)


if __name__ == "__main__":
    unittest.main()
