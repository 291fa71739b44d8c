#!/usr/bin/env python3
"""check_tested.py ROOT -- fails if a source has no test.

A source is a C++ or CUDA file (SUFFIXES) in src/, io/ or launch/. Files of one directory that differ only in the suffix
are one source, which is reported with the first of its suffixes. A source is tested if
  * a test of its layer has its name: tests/ps/heap_test.cpp for src/ps/shard/heap.cpp. If a layer has several sources
    of that name, the test must be in a directory named like the source's: tests/launch/run/hosts_test.cpp;
  * a file in tests/ includes its header or, if it has none, the public header of its name (include/capstan/); or
  * a file in tests/ has a line "// Tests: src/ps/shard/heap.cpp" ("# Tests: ..." in Python).
"""
import collections
import pathlib
import re
import sys

SUFFIXES = (".cpp", ".cu", ".hpp", ".cuh")
INCLUDE = re.compile(r'\s*#\s*include\s+["<]([^">]+)[">]')
STATEMENT = re.compile(r"\s*(?://|#) Tests: (.*)")


def layer_of(path):
    """'src/ps/shard/heap.cpp' -> 'ps'; 'io/file.cpp' -> 'io'."""
    return path.parts[1] if path.parts[0] == "src" else path.parts[0]


def find_sources(root):
    """Returns {path of a source without its suffix: its files, in the order of SUFFIXES}, relative to `root`."""
    sources = collections.defaultdict(list)
    for directory in ("src", "io", "launch"):
        for file in sorted((root / directory).rglob("*")):
            if file.suffix in SUFFIXES:
                sources[file.relative_to(root).with_suffix("")].append(file.relative_to(root))
    for files in sources.values():
        files.sort(key=lambda file: SUFFIXES.index(file.suffix))
    return dict(sources)


def read_tests(root):
    """Returns the paths of the tests, the headers that they include, and (location, path) of each "Tests:" line."""
    tests, included, statements = [], set(), []
    for file in sorted((root / "tests").rglob("*")):
        path = file.relative_to(root)
        if path.parts[:2] == ("tests", "checks") or file.suffix not in (*SUFFIXES, ".py"):
            continue  # tests/checks tests scripts
        if file.stem.endswith("_test"):
            tests.append(path)
        for number, line in enumerate(file.read_text().splitlines(), 1):
            include = INCLUDE.match(line)
            statement = STATEMENT.match(line)
            if include:
                included.add(include[1])
            elif statement:
                statements.append((f"{path}:{number}", statement[1].strip()))
    return tests, included, statements


def has_test_of_its_name(source, tests, same_name):
    for test in tests:
        if test.parts[1] == layer_of(source) and test.stem == source.name + "_test":
            in_directory_of_source = len(test.parts) > 3 and test.parts[-2] == source.parts[-2]
            if in_directory_of_source or len(test.parts) == 3 and same_name == 1:
                return True
    return False


def is_included(source, files, included):
    headers = [file for file in files if file.suffix in (".hpp", ".cuh")]
    if not headers:
        return f"capstan/{source.name}.hpp" in included
    return any(header.as_posix().removeprefix("src/") in included for header in headers)


def check(root):
    """Returns all complaints, as 'path: text' or 'path:line: text'."""
    sources = find_sources(root)
    tests, included, statements = read_tests(root)
    names = collections.Counter((layer_of(source), source.name) for source in sources)
    stated = {path for _, path in statements}
    found = []
    for source, files in sources.items():
        if not (has_test_of_its_name(source, tests, names[layer_of(source), source.name])
                or is_included(source, files, included) or stated & {file.as_posix() for file in files}):
            found.append(f'{files[0].as_posix()}: no test; add one, or a "Tests:" line to an existing test that covers it')
    found += [f"{location}: {path} does not exist; correct the path in this line"
              for location, path in statements if not (root / path).is_file()]
    if not sources:
        found.append(f"{root}: no sources found; is this the root of the repository?")
    return found


if __name__ == "__main__":
    complaints = check(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    print("\n".join(complaints) or "every source is tested")
    sys.exit(bool(complaints))
