#!/usr/bin/env python3
"""A two-node Slurm on one machine: a private slurmctld and two slurmd, with their own ports and directory.

`with TwoNodeSlurm(BIN, SCRATCH) as slurm:` starts it in five seconds; `slurm.environment` contains the variables that
sbatch, srun and scancel need. A node has its own UTS (host name), IPC and mount namespace, and reports CORES cores,
regardless of the machine. Its /tmp and /dev/shm are private; the source tree and the given directories stay visible in
/tmp. The end of the block kills all processes of the nodes. If a test is killed, the daemons die with it, and
`two_node_slurm.py clean` kills all other processes.

Needs root, to create namespaces, and Slurm (Debian: slurmctld slurmd slurm-client slurm-wlm-basic-plugins);
`reason_to_skip()` returns the missing requirement. The daemons use no authentication (AuthType=auth/none) instead
of munge, and their ports accept connections to every address of this machine.
"""
import contextlib
import glob
import os
import pathlib
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from addresses import free_ports
from die_with_parent import die_with_parent
from poll import poll_until
from two_hosts import MARK, kill_marked

ROOT = pathlib.Path(__file__).resolve().parents[2]
NODES = ("n1", "n2")
CORES = 4  # cores that each node reports
# Short, because the length of a socket's path is limited; not in /tmp, which is private to each node.
PARENT = pathlib.Path("/var/tmp")
PREFIX = "capstan-slurm-"
NAMESPACES = ("-m", "-u", "-i")
SECONDS_TO_START = 30

CONFIGURATION = """\
ClusterName=capstan
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
# A requeued job also waits this long before it starts.
AuthInfo=cred_expire=5
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool.%n
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd.%n.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=20
KillWait=5
MinJobAge=300
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=0,sched_min_interval=0
DebugFlags=NO_CONF_HASH
NodeName=n1 NodeHostname=n1 NodeAddr=127.0.0.1 Port={ports[1]} CPUs={cores} RealMemory=1000 State=UNKNOWN
NodeName=n2 NodeHostname=n2 NodeAddr=127.0.0.1 Port={ports[2]} CPUs={cores} RealMemory=1000 State=UNKNOWN
PartitionName=debug Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
"""


def reason_to_skip():
    """Returns the missing requirement, or None if such a Slurm can run here."""
    if os.geteuid() != 0:
        return "a two-node Slurm needs root, to create namespaces"
    for tool in ("slurmctld", "slurmd", "sbatch", "srun", "unshare", "nsenter"):
        if shutil.which(tool) is None:
            return f"Slurm's tests need the program {tool}; launch/setup --tests installs Slurm on Debian"
    if not glob.glob("/usr/lib/*/slurm*/mpi_pmix.so") and not glob.glob("/usr/lib*/slurm*/mpi_pmix.so"):
        return "this Slurm has no PMIx plugin (mpi_pmix.so)"
    made = subprocess.run(["unshare", *NAMESPACES, "mount", "-t", "tmpfs", "tmpfs", "/tmp"], capture_output=True)
    if made.returncode != 0:
        return f"cannot create namespaces: {made.stderr.decode().strip()}"
    return None


def namespace_of(pid):
    """Returns the UTS namespace of a process, which identifies its node; None if the process has ended."""
    try:
        return os.readlink(f"/proc/{pid}/ns/uts")
    except OSError:
        return None


def processes_in(namespace):
    found = [int(directory.name) for directory in pathlib.Path("/proc").glob("[0-9]*")]
    return [pid for pid in found if namespace and namespace_of(pid) == namespace]


def topmost_in_tmp(paths):
    """Returns the paths below /tmp that are not inside another of the paths."""
    inside = {path for path in (pathlib.Path(one).resolve() for one in paths) if path.is_relative_to("/tmp")}
    return sorted(path for path in inside if not inside.intersection(path.parents))


