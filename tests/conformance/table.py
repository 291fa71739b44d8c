#!/usr/bin/env python3
"""table.py [--check] [ROOT] -- generates docs/conformance.md from the markers above the tests of this directory.

Each TEST has one or more markers above it, in comments that may span several lines:
  // A3.7, B151-B160: same.
  // A3.6: better: rows have the order of the ids.
  // own: better: a feature without a number, because TensorFlow lacks it.
Markers are optional in the C++ tests of OTHERS, and in the Python tests of SCRIPTS and PYTHON, where they follow a #.
not_applicable.txt has a line `A4.15: reason.` for numbers that do not apply, or only in part, and `A3.10: with checkpoints.`
for numbers that another part of Capstan will cover; rows.txt lists all numbers.

--check writes nothing, and fails if the page is out of date. Both modes fail for a test without a marker, a
marker without a test, a malformed marker, and a number that is not in rows.txt.
"""
import collections
import pathlib
import re
import sys

NUMBER = r"[ABS]\d+(?:\.\d+)?"
LIST = rf"{NUMBER}(?:\s*-\s*{NUMBER})?(?:\s*,\s*{NUMBER}(?:\s*-\s*{NUMBER})?)*"
STARTS = re.compile(rf"(?:own|{NUMBER})\s*[-,:]")
MARKER = re.compile(rf"(?P<numbers>own|{LIST})\s*: (?:(?P<same>same\.)|better: (?P<how>.+\.))")
LISTED = re.compile(rf"(?P<numbers>{LIST})\s*: (?P<text>.+)")
CLASS = re.compile(r"class (\w+)\((?:\w+, )*\w*Test\):")
METHOD = re.compile(r"def (test_\w+)\(self\):")
FUNCTION = re.compile(r"def (test_\w+)\(")
TEST = re.compile(r"(?:TYPED_)?TEST(?:_[FP])?\(\s*(\w+)\s*,\s*(\w+)\s*\)")

OTHERS = ("coordinator", "io")  # directories in which some tests are cases of TensorFlow

SCRIPTS = ("fault",)  # directories of tests in Python
PYTHON = "python"  # directory of the tests of the Python package

KINDS = ("same", "better", "not applicable", "with checkpoints", "not yet covered")

PAGE = """# Conformance

This page compares the four generations of TensorFlow's `ParameterServerStrategy` with Capstan.
`tests/conformance/table.py` generates it from the markers above the tests and from
`not_applicable.txt`; CTest fails if it is out of date.

*A* numbers are capabilities, *B* numbers are test cases of TensorFlow, and *S* numbers are calls,
arguments and notes of its API documentation. "Same": the test expects the behavior that
TensorFlow's documentation, source or tests describe. "Better": the same and more, or without a
limit of TensorFlow. The table leaves out most capabilities of other parts of TensorFlow, such as
Keras.

{count}
"""


class Wrong(Exception):
    """An invalid marker or list, as 'file:line: text'."""


def expand(numbers):
    """'A3.7, B151-B153' -> ['A3.7', 'B151', 'B152', 'B153']."""
    found = []
    for part in numbers.split(","):
        ends = [end.strip() for end in part.split("-")]
        first, last = ends[0], ends[-1]
        stem = first[: re.search(r"\d+$", first).start()]
        if not last.startswith(stem) or not last[len(stem):].isdigit():
            raise ValueError(f"{part.strip()} is not a range")
        start, stop = int(first[len(stem):]), int(last[len(stem):])
        if stop < start:
            raise ValueError(f"{part.strip()} runs backwards")
        found += [f"{stem}{n}" for n in range(start, stop + 1)]
    return found


def expand_at(numbers, where):
    try:
        return expand(numbers)
    except ValueError as error:
        raise Wrong(f"{where}: {error}") from None


def read_rows(path):
    """[(section, [(numbers, title)])] of rows.txt."""
    sections = []
    for line_number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("## "):
            sections.append((line[3:].strip(), []))
        elif line.strip() and not line.startswith("#"):
            where = f"{path.name}:{line_number}"
            listed = LISTED.fullmatch(line.strip())
            if not listed or not sections:
                raise Wrong(f"{where}: expected `A1.2: title` in a section: {line}")
            sections[-1][1].append((expand_at(listed["numbers"], where), listed["text"]))
    return sections


