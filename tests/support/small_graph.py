#!/usr/bin/env python3
"""small_graph.py DIRECTORY -- writes a graph of 60 entities and 4 relations that a model can learn in a second.

The entities are the hours of two and a half days: "after" and "seven_after" count around the clock, "same_hour" is symmetric,
"hour_of" is many-to-one. The held-out triples follow from the remaining ones.
"""
import pathlib
import random
import sys

ENTITIES = 60
GROUP = 12


def triples():
    """Returns all true triples, in a fixed order."""
    found = []
    for i in range(ENTITIES):
        found.append((i, "after", (i + 1) % ENTITIES))
        found.append((i, "seven_after", (i + 7) % ENTITIES))
        found.append((i, "hour_of", i % GROUP))
        found += [(i, "same_hour", j) for j in range(i % GROUP, ENTITIES, GROUP) if i != j]
    return [(f"hour{head:02}", relation, f"hour{tail:02}") for head, relation, tail in found]


def write(directory, relations=None):
    """Writes train.txt, valid.txt and test.txt with all relations, or with those named. Returns the directory."""
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    chosen = [triple for triple in triples() if relations is None or triple[1] in relations]
    random.Random(7).shuffle(chosen)
    held_out = len(chosen) // 10
    parts = {"test": chosen[:held_out], "valid": chosen[held_out : 2 * held_out], "train": chosen[2 * held_out :]}
    for name, part in parts.items():
        (directory / f"{name}.txt").write_text("".join("\t".join(triple) + "\n" for triple in part))
    return directory


if __name__ == "__main__":
    print(write(sys.argv[1]))
