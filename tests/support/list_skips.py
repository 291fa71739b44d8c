"""list_skips.py -- which tests a ctest run has skipped, with their reasons, from its LastTest.log.

Understands GTEST_SKIP() << "reason", a script that prints "SKIP: reason", unittest's "... skipped 'reason'" and
CTest's disabled tests.
"""
import re

TEST = re.compile(r'^\d+/\d+ Test: (?P<name>\S+)\nCommand: (?P<command>.*)\n(?P<rest>(?:.*\n)*?)"(?P=name)" end time:', re.M)
GTEST = re.compile(r"^\[ RUN      \] (?P<name>\S+)\n(?P<text>(?:.*\n)*?)\[  SKIPPED \] (?P=name)", re.M)
GTEST_PLACE = re.compile(r"^\S+:\d+: Skipped\n", re.M)
UNITTEST = re.compile(r"^(?P<name>\w+) \(.*\).*\.\.\. skipped ['\"](?P<reason>.*)['\"]$", re.M)
COLOUR = re.compile(r"\x1b\[[0-9;]*[mK]|\r")  # mpirun gives its ranks a terminal of their own
SCRIPT = re.compile(r"^SKIP: (?P<reason>.*)$", re.M)


def skips(log):
    """[(test, reason)] in the order of the log."""
    found = []
    for test in TEST.finditer(COLOUR.sub("", log)):
        name, output = test["name"], test["rest"]
        if test["command"] == '""':
            found.append((name, "disabled"))
        for part in GTEST.finditer(output):
            place = GTEST_PLACE.search(part["text"])
            reason = part["text"][place.end():] if place else part["text"]
            found.append((f"{name} {part['name']}", " ".join(reason.split())))
        found += [(f"{name} {part['name']}", part["reason"]) for part in UNITTEST.finditer(output)]
        found += [(name, part["reason"]) for part in SCRIPT.finditer(output)]
    return found