def read_not_applicable(path):
    """number -> reason."""
    reasons = {}
    for line_number, line in enumerate(path.read_text().splitlines() if path.exists() else [], 1):
        if not line.strip() or line.startswith("#"):
            continue
        where = f"{path.name}:{line_number}"
        listed = LISTED.fullmatch(line.strip())
        if not listed:
            raise Wrong(f"{where}: expected `A1.2: reason.`: {line}")
        for number in expand_at(listed["numbers"], where):
            if number in reasons:
                raise Wrong(f"{where}: {number} occurs twice")
            reasons[number] = listed["text"]
    return reasons


def markers_of(comment):
    """Returns the markers of a block of comment lines, each joined to one line."""
    markers = []
    for line in comment:
        in_list = markers and markers[-1].endswith(",") and ": " not in markers[-1]
        if STARTS.match(line) and not in_list:
            markers.append(line)
        elif markers:
            markers[-1] += " " + line
    return markers


def lines_of(path):
    """Converts a script's comments and tests to the C++ form."""
    text = path.read_text().splitlines()
    if path.suffix != ".py":
        return text
    name, lines = "pytest", []
    for line in text:
        if group := CLASS.match(line):
            name = group[1]
        method = METHOD.match(line.strip()) or FUNCTION.match(line)
        comment = line.strip().startswith("# ")
        lines.append(f"TEST({name}, {method[1]})" if method else "//" + line.strip()[1:] if comment else line)
    return lines


def read_test_file(path, directory=""):
    """[(numbers or ['own'], how or None, test)]. In another `directory`, markers are optional."""
    found, comment, line_of_comment = [], [], 0
    text = lines_of(path)
    for line_number, line in enumerate(text, 1):
        stripped = line.strip()
        rest = text[line_number:line_number + 2] if stripped.startswith(("TEST", "TYPED_TEST")) else []
        test = TEST.match(" ".join([stripped, *rest]))  # its names may be on separate lines
        if stripped.startswith("//"):
            if not comment:
                line_of_comment = line_number
            comment.append(stripped.lstrip("/").strip())
        elif test:
            suite = "" if test[1] == "pytest" else test[1].rstrip("_") + "."
            name = f"{directory}{path.stem}: {suite}{test[2]}"
            markers = markers_of(comment)
            if not markers and not directory:
                raise Wrong(f"{path.name}:{line_number}: {test[1]}.{test[2]} has no marker above it")
            for marker in markers:
                match = MARKER.fullmatch(marker)
                if not match:
                    raise Wrong(f"{path.name}:{line_of_comment}: expected `<numbers>: same.` or `<numbers>: better: "
                                f"how.`: {marker}")
                own = match["numbers"] == "own"
                numbers = ["own"] if own else expand_at(match["numbers"], f"{path.name}:{line_of_comment}")
                found.append((numbers, match["how"], name))
            comment = []
        elif not stripped:
            if any(MARKER.fullmatch(marker) for marker in markers_of(comment)):
                raise Wrong(f"{path.name}:{line_of_comment}: a marker without a test below it")
            comment = []
        elif not comment or not markers_of(comment):
            comment = []  # code between a marker and its test is allowed, as long as no line is empty
    return found


def next_number(number):
    """'A3.7' -> 'A3.8'."""
    stem, last = re.fullmatch(r"(.*?)(\d+)", number).groups()
    return f"{stem}{int(last) + 1}"


def ranges(numbers):
    """['B1', 'B2', 'B4'] -> 'B1-B2, B4'."""
    runs = []
    for number in numbers:
        if runs and next_number(runs[-1][1]) == number:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return ", ".join(first if first == last else f"{first}-{last}" for first, last in runs)


def cell(text):
    return text.replace("|", "\\|")


