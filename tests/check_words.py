#!/usr/bin/env python3
"""check_words.py ROOT -- fails if a tracked text file contains a phrase or a name that tests/words.txt lists.

Lines of tests/words.txt are "PATTERN | REPLACEMENT": a Python regular expression, and the words to use instead. A
pattern with a capital letter or an underscore is a name and matches exactly. Any other pattern ignores case, and its
spaces also match line breaks.
"""
import pathlib
import re
import subprocess
import sys

LIST = "tests/words.txt"
SKIPPED = re.compile(r"^(tests/words\.txt|tests/checks/check_words_test\.py|LICENSE|.*\.(svg|png))$")


def tracked_files(root):
    """Returns paths relative to `root`. Outside of a Git work tree, these are all files that are not in build/."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        return sorted(name for name in listed.stdout.split("\0") if name and (root / name).is_file())
    files = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in files if path.parts[0] not in ("build", ".git"))


def read_list(text):
    """Returns [(compiled pattern, replacement)]. Raises ValueError that names a malformed line."""
    rules = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        pattern, separator, replacement = (part.strip() for part in line.rpartition(" | "))
        if not separator or not pattern or not replacement:
            raise ValueError(f"{LIST}:{number}: {line!r}, expected PATTERN | REPLACEMENT")
        is_name = re.search(r"[A-Z_]", re.sub(r"\\.", "", pattern))
        spaced = pattern if is_name else pattern.replace(" ", r"\s+(?:(?://+|#|\*)\s*)?")
        rules.append((re.compile(rf"\b(?:{spaced})\b", 0 if is_name else re.IGNORECASE), replacement))
    return rules


def check(root):
    """Returns all complaints, as 'path:line: text'."""
    rules = read_list((root / LIST).read_text())
    found = []
    for name in tracked_files(root):
        if SKIPPED.match(name):
            continue
        try:
            text = (root / name).read_text()
        except UnicodeDecodeError:
            continue  # a binary file
        for pattern, replacement in rules:
            for match in pattern.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                words = " ".join(match[0].split())
                found.append(f"{name}:{line}: \"{words}\"; use {replacement}")
    return found


if __name__ == "__main__":
    complaints = check(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    print("\n".join(complaints) or "no phrase or name of tests/words.txt is used")
    sys.exit(bool(complaints))
