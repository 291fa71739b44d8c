#!/usr/bin/env python3
"""check_spelling.py ROOT -- fails if codespell, with the settings in .codespellrc, rejects a tracked file.

Skips (exit code 77) if codespell is not installed.
"""
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from check_words import tracked_files  # noqa: E402


def main(root):
    if shutil.which("codespell") is None:
        print("SKIP: codespell is not installed (Debian: codespell)")
        return 77
    return subprocess.run(["codespell", "--config", ".codespellrc", *tracked_files(root)], cwd=root, check=False).returncode and 1


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()))
