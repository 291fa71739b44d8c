#!/usr/bin/env python3
"""cable.py NAME NAME -- a cable between two network interfaces that can lose and delay frames, and be cut.

Replaces `tc netem` for kernels without it: two TAP interfaces whose frames pass through this process. Prints "ready"
when both exist; the caller moves them to their namespaces. They disappear when the process ends.

Commands on standard input: `delay MILLISECONDS` (each way), `loss FRACTION` (drops this fraction of frames at random,
with a fixed seed), `cut`, `mend`. The reply to each is one line with the numbers of frames carried and lost so far.
While the cable is cut, all frames are lost, including those in flight.
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
MAX_FRAME_BYTES = 65536
# Maximum number of queued frames in each direction; further frames are dropped, as by a switch.
MAX_QUEUED_FRAMES = 20000


def open_tap(name):
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TAP | IFF_NO_PI))
    return fd


class Cable:
    def __init__(self, ends):
        self.other = {ends[0]: ends[1], ends[1]: ends[0]}
        self.waiting = {end: collections.deque() for end in ends}  # by destination: (due time, frame)
        self.delay, self.loss, self.is_cut = 0.0, 0.0, False
        self.chance = random.Random(1)
        self.carried = self.lost = 0

    def receive(self, end):
        to, due = self.other[end], time.monotonic() + self.delay
        for _ in range(64):
            try:
                frame = os.read(end, MAX_FRAME_BYTES)
            except OSError:  # no more frames, or the interface is down
                return
            waiting = self.waiting[to]
            if self.is_cut or len(waiting) >= MAX_QUEUED_FRAMES or (self.loss and self.chance.random() < self.loss):
                self.lost += 1
            elif self.delay or waiting:
                waiting.append((due, frame))
            else:
                self.deliver(to, frame)

    def deliver(self, end, frame):
        try:
            os.write(end, frame)
            self.carried += 1
        except OSError:
            self.lost += 1

    def deliver_due_frames(self):
        """Delivers the frames that are due; returns the seconds until the next one is, or None if none is queued."""
        now, delays = time.monotonic(), []
        for end, waiting in self.waiting.items():
            while waiting and waiting[0][0] <= now:
                self.deliver(end, waiting.popleft()[1])
            if waiting:
                delays.append(waiting[0][0] - now)
        return min(delays, default=None)

    def execute(self, words):
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
            sys.exit(f"cable.py: unknown command {words}; expected delay, loss, cut or mend")
        print(f"{self.carried} carried, {self.lost} lost", flush=True)


def main():
    ends = [open_tap(name) for name in sys.argv[1:3]]
    cable = Cable(ends)
    print("ready", flush=True)
    rest = b""
    while True:
        ready, _, _ = select.select([*ends, 0], [], [], cable.deliver_due_frames())
        for end in ready:
            if end != 0:
                cable.receive(end)
                continue
            data = os.read(0, 4096)
            if not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                cable.execute(line.decode().split())


if __name__ == "__main__":
    main()
