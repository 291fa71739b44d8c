#!/usr/bin/env python3
"""check_headers.py INCLUDE_DIR COMPILER [FLAG ...] -- fails unless every public header compiles alone and when included
twice, and neither includes nor mentions UCX, MPI, HDF5, CUDA or another dependency of Capstan.

Exception: an optional header (OPTIONAL) may include and mention its own library.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

# library: (paths of headers that must not be included, identifiers that must not occur in the text)
FOREIGN = {
    "UCX": (r"/(ucp|uct|ucs|ucm)/", r"\b(ucp|uct|ucs)_\w+|\bUC[PTS]_\w+"),
    "MPI": (r"/mpi\.h$", r"\bMPI_\w+|\bOMPI_\w+|<mpi\.h>"),
    "HDF5": (r"/(hdf5|H5\w+)\.h$", r"\bhid_t\b|\bH5[A-Z]\w+|<hdf5\.h>"),
    "CUDA": (r"/(cuda|cuda_runtime\w*|driver_types)\.h$", r"\bcuda[A-Z]\w+|\bCU(stream|deviceptr|context)\b"),
    "NCCL": (r"/nccl\.h$", r"\bnccl[A-Z]\w+"),
    "hwloc": (r"/hwloc", r"\bhwloc_\w+"),
    "spdlog or fmt": (r"/(spdlog|fmt)/", r"\bspdlog::|\bfmt::"),
    "a private header": (r"/src/\w+/|/io/(hdf5|data|events)/", r"(?!)"),
}
OPTIONAL = {"mpi.hpp": ("MPI",)}


def without_comments(text):
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)


def check(include_dir, header, compiler):
    """Returns the complaints about one header."""
    name = header.relative_to(include_dir).as_posix()
    with tempfile.TemporaryDirectory() as directory:
        source = pathlib.Path(directory, "alone.cpp")
        source.write_text(f'#include "{name}"\n#include "{name}"\nint main() {{}}\n')
        depends = pathlib.Path(directory, "alone.d")
        command = [*compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", f"-I{include_dir}",
                   "-fsyntax-only", "-MD", "-MF", str(depends), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return [f"{name} does not compile alone:\n{done.stderr}"]
        opened = depends.read_text().replace("\\\n", " ").split()[2:]
    found = []
    text = without_comments(header.read_text())
    for library, (path_pattern, word_pattern) in FOREIGN.items():
        if library in OPTIONAL.get(header.name, ()):
            continue
        for path in opened:
            if re.search(path_pattern, path) and not path.startswith(str(include_dir)):
                found.append(f"{name} includes {library}: {path}")
        for word in re.finditer(word_pattern, text):
            found.append(f"{name} mentions {library}: {word[0]}")
    return found


def main(include_dir, *compiler):
    include_dir = pathlib.Path(include_dir).resolve()
    headers = sorted(include_dir.rglob("*.hpp"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as compilers:
        found = list(compilers.map(lambda header: check(include_dir, header, compiler), headers))
    complaints = [line for lines in found for line in lines]
    if not headers:
        complaints.append(f"{include_dir}: no headers found")
    print("\n".join(complaints) or f"{len(headers)} headers compile alone")
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
