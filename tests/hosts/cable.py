#!/usr/bin/env python3
"""cable.py NAME NAME -- a cable between two network interfaces, which loses frames, takes its time, or is cut.

What `tc netem` does where the kernel has it, for kernels that have not: two TAP interfaces whose frames pass through
this process. Says "ready" when both are there; somebody else moves them to their namespaces. They end with it.

Standard input: `delay MILLISECONDS`, each way; `loss SHARE`, of all frames, by a fixed seed; `cut`; `mend`; each is
answered with a line. A frame that arrives while the cable is cut is lost, and so are those on their way.
"""
import collections
import fcntl
import os
import random
import select
import struct
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 2, 0x1000
LONGEST_FRAME = 65536
# What a switch would hold back at most, each way; the rest is lost.
MOST_WAITING = 20000


def interface(name):
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TAP | IFF_NO_PI))
    return fd


class Cable:
    def __init__(self, ends):
        self.other = {ends[0]: ends[1], ends[1]: ends[0]}
        self.waiting = {end: collections.deque() for end in ends}  # by where they go: (when, frame)
        self.delay, self.loss, self.is_cut = 0.0, 0.0, False
        self.chance = random.Random(1)
        self.carried = self.lost = 0

    def take(self, end):
        to, due = self.other[end], time.monotonic() + self.delay
        for _ in range(64):
            try:
                frame = os.read(end, LONGEST_FRAME)
            except OSError:  # no more of them, or the interface is down
                return
            waiting = self.waiting[to]
            if self.is_cut or len(waiting) >= MOST_WAITING or (self.loss and self.chance.random() < self.loss):
                self.lost += 1
            elif self.delay or waiting:
                waiting.append((due, frame))
            else:
                self.give(to, frame)

    def give(self, end, frame):
        try:
            os.write(end, frame)
            self.carried += 1
        except OSError:
            self.lost += 1

    def give_what_is_due(self):
        """Until when to wait for more, in seconds; None when nothing waits."""
        now, nexts = time.monotonic(), []
        for end, waiting in self.waiting.items():
            while waiting and waiting[0][0] <= now:
                self.give(end, waiting.popleft()[1])
            if waiting:
                nexts.append(waiting[0][0] - now)
        return min(nexts, default=None)

    def obey(self, words):
        if words[0] == "delay":
            self.delay = float(words[1]) / 1000
        elif words[0] == "loss":
            self.loss = float(words[1])
        elif words[0] == "cut":
            self.is_cut = True
            for waiting in self.waiting.values():
                self.lost += len(waiting)
                waiting.clear()
        elif words[0] == "mend":
            self.is_cut = False
        else:
            sys.exit(f"cable.py: what is {words}?")
        print(f"{self.carried} carried, {self.lost} lost", flush=True)


def main():
    ends = [interface(name) for name in sys.argv[1:3]]
    cable = Cable(ends)
    print("ready", flush=True)
    rest = b""
    while True:
        ready, _, _ = select.select([*ends, 0], [], [], cable.give_what_is_due())
        for end in ready:
            if end != 0:
                cable.take(end)
                continue
            said = os.read(0, 4096)
            if not said:
                return
            *lines, rest = (rest + said).split(b"\n")
            for line in lines:
                cable.obey(line.decode().split())


if __name__ == "__main__":
    main()
