#!/usr/bin/env python3
"""compile_errors_test.py INCLUDE_DIR COMPILER [FLAG ...] -- an invalid function or argument of a closure does not
compile, and the compiler prints one error that names the type."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

INCLUDE_DIR, *COMPILER = sys.argv[1:] if len(sys.argv) > 2 else ("", "")

PREAMBLE = """
#include <capstan/coordinator.hpp>
#include <capstan/per_worker.hpp>
#include <functional>
#include <memory>
#include <string_view>
namespace cs = capstan;
"""

# name: declarations, a call, and words that its only error contains
CASES = {
    "argument": ("struct WithPointer { int* pointer; }; void take(WithPointer);",
                 "coordinator.schedule<&take>(WithPointer{});", ["WithPointer", ("int*", "int *"), "Serializer"]),
    "argument in a container": ("class Opaque { int x = 0; std::string s; }; void take_many(std::vector<Opaque>);",
                                "coordinator.schedule_on<&take_many>(0, std::vector<Opaque>());", ["Opaque", "Serializer"]),
    "string_view": ("void take_view(std::string_view);",
                    'coordinator.schedule_with<&take_view>({}, "text");', ["string_view", "Serializer"]),
    "result": ("struct Owner { std::unique_ptr<int> owned; int x; }; Owner make_owner();",
               "coordinator.schedule<&make_owner>();", ["Owner", "Serializer"]),
    "result that is fetched": ("struct Task { std::function<void()> call; int x; }; Task make_task();",
                               "(void)coordinator.schedule<&make_task>().fetch();", ["Task", "Serializer"]),
    "result on every worker": ("struct File { FILE* file; }; File open_file();",
                               "(void)coordinator.run_on_every_worker<&open_file>();", ["File", "Serializer"]),
    "argument of a resource": ("struct Window { void* handle; }; int make_resource(Window);",
                               "(void)coordinator.create_per_worker_resource<&make_resource>(Window{});",
                               ["Window", "Serializer"]),
    "reference": ("void change(int& x, double y);", "coordinator.schedule<&change>(1, 2.0);",
                  ["not_callable_with_values_of<int, double>", "const"]),
    "argument of another type": ("struct Shoe {}; void walk(std::string);",
                                 "coordinator.schedule<&walk>(Shoe());", ["Shoe", "string", "convert"]),
    "number of arguments": ("void take_two(int, int);", "coordinator.schedule<&take_two>(1);",
                            ["as many arguments as the function has"]),
    "captures": ("", "int n = 3; (void)coordinator.create_per_worker_dataset([n] { return cs::Dataset<int>::range(n); });",
                 [("<lambda", "(lambda at"), "captures"]),  # GCC's and Clang's notation
    "a function as an argument": ("cs::Dataset<int> numbers();",
                                  "(void)coordinator.create_per_worker_dataset(numbers);", ["(*)()", "template argument"]),
}

VALID_PROGRAM = """
struct Own { int* pointer; };
template <> struct capstan::Serializer<Own> {
  static void write(Writer&, const Own&);
  static Own read(Reader&);
};
struct Tree { std::vector<Tree> children; Own own; };
struct Unmovable { explicit Unmovable(int); std::unique_ptr<int> owned; };
Tree grow(const Tree&, std::string, cs::PerWorker<Unmovable>, cs::Variable<float>);
Unmovable make_unmovable(int);
void works(cs::ClusterCoordinator& coordinator, cs::Variable<float> v) {
  const auto object = coordinator.create_per_worker_resource<&make_unmovable>(1);
  Tree tree = coordinator.schedule<&grow>(Tree(), "text", object, v).fetch();
}
"""


def errors_of(source):
    """Returns the lines of the compiler's output that contain an error."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory, "program.cpp")
        path.write_text(PREAMBLE + source)
        done = subprocess.run([*COMPILER, "-std=c++20", f"-I{INCLUDE_DIR}", "-fsyntax-only", str(path)],
                              capture_output=True, text=True, check=False, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"})
        return [line for line in done.stderr.splitlines() if "error:" in line]


def has(error, word):
    """Returns whether the error contains `word`, or any word of a tuple."""
    return word in error if isinstance(word, str) else any(one in error for one in word)


class CompileErrors(unittest.TestCase):
    def test_each_invalid_call_gives_one_error_that_names_the_type(self):
        calls = "".join(f"{declarations}\nvoid case_{i}(cs::ClusterCoordinator& coordinator) {{ {call} }}\n"
                        for i, (declarations, call, _) in enumerate(CASES.values()))
        errors = errors_of(calls)
        self.assertEqual(len(errors), len(CASES), "\n".join(errors))
        for name, (_, _, words) in CASES.items():
            with self.subTest(name):
                found = [error for error in errors if all(has(error, word) for word in words)]
                self.assertEqual(len(found), 1, "\n".join(errors))

    def test_types_with_a_serializer_compile(self):
        self.assertEqual(errors_of(VALID_PROGRAM), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
