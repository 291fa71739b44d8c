"""``python -m capstan`` runs the ``capstan`` program."""

import os
import pathlib
import shutil
import sys


def main():
    """Replace this process by the ``capstan`` program of the package, or else of ``PATH``."""
    beside = pathlib.Path(__file__).parent / "bin" / "capstan"
    program = str(beside) if beside.exists() else shutil.which("capstan")
    if program is None:
        sys.exit(f"capstan: found no program {beside}, and none on PATH; install Capstan, or set PATH")
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
