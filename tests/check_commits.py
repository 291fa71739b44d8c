#!/usr/bin/env python3
"""check_commits.py ROOT [RANGE] -- fails if the subject of a commit is malformed.

RANGE is a revision range of `git log`. The default is the commits that are not on the upstream branch, or the last 20
commits if there are none. Skips (exit code 77) outside of a Git work tree.
"""
import re
import subprocess
import sys

WIDTH = 72
PREFIX = re.compile(r"^[a-z0-9_./, -]+: ")
# Words that are not imperatives, except for the verbs in IMPERATIVES.
NOT_IMPERATIVE = re.compile(r"^(?:\w+ing|\w+ed|(?:Add|Fix|Move|Remove|Rename|Use|Test|Write|Make|Let|Report|Return)s)$")
IMPERATIVES = {"Bring", "String", "Need", "Feed", "Embed", "Seed", "Shed", "Speed", "Proceed", "Exceed", "Ping"}


def complaints_of(subject):
    """Returns the reasons why a subject is malformed."""
    found = []
    if len(subject) > WIDTH:
        found.append(f"{len(subject)} characters, expected at most {WIDTH}")
    text = PREFIX.sub("", subject)
    first = text.split(" ")[0]
    if not text[:1].isupper():
        found.append("expected a capital letter at the start, after the area and a colon if there is one")
    if text.endswith("."):
        found.append("expected no period at the end")
    if NOT_IMPERATIVE.match(first) and first not in IMPERATIVES:
        found.append(f"\"{first}\", expected an imperative such as \"Add\" or \"Reject\"")
    return found


def git(root, *arguments):
    done = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def main(root, commits=None):
    if git(root, "rev-parse", "--git-dir") is None:
        print(f"SKIP: {root} is not a Git work tree")
        return 77
    if commits is None:
        commits = "@{upstream}..HEAD" if git(root, "log", "-1", "--format=%h", "@{upstream}..HEAD") else "-20"
    log = git(root, "log", "--no-merges", "--format=%h %s", commits)
    if log is None:
        print(f"git log {commits} failed; expected a range of commits")
        return 2
    found = []
    for line in log.splitlines():
        commit, _, subject = line.partition(" ")
        found += [f"{commit}: {complaint}: {subject}" for complaint in complaints_of(subject)]
    print("\n".join(found) or f"{len(log.splitlines())} subjects are well formed")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(*(sys.argv[1:] or ["."])))
