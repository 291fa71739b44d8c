#!/usr/bin/env python3
"""stalls.py FILE -- reports stalls of the machine until it is killed: of a processor, or of the disk that contains FILE.

A virtual machine may lose a processor or a disk for seconds; a rank that is silent meanwhile is not faulty. Prints one line
to standard output for each stall.
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


def report(what, seconds):
    sys.stdout.write(f"{what} took {seconds:.1f} s longer than expected, until {time.strftime('%H:%M:%S')}\n")
    sys.stdout.flush()


def watch(what, act):
    """Calls `act`, which takes PERIOD, repeatedly, and reports each call that takes much longer."""
    die_with_parent()
    while True:
        began = time.monotonic()
        act()
        late = time.monotonic() - began - PERIOD
        if late > TOO_LONG:
            report(what, late)


def watch_processor(number):
    os.sched_setaffinity(0, {number})
    # The delay of this sleep is the measurement.
    watch(f"a sleep on processor {number}", lambda: time.sleep(PERIOD))


def watch_disk(path):
    try:
        file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    except OSError:
        return  # a file system in memory
    block = mmap.mmap(-1, BLOCK)  # aligned, as O_DIRECT requires

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
