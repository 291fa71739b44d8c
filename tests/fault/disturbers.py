"""disturbers.py -- random faults: ranks are killed, stopped or lost permanently, workers join and leave, and the cable between two
hosts is unreliable for a while.

`disturb` injects faults until the job has ended and records each in a list. It injects no fault that, by docs/failures.md, a job
cannot survive.
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
    """The job violated its contract."""


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


class Victim:
    """A rank that its agent restarts; it is disturbed only while it runs."""

    SECONDS_TO_CONNECT = 0.1  # until all ranks have connected to it; see docs/failures.md

    def __init__(self, role, index, rank, agent):
        self.name, self.role, self.rank, self.agent = f"{role} {index}", role, rank, agent
        self.deaths = 0
        self.resumes_at = None  # when to resume it
        self.declared_dead_before = 0

    def returns(self, output):
        back = "has recovered" if self.role == "ps" else "replaces the previous process"
        return len(re.findall(rf"{self.name} \(rank \d+ on \S+\) {back}", output))

    def is_running(self, output):
        return not self.resumes_at and self.returns(output) >= self.deaths

    def update(self, output):
        if self.resumes_at and time.monotonic() >= self.resumes_at:
            self.resume()
        # A rank that was declared dead while it was stopped is killed when it resumes.
        declared_dead = len(re.findall(rf"{self.name} \(rank \d+ on \S+\) is silent and counts as dead", output))
        self.deaths += declared_dead - self.declared_dead_before
        self.declared_dead_before = declared_dead

    def resume(self):
        self.resumes_at = None
        send(self.child, signal.SIGCONT)

    def disturb(self, moment, done):
        """Kills it, or stops it for a while."""
        time.sleep(self.SECONDS_TO_CONNECT)  # no output shows when all ranks have connected
        self.child = jobs.child_of(self.agent)
        if self.child is None:
            return
        if self.role == "worker" and moment.random() < 0.25:
            self.resumes_at = time.monotonic() + moment.uniform(0.1, 2.5 * HEARTBEAT_SECONDS)
            send(self.child, signal.SIGSTOP)
            done.append(f"{self.name} stopped")
        else:
            send(self.child, signal.SIGKILL)
            self.deaths += 1
            done.append(f"{self.name} killed")


class Coordinator(Victim):
    """The coordinator. After a restart, its program prints again that it begins."""

    SECONDS_TO_CONNECT = 1.0  # to all ranks, and all ranks to it

    def __init__(self, agent, begins):
        super().__init__("coordinator", 0, 0, agent)
        self.begins = begins

    def returns(self, output):
        return len(re.findall(self.begins, output)) - 1


class Loss:
    """Kills a rank permanently at the time `at`, with its agent if `with_agent`."""

    def __init__(self, at, rank, with_agent=True, unless=None, victim=None, successor=None):
        """Does nothing once standard error matches `unless`. `victim` is the ps of that rank; the rank `successor`, which has its own
        agent, replaces it."""
        self.at, self.rank, self.with_agent, self.unless = at, rank, with_agent, unless
        self.victim, self.successor = victim, successor
        self.agent = self.successors_agent = None
        self.happened = False

    def find(self, job):
        """Requires that all children run: without its child, an agent cannot be told from the shell that started it."""
        self.agent = jobs.agent_of(job, self.rank)
        self.successors_agent = jobs.agent_of(job, self.successor) if self.successor else None

    def happen(self, job, done):
        if self.rank not in job.ranks() or self.unless and re.search(self.unless, job.stderr):
            return
        pid = self.agent if self.with_agent else jobs.child_of(self.agent)
        if pid is None:
            return
        send(pid, signal.SIGKILL)
        self.happened = True
        done.append(f"rank {self.rank} killed permanently" + (" with its agent" if self.with_agent else ""))
        if self.victim:
            self.victim.deaths = self.victim.returns(job.stderr) + 1
            self.victim.agent = self.successors_agent


class Guests:
    """Workers that join late, and leave or are killed."""

    MOST = 8

    def __init__(self, capstan, run_dir, hosts, moment, done):
        self.command, self.hosts, self.moment, self.done = [capstan, "join", run_dir], hosts, moment, done
        self.running, self.left = [], []  # (job, start time)
        self.killed = set()

    def join(self):
        far = self.hosts and self.moment.random() < 0.5
        command = self.hosts.on_second(*self.command) if far else self.hosts.on_first(*self.command) if self.hosts else self.command
        self.running.append((jobs.RankedJob(command, env=self.hosts.environment if self.hosts else None), time.monotonic()))
        self.done.append("a worker joins")

    def leave(self):
        """Terminates or kills a worker, except one that has just joined and still makes its first connections."""
        known = [guest for guest in self.running if time.monotonic() > guest[1] + 1 and guest[0].command.poll() is None]
        if not known:
            return
        guest = self.moment.choice(known)
        self.running.remove(guest)
        self.left.append(guest)
        if self.moment.random() < 0.3:
            self.killed.add(guest)
            self.done.append("a late worker killed")
        else:
            self.done.append("a late worker leaves")
        send(guest[0].command.pid, signal.SIGKILL if guest in self.killed else signal.SIGTERM)

    def disturb(self):
        if len(self.running) + len(self.left) < self.MOST and self.moment.random() < 0.6:
            self.join()
        else:
            self.leave()

    def end(self, at):
        """Checks the workers after the end of the job, at the time `at`."""
        for guest in self.running + self.left:
            code = guest[0].wait(jobs.SECONDS_TO_END + 10)
            # A worker may fail if it was declared dead, or if it came too late to find the job; no agent restarts it.
            expected = guest in self.killed or code == 0 or at < guest[1] + 3 or "counts as dead" in guest[0].stderr
            if not expected or not guest[0].wait_until_gone(jobs.SECONDS_TO_END):
                raise Wrong(f"a late worker's exit code is {code}; its standard error:\n{guest[0].stderr}")

    def close(self):
        for guest, _ in self.running + self.left:
            guest.__exit__()


class Cable:
    """The cable between two hosts, with one kind of fault at a time."""

    def __init__(self, hosts, moment, done):
        self.hosts, self.moment, self.done = hosts, moment, done
        self.well_at = None

    def disturb(self):
        if self.well_at is not None:
            return
        words = self.moment.choice([("cut",), ("loss", 0.02), ("delay", 50)])
        # Some cuts are shorter and some are longer than the heartbeat timeout of a worker.
        self.well_at = time.monotonic() + self.moment.uniform(0.1, 3 * HEARTBEAT_SECONDS)
        self.hosts.tell_cable(*words)
        self.done.append(f"cable: {words[0]}")

    def mend(self, at_once=False):
        if self.well_at is None or not (at_once or time.monotonic() >= self.well_at):
            return
        for words in (("loss", 0), ("delay", 0), ("mend",)):
            self.hosts.tell_cable(*words)
        self.well_at = None


def may_be_disturbed(victim, victims, output):
    """A restarted coordinator must reach all ranks, so it is killed only while all run, and they are left alone while it is
    down."""
    if not victim.is_running(output):
        return False
    coordinators = [other for other in victims if isinstance(other, Coordinator)]
    needed = victims if victim in coordinators else coordinators
    return all(other.is_running(output) for other in needed)


def disturb(job, victims, moment, done, guests=None, cable=None, losses=()):
    """Injects faults until the job has ended."""
    pauses = moment.choice([(0.05, 0.3), (0.3, 1.5)])
    began = time.monotonic()
    losses = list(losses)
    while job.command.poll() is None:
        if time.monotonic() > began + SECONDS_TO_FINISH:
            raise Wrong(f"the job did not end within {SECONDS_TO_FINISH} s")
        wait_random(moment, *pauses)
        output = job.stderr
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
            victim.update(output)
        coordinators = [victim for victim in victims if isinstance(victim, Coordinator)]
        victim = moment.choice(victims + 2 * coordinators)  # preferred, since they can rarely be disturbed
        if may_be_disturbed(victim, victims, output):
            victim.disturb(moment, done)