def verdict_of(entries, reason):
    """(text of the table, tests) of one number."""
    tests = list(dict.fromkeys(test for _, test in entries))
    hows = list(dict.fromkeys(how.rstrip(".") for how, _ in entries if how))
    parts = []
    if hows:
        parts.append("better: " + "; ".join(hows))
    elif entries:
        parts.append("same")
    if reason and reason.startswith("with "):
        parts.append(("in part " if entries else "") + reason.rstrip("."))
    elif reason:
        parts.append(("in part not applicable: " if entries else "not applicable: ") + reason.rstrip("."))
    return "; ".join(parts), tests


def kind_of(verdict):
    for kind in KINDS:
        if verdict.startswith(kind):
            return kind
    return KINDS[-1]


def read_markers(directory, known):
    """number -> [(how or None, test)], in the order of files and tests."""
    entries = collections.defaultdict(list)
    files = [(path, "") for path in sorted(directory.glob("*_test.cpp"))]
    for other in OTHERS:
        files += [(path, f"{other}/") for path in sorted((directory.parent / other).glob("*_test.cpp"))]
    for other in SCRIPTS:
        files += [(path, f"{other}/") for path in sorted((directory.parent / other).glob("*_test.py"))]
    files += [(path, f"{PYTHON}/") for path in sorted((directory.parent / PYTHON).glob("test_*.py"))]
    for path, other in files:
        for numbers, how, test in read_test_file(path, other):
            for number in numbers:
                if number not in known and number != "own":
                    raise Wrong(f"{path.name}: {test.split(': ')[1]} names {number}, which is not in rows.txt")
                entries[number].append((how, test))
    return entries


def make_page(directory):
    """Returns the page, and the numbers without a test."""
    sections = read_rows(directory / "rows.txt")
    known = [number for _, rows in sections for numbers, _ in rows for number in numbers]
    twice = [number for number, count in collections.Counter(known).items() if count > 1]
    if twice:
        raise Wrong(f"rows.txt: {', '.join(twice)} occurs twice")
    entries = read_markers(directory, set(known))
    reasons = read_not_applicable(directory / "not_applicable.txt")
    for number in reasons:
        if number not in known:
            raise Wrong(f"not_applicable.txt: {number} is not in rows.txt")

    lines, missing, counts = [], [], collections.Counter()
    for section, rows in sections:
        lines += ["", f"## {section}", "", "| number | what | here | tests |", "|---|---|---|---|"]
        for numbers, title in rows:
            groups = {}
            for number in numbers:
                verdict, tests = verdict_of(entries[number], reasons.get(number))
                counts[kind_of(verdict)] += 1
                if not verdict:
                    missing.append((number, title))
                groups.setdefault((verdict or "not yet covered", tuple(tests)), []).append(number)
            for (verdict, tests), members in groups.items():
                named = "<br>".join(f"`{test}`" for test in tests) or "-"
                lines.append(f"| {ranges(members)} | {cell(title)} | {cell(verdict)} | {named} |")
    if entries["own"]:
        lines += ["", "## Beyond TensorFlow", "", "| what | tests |", "|---|---|"]
        lines += [f"| {cell(how.rstrip('.'))} | `{test}` |" for how, test in entries["own"]]
    lines += ["", "## Not yet covered", ""]
    titles = {}
    for number, title in missing:
        titles.setdefault(title, []).append(number)
    lines += [f"* {ranges(numbers)}: {title}" for title, numbers in titles.items()] or ["Nothing."]
    count = f"Of {len(known)} numbers: " + ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind]) + "."
    return PAGE.format(count=count) + "\n".join(lines) + "\n", missing


def main(*arguments):
    only_check = "--check" in arguments
    places = [argument for argument in arguments if argument != "--check"]
    root = pathlib.Path(places[0]) if places else pathlib.Path(__file__).resolve().parents[2]
    page_path = root / "docs" / "conformance.md"
    try:
        page, missing = make_page(root / "tests" / "conformance")
    except Wrong as wrong:
        print(wrong)
        return 1
    if missing:
        print("not yet covered: " + ranges([number for number, _ in missing]))
    if not only_check:
        page_path.write_text(page)
    elif not page_path.exists() or page_path.read_text() != page:
        print("docs/conformance.md is out of date; run tests/conformance/table.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
