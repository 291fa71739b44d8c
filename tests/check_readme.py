#!/usr/bin/env python3
"""check_readme.py ROOT -- fails if a program in README.md or docs/ differs from its file in examples/.

A program is a ```cpp or ```python block after a line `<!-- examples/NAME -->`. The block may omit the comment lines at
the start of the file.
"""
import pathlib
import re
import sys

BLOCK = re.compile(r"<!-- *(examples/\S+?) *-->\s*\n```(?:cpp|python)\n(.*?)^```", re.S | re.M)


def without_head(text):
    """Returns the text from the first line that is not a comment."""
    lines = text.splitlines()
    while lines and (lines[0].startswith("//") or not lines[0].strip()):
        lines.pop(0)
    return "\n".join(lines).rstrip()


def differences(root, page):
    found = []
    for name, shown in BLOCK.findall((root / page).read_text()):
        source = root / name
        if not source.is_file():
            found.append(f"{page} shows {name}, which does not exist")
            continue
        shown_lines = without_head(shown).splitlines()
        real_lines = without_head(source.read_text()).splitlines()
        for number, (a, b) in enumerate(zip(shown_lines + [None], real_lines + [None]), 1):
            if a != b:
                found.append(f"{name} differs from {page} at line {number} of the program:\n"
                             f"  {page}: {a}\n  {name}: {b}")
                break
    return found


def check(root):
    pages = ["README.md", *sorted(str(page.relative_to(root)) for page in (root / "docs").rglob("*.md"))]
    found = [complaint for page in pages for complaint in differences(root, page)]
    if not BLOCK.search((root / "README.md").read_text()):
        found.append("README.md shows no program: no block after <!-- examples/NAME -->")
    return found


if __name__ == "__main__":
    complaints = check(pathlib.Path(sys.argv[1]))
    print("\n".join(complaints) or "the programs in README.md and docs/ match their files")
    sys.exit(bool(complaints))
