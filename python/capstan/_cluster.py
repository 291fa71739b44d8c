"""Cluster: how a script joins its job."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from . import _capstan

_AGENT_LINK = "CAPSTAN_AGENT_LINK"

_current: Cluster | None = None


class Cluster:
    """One rank's membership in a job. Made by :meth:`join`.

    Attributes
    ----------
    role : str
        ``"coordinator"``, ``"ps"``, ``"worker"``, ``"evaluator"`` or ``"spare"``.
    index : int
        Number among the ranks of the same role, from 0.
    rank, size : int
        Number of this rank, and number of ranks.
    embedded : bool
        Whether all roles run in this process.
    recovered : bool
        Whether this coordinator replaces one that was killed (``coordinator_wait``).
    """

    def __init__(self, implementation: _capstan.Cluster) -> None:
        self._implementation = implementation

    @classmethod
    def join(cls, **settings: Any) -> Cluster:
        """Join the job that started this script: by mpirun, srun, ``capstan run`` or TF_CONFIG, or alone.

        A rank of a job is supervised by an agent, so the process first becomes ``capstan-agent``, which runs
        the script again from its beginning. The script's statements before this call run twice: import
        modules and define functions there, and nothing else. A second call returns the same cluster.

        Parameters
        ----------
        **settings
            Settings of ``docs/settings.md``, with underscores for hyphens: ``ps=2``. Durations are a
            ``datetime.timedelta`` or seconds. Arguments ``--capstan-NAME=VALUE`` of the script, ``CAPSTAN_*``
            variables and the file of ``CAPSTAN_CONFIG`` take precedence. The arguments are removed from
            ``sys.argv``.

        Raises
        ------
        InvalidArgumentError
            The job has two ranks, or roles that do not fit.
        DeadlineExceededError
            Ranks that are missing, by name.
        FailedPreconditionError
            MPI was initialized before this call, for example by mpi4py.
        """
        global _current
        if _current is not None:
            return _current
        command = [sys.executable, *sys.orig_argv[1:]]
        if _capstan.needs_agent(settings, command):
            sys.stdout.flush()
            sys.stderr.flush()
            _capstan.exec_under_agent(settings, command)
        implementation, sys.argv[:] = _capstan.join(settings, sys.argv)
        os.environ.pop(_AGENT_LINK, None)
        _current = cls(implementation)
        return _current

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._implementation, name)

    def count(self, role: str) -> int:
        """Return the number of ranks of a role at the start of the job."""
        return self._implementation.count(role)

    def recorded_step(self) -> int | None:
        """Return the last step given to ``ClusterCoordinator.record_step``, or None."""
        return self._implementation.recorded_step()

    def __repr__(self) -> str:
        return f"<capstan.Cluster: {self.name} of {self.size}>"


class Server:
    """Runs the role of a rank that is not the coordinator.

    Examples
    --------
    >>> cluster = capstan.Cluster.join()
    >>> if cluster.role != "coordinator":
    ...     sys.exit(capstan.Server(cluster).join())
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def join(self) -> int:
        """Serve shards or run functions until the job ends. Return the exit code for ``sys.exit``."""
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's handler would run only after this call
        return _capstan.serve(self._cluster._implementation)
