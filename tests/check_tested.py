#!/usr/bin/env python3
"""check_tested.py ROOT -- fails if a source has no test and is not in tests/untested_sources.txt; --fix shortens that list.

A source is a .cpp, .cu or .hpp file of src/, io/ or launch/; files of one folder that differ in the suffix alone are one
source, named by the first of these suffixes. A source is tested if
  * a test of its layer has its name: tests/ps/heap_test.cpp for src/ps/shard/heap.cpp; where a layer has several sources
    of that name, the test is in a folder named like the source's: tests/launch/run/hosts_test.cpp;
  * a file of tests/ includes its header, or the public header of its name (include/capstan/) if it has no own; or
  * a file of tests/ has a line "// Tests: src/ps/shard/heap.cpp" ("# Tests: ..." in Python).

The list may only shrink: a line whose source is tested, or does not exist, is an error, too.
"""
import collections
import pathlib
import re
import sys

LIST = "tests/untested_sources.txt"
MOST = 27  # lines of the list; lower it with them
SUFFIXES = (".cpp", ".cu", ".hpp", ".cuh")
INCLUDE = re.compile(r'\s*#\s*include\s+["<]([^">]+)[">]')
STATEMENT = re.compile(r"\s*(?://|#) Tests: (.*)")


def layer_of(path):
    """'src/ps/shard/heap.cpp' -> 'ps'; 'io/file.cpp' -> 'io'."""
    return path.parts[1] if path.parts[0] == "src" else path.parts[0]


def find_sources(root):
    """Each source's path without suffix -> its files, relative to `root`, in the order of SUFFIXES."""
    sources = collections.defaultdict(list)
    for folder in ("src", "io", "launch"):
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in SUFFIXES:
                sources[file.relative_to(root).with_suffix("")].append(file.relative_to(root))
    for files in sources.values():
        files.sort(key=lambda file: SUFFIXES.index(file.suffix))
    return dict(sources)


def read_tests(root):
    """The tests' paths, what they include, and (place, path) of each "Tests:" line."""
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
            in_folder_of_source = len(test.parts) > 3 and test.parts[-2] == source.parts[-2]
            if in_folder_of_source or len(test.parts) == 3 and same_name == 1:
                return True
    return False


def is_included(source, files, included):
    headers = [file for file in files if file.suffix in (".hpp", ".cuh")]
    if not headers:
        return f"capstan/{source.name}.hpp" in included
    return any(header.as_posix().removeprefix("src/") in included for header in headers)


def untested_sources(root):
    """The paths of the sources that have no test, and complaints about "Tests:" lines."""
    sources = find_sources(root)
    tests, included, statements = read_tests(root)
    names = collections.Counter((layer_of(source), source.name) for source in sources)
    stated = {path for _, path in statements}
    untested = []
    for source, files in sources.items():
        if not (has_test_of_its_name(source, tests, names[layer_of(source), source.name])
                or is_included(source, files, included) or stated & {file.as_posix() for file in files}):
            untested.append(files[0].as_posix())
    found = [f"{place}: {path} does not exist; correct the path in this line"
             for place, path in statements if not (root / path).is_file()]
    if not sources:
        found.append(f"{root}: no sources found; is this the root of the repository?")
    return sorted(untested), found


def read_list(root):
    return (root / LIST).read_text().splitlines() if (root / LIST).is_file() else []


def check(root):
    """All complaints, as 'path: text' or 'path:line: text'."""
    untested, found = untested_sources(root)
    listed = read_list(root)
    for path in untested:
        if path not in listed:
            found.append(f'{path}: no test; add one, or a "Tests:" line to one that there is; if the source was moved, run '
                         f"{sys.argv[0]} --fix {root}; if it was renamed, rename its line in {LIST}")
    for number, path in enumerate(listed, 1):
        if path not in untested:
            reason = "is tested" if (root / path).is_file() else "does not exist"
            found.append(f"{LIST}:{number}: {path} {reason}; run {sys.argv[0]} --fix {root}")
    if len(listed) > MOST:
        found.append(f"{LIST}: {len(listed)} lines, expected at most {MOST}: the list may only shrink; add a test instead")
    if listed != sorted(set(listed)):
        found.append(f"{LIST}: not sorted, or a line twice; run {sys.argv[0]} --fix {root}")
    return found


def shorten_list(root):
    """Removes lines that are no longer true, and follows a listed source that was moved."""
    untested, _ = untested_sources(root)
    listed = set(read_list(root))
    vanished = {pathlib.PurePath(path).name for path in listed if not (root / path).is_file()}
    kept = [path for path in untested if path in listed or pathlib.PurePath(path).name in vanished]
    (root / LIST).write_text("".join(f"{path}\n" for path in kept))


def main(arguments):
    root = pathlib.Path([a for a in arguments if a != "--fix"][0])
    if "--fix" in arguments:
        shorten_list(root)
    complaints = check(root)
    print("\n".join(complaints) or f"every source is tested, but for the {len(read_list(root))} of {LIST}:")
    if not complaints:
        print("\n".join(read_list(root)))
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
