"""disturbers.py -- what is done to a job at random: ranks are killed and stopped, or lost for good; workers join and leave; the
cable between two hosts is bad for a while.

`disturb` does all of it until the job has ended, and writes each deed into a list. What a job cannot get through by
docs/failures.md is not done to it.
"""
import os
import pathlib
import re
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import job as jobs
from poll import wait_random

HEARTBEAT_SECONDS = 1.0
SECONDS_TO_FINISH = 240


class Wrong(Exception):
    """The job did what it must not."""


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


class Victim:
    """A rank that its agent starts again; nothing is done to one that is not there."""

    SECONDS_TO_CONNECT = 0.1  # until all have connected to it: see docs/failures.md

    def __init__(self, role, index, rank, agent):
        self.name, self.role, self.rank, self.agent = f"{role} {index}", role, rank, agent
        self.deaths = 0
        self.wakes_up = None  # when to let it go on
        self.given_up_before = 0

    def returns(self, said):
        back = "is back" if self.role == "ps" else "is there in place of"
        return len(re.findall(rf"{self.name} \(rank \d+ on \S+\) {back}", said))

    def is_there(self, said):
        return not self.wakes_up and self.returns(said) >= self.deaths

    def look(self, said):
        if self.wakes_up and time.monotonic() >= self.wakes_up:
            self.wake_up()
        # Who was given up in its sleep dies when it wakes up.
        given_up = len(re.findall(rf"{self.name} \(rank \d+ on \S+\) is silent and counts as dead", said))
        self.deaths += given_up - self.given_up_before
        self.given_up_before = given_up

    def wake_up(self):
        self.wakes_up = None
        send(self.child, signal.SIGCONT)

    def strike(self, moment, done):
        """Kills it, or stops it for a while."""
        time.sleep(self.SECONDS_TO_CONNECT)  # nothing says when all have
        self.child = jobs.child_of(self.agent)
        if self.child is None:
            return
        if self.role == "worker" and moment.random() < 0.25:
            self.wakes_up = time.monotonic() + moment.uniform(0.1, 2.5 * HEARTBEAT_SECONDS)
            send(self.child, signal.SIGSTOP)
            done.append(f"{self.name} stopped")
        else:
            send(self.child, signal.SIGKILL)
            self.deaths += 1
            done.append(f"{self.name} killed")


class Coordinator(Victim):
    """Comes back as a program that says anew that it begins."""

    SECONDS_TO_CONNECT = 1.0  # to all ranks, and they to it

    def __init__(self, agent, begins):
        super().__init__("coordinator", 0, 0, agent)
        self.begins = begins

    def returns(self, said):
        return len(re.findall(self.begins, said)) - 1


class Loss:
    """A rank is lost for good, its agent as well if `with_agent`, as soon as `at`."""

    def __init__(self, at, rank, with_agent=True, unless=None, victim=None, heir=None):
        """It is not lost when the job has said `unless`. `victim` is the ps of that rank, whose place the rank `heir` takes, with
        an agent of its own."""
        self.at, self.rank, self.with_agent, self.unless = at, rank, with_agent, unless
        self.victim, self.heir = victim, heir
        self.agent = self.heirs_agent = None
        self.happened = False

    def find(self, job):
        """While all children run: without one, an agent cannot be told from the shell that has started it."""
        self.agent = jobs.agent_of(job, self.rank)
        self.heirs_agent = jobs.agent_of(job, self.heir) if self.heir else None

    def happen(self, job, done):
        if self.rank not in job.ranks() or self.unless and re.search(self.unless, job.stderr):
            return
        pid = self.agent if self.with_agent else jobs.child_of(self.agent)
        if pid is None:
            return
        send(pid, signal.SIGKILL)
        self.happened = True
        done.append(f"rank {self.rank} killed for good" + (" with its agent" if self.with_agent else ""))
        if self.victim:
            self.victim.deaths = self.victim.returns(job.stderr) + 1
            self.victim.agent = self.heirs_agent


