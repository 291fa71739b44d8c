#!/usr/bin/env python3
"""check_sleeps.py ROOT -- fails if a test sleeps without a comment, on the same or the previous line.

The comment gives the reason. To wait for progress, use support/poll.hpp or support/poll.py.
"""
import pathlib
import re
import sys

SLEEP = re.compile(r"\b(sleep_for|sleep_until|usleep|nanosleep|time\.sleep)\s*\(")


def comment_of(path, text):
    """Returns the comment marker of this file's language; None if it is neither C++ nor Python."""
    if path.suffix in (".cpp", ".hpp", ".cu"):
        return "//"
    is_python = path.suffix == ".py" or not path.suffix and text.startswith("#!/usr/bin/env python3")
    return "#" if is_python else None


def check(root):
    """Returns all complaints, as 'path:line: text'."""
    found = []
    for file in sorted((root / "tests").rglob("*")):
        if not file.is_file() or file.suffix not in (".cpp", ".hpp", ".cu", ".py", "") or file.stem == "check_sleeps_test":
            continue
        text = file.read_text(errors="replace")
        comment = comment_of(file, text)
        lines = text.splitlines() if comment else []
        for number, line in enumerate(lines):
            before = lines[number - 1].strip() if number else ""
            if SLEEP.search(line) and comment not in line and not before.startswith(comment):
                path = file.relative_to(root).as_posix()
                found.append(f"{path}:{number + 1}: sleep without a reason; wait for progress (support/poll), or add a comment")
    return found


if __name__ == "__main__":
    complaints = check(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    print("\n".join(complaints) or "every sleep has a comment")
    sys.exit(bool(complaints))
