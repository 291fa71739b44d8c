#!/usr/bin/env python3
"""stalls.py FILE -- says when the machine stands still, until it is killed: a processor, or the disk that FILE is on.

A virtual machine may lose a processor for seconds, and a disk may be as slow; a rank that is silent then has done nothing
wrong. A line of standard output for each stall.
"""
import mmap
import multiprocessing
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from die_with_parent import die_with_parent  # noqa: E402

PERIOD = 0.1
TOO_LONG = 1.0
BLOCK = 4096


def say(what, seconds):
    sys.stdout.write(f"{what} took {seconds:.1f} s longer than it should, until {time.strftime('%H:%M:%S')}\n")
    sys.stdout.flush()


def watch(what, act):
    """Acts again and again, each time for PERIOD, and says when it took much longer."""
    die_with_parent()
    while True:
        began = time.monotonic()
        act()
        late = time.monotonic() - began - PERIOD
        if late > TOO_LONG:
            say(what, late)


def watch_processor(number):
    os.sched_setaffinity(0, {number})
    # A sleep that takes longer than it should is what this looks for.
    watch(f"a sleep on processor {number}", lambda: time.sleep(PERIOD))


def watch_disk(path):
    try:
        file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    except OSError:
        return  # in memory
    block = mmap.mmap(-1, BLOCK)  # aligned, as O_DIRECT wants it

    def read():
        os.preadv(file, [block], 0)
        time.sleep(PERIOD)  # between two reads

    watch(f"a read of {BLOCK} bytes from disk", read)


def main(path):
    die_with_parent()
    watchers = [multiprocessing.Process(target=watch_processor, args=(number,)) for number in sorted(os.sched_getaffinity(0))]
    watchers.append(multiprocessing.Process(target=watch_disk, args=(path,)))
    for watcher in watchers:
        watcher.start()
    for watcher in watchers:
        watcher.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