class Guests:
    """Workers that join late, and leave or are killed."""

    MOST = 8

    def __init__(self, capstan, run_dir, hosts, moment, done):
        self.command, self.hosts, self.moment, self.done = [capstan, "join", run_dir], hosts, moment, done
        self.here, self.gone = [], []  # (job, since when)
        self.killed = set()

    def come(self):
        far = self.hosts and self.moment.random() < 0.5
        command = self.hosts.on_second(*self.command) if far else self.hosts.on_first(*self.command) if self.hosts else self.command
        self.here.append((jobs.RankedJob(command, env=self.hosts.environment if self.hosts else None), time.monotonic()))
        self.done.append("a worker joins")

    def go(self):
        """Politely, or not. One that has just come still makes its first connections."""
        known = [guest for guest in self.here if time.monotonic() > guest[1] + 1 and guest[0].command.poll() is None]
        if not known:
            return
        guest = self.moment.choice(known)
        self.here.remove(guest)
        self.gone.append(guest)
        if self.moment.random() < 0.3:
            self.killed.add(guest)
            self.done.append("a late worker killed")
        else:
            self.done.append("a late worker leaves")
        send(guest[0].command.pid, signal.SIGKILL if guest in self.killed else signal.SIGTERM)

    def disturb(self):
        if len(self.here) + len(self.gone) < self.MOST and self.moment.random() < 0.6:
            self.come()
        else:
            self.go()

    def end(self, at):
        """After the job, which has ended at that time."""
        for guest in self.here + self.gone:
            code = guest[0].wait(jobs.SECONDS_TO_END + 10)
            # A worker that counted as dead ends as such, and one that came too late finds no job; nobody starts it again.
            fine = guest in self.killed or code == 0 or at < guest[1] + 3 or "counts as dead" in guest[0].stderr
            if not fine or not guest[0].wait_until_gone(jobs.SECONDS_TO_END):
                raise Wrong(f"a late worker's exit code is {code}; it said\n{guest[0].stderr}")

    def close(self):
        for guest, _ in self.here + self.gone:
            guest.__exit__()


class Cable:
    """Between two hosts; one thing is wrong with it at a time, for a while."""

    def __init__(self, hosts, moment, done):
        self.hosts, self.moment, self.done = hosts, moment, done
        self.well_at = None

    def disturb(self):
        if self.well_at is not None:
            return
        words = self.moment.choice([("cut",), ("loss", 0.02), ("delay", 50)])
        # Shorter and longer than what makes a worker count as dead.
        self.well_at = time.monotonic() + self.moment.uniform(0.1, 3 * HEARTBEAT_SECONDS)
        self.hosts.tell_cable(*words)
        self.done.append(f"cable: {words[0]}")

    def mend(self, at_once=False):
        if self.well_at is None or not (at_once or time.monotonic() >= self.well_at):
            return
        for words in (("loss", 0), ("delay", 0), ("mend",)):
            self.hosts.tell_cable(*words)
        self.well_at = None


def may_be_struck(victim, victims, said):
    """A coordinator that comes back has to find all that it looks for, so all are there or it is left alone, and while it is away
    so are they."""
    if not victim.is_there(said):
        return False
    coordinators = [other for other in victims if isinstance(other, Coordinator)]
    needed = victims if victim in coordinators else coordinators
    return all(other.is_there(said) for other in needed)


def disturb(job, victims, moment, done, guests=None, cable=None, losses=()):
    """Until the job has ended."""
    pauses = moment.choice([(0.05, 0.3), (0.3, 1.5)])
    began = time.monotonic()
    losses = list(losses)
    while job.command.poll() is None:
        if time.monotonic() > began + SECONDS_TO_FINISH:
            raise Wrong(f"the job has not ended within {SECONDS_TO_FINISH} s")
        wait_random(moment, *pauses)
        said = job.stderr
        if cable:
            cable.mend()
            if moment.random() < 0.1:
                cable.disturb()
        if guests and moment.random() < 0.15:
            guests.disturb()
        for loss in [loss for loss in losses if time.monotonic() > began + loss.at]:
            loss.happen(job, done)
            losses.remove(loss)
        for victim in victims:
            victim.look(said)
        coordinators = [victim for victim in victims if isinstance(victim, Coordinator)]
        victim = moment.choice(victims + 2 * coordinators)  # which is seldom ready
        if may_be_struck(victim, victims, said):
            victim.strike(moment, done)
