"""settings.py -- ReFrame's description of this machine: one host, and two hosts that namespaces emulate.

A center uses its own settings instead: every check runs on any system, with the launcher of the partition.
"""
import pathlib
import sys

from reframe.core.backends import register_launcher
from reframe.core.launchers import JobLauncher

HERE = pathlib.Path(__file__).resolve().parent
# ReFrame removes its entry of sys.path by position, so entries are appended.
sys.path += [str(HERE.parent / "hosts"), str(HERE.parent / "support")]
import two_hosts


@register_launcher("two-hosts")
class TwoHostsLauncher(JobLauncher):
    def command(self, job):
        return [sys.executable, "-B", str(HERE / "on_two_hosts.py"), str(job.num_tasks)]


def partition(name, launcher):
    return {"name": name, "scheduler": "local", "launcher": launcher, "environs": ["default"], "max_jobs": 1}


REASON = two_hosts.reason_to_skip("mpirun")
if REASON:
    print(f"no partition two-hosts: {REASON}", file=sys.stderr)

site_configuration = {
    "systems": [
        {
            "name": "capstan",
            "descr": "the machine of the tests",
            "hostnames": [".*"],
            "partitions": [partition("one-host", "mpirun"), *([] if REASON else [partition("two-hosts", "two-hosts")])],
        }
    ],
    "environments": [{"name": "default"}],
}
