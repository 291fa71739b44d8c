"""list_skips.py -- lists the tests that a ctest run skipped, with their reasons, from its LastTest.log.

It recognizes GTEST_SKIP() << "reason", scripts that print "SKIP: reason", unittest's "... skipped 'reason'" and CTest's
disabled tests.
"""
import re

TEST = re.compile(r'^\d+/\d+ Test: (?P<name>\S+)\nCommand: (?P<command>.*)\n(?P<rest>(?:.*\n)*?)"(?P=name)" end time:', re.M)
GTEST = re.compile(r"^\[ RUN      \] (?P<name>\S+)\n(?P<text>(?:.*\n)*?)\[  SKIPPED \] (?P=name)", re.M)
GTEST_LOCATION = re.compile(r"^\S+:\d+: Skipped\n", re.M)
UNITTEST = re.compile(r"^(?P<name>\w+) \(.*\).*\.\.\. skipped ['\"](?P<reason>.*)['\"]$", re.M)
COLOR = re.compile(r"\x1b\[[0-9;]*[mK]|\r")  # mpirun gives each rank a pseudo-terminal
SCRIPT = re.compile(r"^SKIP: (?P<reason>.*)$", re.M)


def skips(log):
    """Returns [(test, reason)] in the order of the log."""
    found = []
    for test in TEST.finditer(COLOR.sub("", log)):
        name, output = test["name"], test["rest"]
        if test["command"] == '""':
            found.append((name, "disabled"))
        for part in GTEST.finditer(output):
            location = GTEST_LOCATION.search(part["text"])
            reason = part["text"][location.end():] if location else part["text"]
            found.append((f"{name} {part['name']}", " ".join(reason.split())))
        found += [(f"{name} {part['name']}", part["reason"]) for part in UNITTEST.finditer(output)]
        found += [(name, part["reason"]) for part in SCRIPT.finditer(output)]
    return found
