"""check_tested_test.py -- the check names each source without a test, and each "Tests:" line that names no source."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import check_tested  # noqa: E402


class CheckTested(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)

    def write(self, path, text=""):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def assert_complains_about(self, *locations):
        found = check_tested.check(self.root)
        self.assertEqual([complaint.split(": ")[0] for complaint in found], list(locations), found)

    def test_accepts_a_test_of_the_same_name_in_the_layer(self):
        self.write("src/ps/shard/heap.cpp")
        self.write("tests/ps/heap_test.cpp")
        self.write("launch/run/run.cpp")
        self.write("tests/launch/run_test.py")
        self.assert_complains_about()

    def test_rejects_a_test_of_the_same_name_in_another_layer(self):
        self.write("src/ps/shard/heap.cpp")
        self.write("tests/client/heap_test.cpp")
        self.assert_complains_about("src/ps/shard/heap.cpp")

    def test_requires_the_directory_if_a_layer_has_the_name_twice(self):
        self.write("launch/run/place.cpp")
        self.write("launch/doctor/place.cpp")
        self.write("tests/launch/place_test.cpp")
        self.assert_complains_about("launch/doctor/place.cpp", "launch/run/place.cpp")
        self.write("tests/launch/run/place_test.cpp")
        self.assert_complains_about("launch/doctor/place.cpp")

    def test_accepts_a_header_that_a_test_includes(self):
        self.write("src/ps/shard/heap.cpp")
        self.write("src/ps/shard/heap.hpp")
        self.write("io/file.hpp")
        self.write("src/base/error.cpp")
        self.write("tests/ps/store_test.cpp",
                   '#include "ps/shard/heap.hpp"\n#include "io/file.hpp"\n#include <capstan/error.hpp>\n')
        self.assert_complains_about()

    def test_public_header_covers_only_a_source_without_a_private_one(self):
        self.write("src/coordinator/metrics.cpp")
        self.write("src/coordinator/metrics.hpp")
        self.write("tests/train/auc_test.cpp", '#include "capstan/metrics.hpp"\n')
        self.assert_complains_about("src/coordinator/metrics.cpp")

    def test_accepts_a_source_that_a_tests_line_names(self):
        self.write("launch/main.cpp")
        self.write("src/ps/shard/store.cpp")
        self.write("tests/launch/program_test.py", "# Tests: launch/main.cpp\n")
        self.write("tests/ps/rows.hpp", "// Tests: src/ps/shard/store.cpp\n")
        self.assert_complains_about()

    def test_rejects_a_tests_line_that_names_a_missing_source(self):
        self.write("launch/main.cpp")
        self.write("tests/launch/main_test.py", "\n# Tests: launch/moved.cpp\n")
        self.assert_complains_about("tests/launch/main_test.py:2")

    def test_rejects_an_empty_tree(self):
        self.assertEqual(len(check_tested.check(self.root)), 1)


if __name__ == "__main__":
    unittest.main()
