#!/usr/bin/env python3
"""check_readme.py ROOT -- the programs in README.md are the files in examples/, character for character.

A program is a ```cpp block after a line `<!-- examples/NAME.cpp -->`. A file's first comment lines, which say what it
is, may be left out of the README.
"""
import pathlib
import re
import sys

BLOCK = re.compile(r"<!-- *(examples/\S+?) *-->\s*\n```cpp\n(.*?)^```", re.S | re.M)


def without_head(text):
    """The text from the first line that is no comment."""
    lines = text.splitlines()
    while lines and (lines[0].startswith("//") or not lines[0].strip()):
        lines.pop(0)
    return "\n".join(lines).rstrip()


def check(root):
    readme = (root / "README.md").read_text()
    blocks = BLOCK.findall(readme)
    found = []
    if not blocks:
        found.append("README.md shows no program: no ```cpp block after <!-- examples/NAME.cpp -->")
    for name, shown in blocks:
        source = root / name
        if not source.is_file():
            found.append(f"README.md shows {name}, which does not exist")
            continue
        shown_lines = without_head(shown).splitlines()
        real_lines = without_head(source.read_text()).splitlines()
        for number, (a, b) in enumerate(zip(shown_lines + [None], real_lines + [None]), 1):
            if a != b:
                found.append(f"{name} differs from README.md in line {number} of the program:\n"
                             f"  README.md: {a}\n  {name}: {b}")
                break
    return found


if __name__ == "__main__":
    complaints = check(pathlib.Path(sys.argv[1]))
    print("\n".join(complaints) or "README.md shows the programs as they are")
    sys.exit(bool(complaints))