class TwoNodeSlurm:
    def __init__(self, *visible):
        """Nodes see the directories `visible` even if these are in /tmp."""
        self.visible = topmost_in_tmp([ROOT, *visible])

    def __enter__(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=PARENT))
        self.daemons, self.namespaces = {}, {}
        try:
            self.start()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_):
        self.remove()

    @property
    def environment(self):
        return {MARK: str(self.directory), "SLURM_CONF": str(self.directory / "slurm.conf")}

    def start(self):
        for name in ("state", *(f"spool.{node}" for node in NODES)):
            (self.directory / name).mkdir()
        configuration = CONFIGURATION.format(host=socket.gethostname().partition(".")[0], ports=free_ports(3),
                                             directory=self.directory, cores=CORES)
        (self.directory / "slurm.conf").write_text(configuration)
        self.start_daemon("slurmctld", ["slurmctld", "-c", "-D", "-f", self.directory / "slurm.conf"])
        for node in NODES:
            self.start_node(node)
        self.wait_for_nodes(NODES, "idle")

    def start_node(self, node):
        steps = f"hostname {node} && {self.private_tmp(node)} && mount -t tmpfs tmpfs /dev/shm"
        slurmd = f"exec slurmd -c -D -N {node} -f {self.directory}/slurm.conf"
        self.start_daemon(node, ["unshare", *NAMESPACES, "sh", "-c", f"{steps} && {slurmd}"])

    def private_tmp(self, node):
        """Returns shell commands that replace a namespace's /tmp with one that has only the visible directories."""
        before, after = [], []
        for number, path in enumerate(self.visible):
            held = self.directory / f"visible.{node}.{number}"
            held.mkdir(exist_ok=True)
            before.append(shlex.join(["mount", "--rbind", str(path), str(held)]))
            after += [shlex.join(["mkdir", "-p", str(path)]), shlex.join(["mount", "--move", str(held), str(path)])]
        return " && ".join([*before, "mount -t tmpfs tmpfs /tmp", *after])

    def start_daemon(self, name, command):
        with open(self.directory / f"{name}.out", "wb") as out:
            self.daemons[name] = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out,
                                                  stderr=out, env={**os.environ, **self.environment},
                                                  preexec_fn=die_with_parent, start_new_session=True)

    def wait_for_nodes(self, nodes, state, seconds=SECONDS_TO_START):
        states = {}

        def reached():
            shown = self.run("sinfo", "-h", "-N", "-o", "%N %T", check=False).stdout.split()
            states.update(zip(shown[::2], shown[1::2]))
            return all(states.get(node) == state for node in nodes)

        if not poll_until(reached, seconds, period=0.1):
            raise RuntimeError(f"Slurm's nodes are {states}, expected {state}; logs:\n{self.logs()}")
        self.namespaces.update({node: namespace_of(self.daemons[node].pid) for node in nodes})

    def logs(self):
        texts = [f"--- {path.name}\n" + "\n".join(path.read_text(errors="replace").splitlines()[-20:])
                 for path in sorted(self.directory.glob("*.log")) + sorted(self.directory.glob("*.out"))]
        return "\n".join(texts)

    def run(self, *command, check=True, **environment):
        """Runs a command of Slurm."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("CAPSTAN_", "SLURM_"))}
        done = subprocess.run([str(word) for word in command], env={**clean, **self.environment, **environment},
                              capture_output=True, text=True, timeout=60)
        if check and done.returncode != 0:
            raise RuntimeError(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}\n{self.logs()}")
        return done

    def on_node(self, node, *command):
        """Returns the standard output of a command on the node."""
        return subprocess.run(["nsenter", "-t", str(self.daemons[node].pid), *NAMESPACES, "--", *command],
                              capture_output=True, text=True, timeout=60).stdout

    def processes_of(self, node):
        """Returns the pids of a node's processes, except its slurmd. Finds them by their namespace, because some of
        Slurm's processes do not have the mark in their environment."""
        return [pid for pid in processes_in(self.namespaces.get(node)) if pid != self.daemons[node].pid]

    def lose(self, node):
        """Simulates a power failure of the node: its processes end without sending anything."""
        for number in (signal.SIGSTOP, signal.SIGKILL):  # stops all first, so that none reports another's death
            for pid in [self.daemons[node].pid, *self.processes_of(node)]:
                with contextlib.suppress(OSError):
                    os.kill(pid, number)
        self.daemons.pop(node).wait()

    def remove(self):
        for daemon in self.daemons.values():
            daemon.terminate()  # slurmctld waits for its child
        for daemon in self.daemons.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                daemon.wait(5)
        for namespace in self.namespaces.values():
            for pid in processes_in(namespace):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        kill_marked(str(self.directory))
        for daemon in self.daemons.values():
            daemon.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


def clean():
    """Kills the processes, and removes the directories, that killed tests have left."""
    for left in PARENT.glob(f"{PREFIX}*"):
        owner = left.name.removeprefix(PREFIX).partition("-")[0]
        if pathlib.Path(f"/proc/{owner}").exists():
            continue
        print(f"left behind by {owner}: {left}", file=sys.stderr)
        kill_marked(str(left))
        shutil.rmtree(left, ignore_errors=True)


if __name__ == "__main__":
    if sys.argv[1:] != ["clean"]:
        sys.exit("usage: two_node_slurm.py clean")
    clean()
