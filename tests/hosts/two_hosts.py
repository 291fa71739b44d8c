#!/usr/bin/env python3
"""Two hosts on one machine: each has its own network, UTS (host name), IPC and mount namespace. A veth pair connects
them, or `cable.py`, which can lose and delay frames, and be cut.

`with TwoHosts(directory) as hosts:` creates the hosts; `hosts.launcher(mpiexec, slots)` is the command that runs mpirun
on the first one. A host, with its end of the cable, exists as long as its processes do. The end of the block kills all
processes of the hosts. If a test is killed, the processes that hold the namespaces die with it, and `two_hosts.py clean
DIRECTORY` kills all others.

Needs root, and a kernel that lets root create namespaces; `reason_to_skip()` returns the missing requirement.
"""
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from die_with_parent import die_with_parent
from poll import poll_until

NAMES = ("host1", "host2")
NETWORK = "10.99.7"  # inside the namespaces only, so that it collides with nothing
MARK = "CAPSTAN_TESTS_HOSTS"
NAMESPACES = ("-n", "-u", "-i", "-m")


def reason_to_skip(mpiexec):
    """Returns the missing requirement, or None if hosts can be created here and `mpiexec` can start ranks on them."""
    version = subprocess.run([mpiexec, "--version"], capture_output=True, text=True).stdout
    if "Open MPI" not in version and "OpenRTE" not in version:
        return "starting ranks on two hosts needs Open MPI"
    if os.geteuid() != 0:
        return "creating namespaces needs root"
    for tool in ("ip", "unshare", "nsenter"):
        if shutil.which(tool) is None:
            return f"two hosts need the program {tool}"
    made = subprocess.run(["unshare", *NAMESPACES, "ip", "link", "add", "cable", "type", "veth"], capture_output=True)
    if made.returncode != 0:
        return f"cannot create namespaces: {made.stderr.decode().strip()}"
    return None


