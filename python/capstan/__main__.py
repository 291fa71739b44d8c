"""``python -m capstan`` runs the ``capstan`` program."""

import os
import pathlib
import sys


def _program() -> str:
    """Return the path of the package's program, or else of the first one on ``PATH`` that is not a script."""
    found = [pathlib.Path(__file__).parent / "bin" / "capstan"]
    found += [pathlib.Path(directory, "capstan") for directory in os.get_exec_path()]
    for path in found:
        if os.access(path, os.X_OK) and path.is_file() and path.read_bytes()[:2] != b"#!":
            return str(path)
    sys.exit(f"capstan: found no program {found[0]}, and none on PATH; install Capstan, or set PATH")


def main() -> None:
    """Replace this process by the ``capstan`` program."""
    program = _program()
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
