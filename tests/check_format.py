#!/usr/bin/env python3
"""check_format.py ROOT -- fails if clang-format 14 would change a source; with --fix, reformats it instead.

Other versions of clang-format format differently, so the check skips (exit code 77) if version 14 is not installed.
"""
import pathlib
import re
import shutil
import subprocess
import sys

DIRECTORIES = ("include", "src", "io", "launch", "perf", "python", "tests", "examples")
SUFFIXES = (".hpp", ".cpp", ".h", ".c", ".cu", ".cuh", ".inc")


def clang_format_14():
    for name in ("clang-format-14", "clang-format"):
        program = shutil.which(name)
        if program:
            version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
            if re.search(r"version 14\.", version):
                return program
    return None


def main(arguments):
    fix = "--fix" in arguments
    root = pathlib.Path([a for a in arguments if a != "--fix"][0])
    program = clang_format_14()
    if program is None:
        print("SKIP: clang-format 14 is not installed (Debian: clang-format-14)")
        return 77
    sources = sorted(path for directory in DIRECTORIES for path in (root / directory).rglob("*") if path.suffix in SUFFIXES)
    if not sources:
        print(f"{root}: no sources found; is this the root of the repository?")
        return 1
    mode = ["-i"] if fix else ["--dry-run", "--Werror"]
    done = subprocess.run([program, "--style=file", *mode, *map(str, sources)], check=False)
    if done.returncode != 0:
        print(f"to fix: {sys.argv[0]} --fix {root}")
    else:
        print(f"{len(sources)} files {'formatted' if fix else 'are formatted correctly'}")
    return done.returncode and 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