def marked_processes(mark):
    """Returns the pids of the processes, except this one, whose environment has CAPSTAN_TESTS_HOSTS=`mark`."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for directory in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (directory / "environ").read_bytes().split(b"\0") and int(directory.name) != os.getpid():
                found.append(int(directory.name))
        except OSError:
            continue
    return found


def kill_marked(mark):
    for _ in range(100):
        left = marked_processes(mark)
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        if not left:
            return
        time.sleep(0.05)  # until the kernel has ended them


class TwoHosts:
    def __init__(self, directory, cable=False):
        """With `cable`, `tell_cable` accepts `delay`, `loss`, `cut` and `mend`; the network is slower then."""
        # Concurrent runs have different pids, so their directories, marks and cables differ.
        self.directory = pathlib.Path(directory, f"hosts-{os.getpid()}").resolve()
        self.mark = str(self.directory)
        self.holders = []
        self.cable = None
        self.has_cable = cable

    def __enter__(self):
        self.directory.mkdir(parents=True)
        try:
            self.make()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_):
        self.remove()

    def make(self):
        for name in NAMES:
            # Private /dev/shm and IPC namespace: different hosts must not share memory.
            ready = self.directory / f"{name}.ready"
            steps = f"hostname {name} && mount -t tmpfs tmpfs /dev/shm && ip link set lo up && touch {ready}"
            command = ["unshare", *NAMESPACES, "sh", "-c", f"{steps} && exec sleep 3600"]
            environment = {**os.environ, MARK: self.mark}
            holder = subprocess.Popen(command, env=environment, preexec_fn=die_with_parent, start_new_session=True)
            self.holders.append(holder)
            poll_until(lambda: ready.exists() or holder.poll() is not None, 10)
            if not ready.exists():
                raise RuntimeError(f"{name} did not start")
        ends = [f"cap{os.getpid()}{end}" for end in "ab"]
        self.connect(ends)
        for number, (end, holder) in enumerate(zip(ends, self.holders), start=1):
            self.ip("link", "set", end, "netns", holder.pid, "name", "eth0")
            within = ["nsenter", "-t", holder.pid, "-n"]
            self.ip("addr", "add", f"{NETWORK}.{number}/24", "dev", "eth0", within=within)
            self.ip("link", "set", "eth0", "up", within=within)
            if self.cable:
                # If the kernel supports it, TCP retransmits at least every second during a cut.
                soon = "test ! -e $0/tcp_rto_max_ms || (echo 1000 > $0/tcp_rto_max_ms && echo 250 > $0/tcp_retries2)"
                command = [*within, "sh", "-c", soon, "/proc/sys/net/ipv4"]
                subprocess.run([str(word) for word in command], check=True)
        agent = self.directory / "agent.sh"
        cases = "".join(f"  {name}) pid={holder.pid} ;;\n" for name, holder in zip(NAMES, self.holders))
        agent.write_text(
            f'#!/bin/sh\nhost=$1; shift\ncase $host in\n{cases}  *) echo "no host $host" >&2; exit 1 ;;\nesac\n'
            f'exec nsenter -t $pid {" ".join(NAMESPACES)} -- sh -c "$*"\n'
        )
        agent.chmod(0o755)

    def connect(self, ends):
        if not self.has_cable:
            return self.ip("link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
        command = [sys.executable, "-B", pathlib.Path(__file__).resolve().parent / "cable.py", *ends]
        self.cable = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      text=True, preexec_fn=die_with_parent)
        if self.cable.stdout.readline() != "ready\n":
            raise RuntimeError("the cable is not ready")

    def tell_cable(self, *words):
        """Sends a command; returns the numbers of frames that the cable has carried and lost."""
        self.cable.stdin.write(" ".join(map(str, words)) + "\n")
        self.cable.stdin.flush()
        return self.cable.stdout.readline().strip()

    @staticmethod
    def ip(*words, within=()):
        subprocess.run([str(word) for word in (*within, "ip", *words)], check=True)

    def remove(self):
        kill_marked(self.mark)
        for holder in self.holders:
            holder.wait()
        if self.cable:
            self.cable.stdin.close()
            self.cable.stdout.close()
            self.cable.wait()
        # The link disappears with its namespace, unless its creation was interrupted.
        subprocess.run(["ip", "link", "del", f"cap{os.getpid()}a"], capture_output=True)
        shutil.rmtree(self.directory, ignore_errors=True)

    def launcher(self, mpiexec, slots):
        """Returns the command that runs mpirun on the first host, with `slots` slots on each host."""
        subnet = f"{NETWORK}.0/24"
        return [
            "nsenter", "-t", self.holders[0].pid, *NAMESPACES, "--", mpiexec,
            "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", self.directory / "agent.sh",
            "--mca", "oob_tcp_if_include", subnet, "--mca", "btl_tcp_if_include", subnet,
            "-H", ",".join(f"{name}:{slots}" for name in NAMES),
        ]  # fmt: skip

    def on_first(self, *command):
        """Returns the command that runs `command` on the first host."""
        return ["nsenter", "-t", self.holders[0].pid, *NAMESPACES, "--", *command]

    def on_second(self, *command):
        """Returns the command that runs `command` on the second host."""
        return ["nsenter", "-t", self.holders[1].pid, *NAMESPACES, "--", *command]

    @property
    def environment(self):
        return {MARK: self.mark}


def clean(directory):
    """Kills the processes, and removes the directories, that killed tests have left in `directory`."""
    for left in pathlib.Path(directory).resolve().glob("hosts-*"):
        owner = int(left.name.partition("-")[2])
        if pathlib.Path(f"/proc/{owner}").exists():
            continue
        print(f"left behind by {owner}: {shlex.quote(str(left))}", file=sys.stderr)
        kill_marked(str(left))
        subprocess.run(["ip", "link", "del", f"cap{owner}a"], capture_output=True)
        shutil.rmtree(left, ignore_errors=True)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] != "clean":
        sys.exit("usage: two_hosts.py clean DIRECTORY")
    clean(sys.argv[2])
