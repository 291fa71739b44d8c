#!/usr/bin/env python3
"""check_layers.py ROOT -- fails if a layer includes a header of a layer that is not below it, or if a library's header
is included outside of the directories that own the library."""
import pathlib
import re
import sys

# A layer may include the layers before it. Layers of one set must not include each other.
ORDER = [
    {"base"}, {"simulate", "transport", "mpi", "gpu", "io"}, {"cluster"}, {"protocol"}, {"ps", "client"}, {"strategy"},
    {"checkpoint", "telemetry"}, {"coordinator"}, {"train"}, {"launch"},
]
ALLOWED = {name: set().union(*ORDER[:i]) for i, group in enumerate(ORDER) for name in group}

# (library, its headers, path prefixes that may include them). tests/ and perf/ are above all layers, but use libraries other
# than MPI only through Capstan.
OWNERS = [
    ("UCX", r"(ucp|uct|ucs|ucm)/", ("src/transport/", "tests/transport/")),
    ("cpp-httplib", r"httplib\.h$", ("launch/serve/", "perf/")),
    ("HDF5", r"(hdf5(_hl)?|H5\w*)\.h(pp)?$", ("io/hdf5/", "tests/io/")),
    ("MPI", r"mpi\.h$", ("src/mpi/", "tests/", "perf/", "include/capstan/mpi.hpp")),
    ("CUDA", r"(cuda|cublas|curand|nvml|nvtx|device_launch|driver_types)\w*(/|\.h)", ("src/gpu/", "tests/gpu/")),
    ("NCCL", r"nccl\w*\.h$", ("src/gpu/", "tests/gpu/")),
    ("hwloc", r"hwloc(/|\.h)", ("src/base/topology", "src/base/available_resources", "src/ps/")),
]
DIRECTORIES = ("include", "src", "io", "launch", "perf", "python", "tests", "examples")
INCLUDE = re.compile(r'\s*#\s*include\s+(["<])([^">]+)[">]')


def layer_of(path):
    """'src/ps/shard/heap.cpp' -> 'ps'; None outside of the layers."""
    parts = path.split("/")
    if parts[0] == "src":
        return parts[1]
    return parts[0] if parts[0] in ("io", "launch") else None


def complaint(path, bracket, included):
    """Returns the reason why the file at `path` must not include `included`, or None."""
    for library, pattern, owners in OWNERS:
        if re.match(pattern, included) and not path.startswith(owners):
            return f"<{included}> belongs to {library}; only {', '.join(owners)} may include it"
    target = included.split("/")[0]
    if path.startswith("include/"):
        if bracket == '"' and not included.startswith("capstan/") or target in ALLOWED:
            return f'a public header must not include "{included}", which is not installed'
        return None
    if path.startswith("python/"):
        return f"python/ uses the public headers only, not {included}" if target in ALLOWED else None
    layer = layer_of(path)
    if layer is None or target not in ALLOWED:
        return None
    if layer not in ALLOWED:
        return f"{layer} is not a layer; add it to ORDER in tests/check_layers.py"
    if target != layer and target not in ALLOWED[layer]:
        return f"{layer} must not include {target}/"
    return None


def check(root):
    """Returns all complaints, as 'path:line: text'."""
    found = []
    files = 0
    for directory in DIRECTORIES:
        for source in sorted((root / directory).rglob("*")):
            if source.suffix not in (".hpp", ".cpp", ".h", ".c", ".cu", ".cuh"):
                continue
            files += 1
            path = source.relative_to(root).as_posix()
            for number, line in enumerate(source.read_text().splitlines(), 1):
                include = INCLUDE.match(line)
                text = include and complaint(path, include[1], include[2])
                if text:
                    found.append(f"{path}:{number}: {text}")
    if files == 0:
        found.append(f"{root}: no sources found; is this the root of the repository?")
    return found


if __name__ == "__main__":
    complaints = check(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    print("\n".join(complaints) or "every include points to its own layer or a lower one")
    sys.exit(bool(complaints))
