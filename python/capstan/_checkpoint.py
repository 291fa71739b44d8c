"""Checkpoints of all variables of a strategy, in HDF5."""

from __future__ import annotations

import datetime
import json
import os
import pathlib
from typing import Any, Union

import numpy as np

from . import _capstan, errors
from ._strategy import ParameterServerStrategy

Path = Union[str, "os.PathLike[str]"]


def _json(state: Any) -> str:
    def plain(value: Any) -> Any:
        if isinstance(value, (np.generic, np.ndarray)):
            return value.tolist()
        raise errors.InvalidArgumentError(f"state: found a {type(value).__name__}, expected a value that JSON can represent")

    return json.dumps(state, default=plain)


class _Restored:
    _implementation: Any

    @property
    def user_state(self) -> Any:
        """The value given to the save of the last restored checkpoint; None if there was none."""
        return json.loads(self._implementation.user_state)

    @property
    def restored_from(self) -> pathlib.Path:
        """Path of the last restored checkpoint."""
        return self._implementation.restored_from

    def unmatched(self) -> list[str]:
        """Return the contents of the checkpoint that the program has not created so far."""
        return self._implementation.unmatched()

    def assert_consumed(self) -> None:
        """Raise `FailedPreconditionError` unless the checkpoint and the program have the same variables."""
        self._implementation.assert_consumed()


class CheckpointManager(_Restored):
    """Checkpoints of one strategy in one directory.

    Parameters
    ----------
    strategy : ParameterServerStrategy
    directory : path
    max_to_keep : int
        Older checkpoints are deleted; 0 keeps all.
    keep_every_n_hours : float
        Keeps a checkpoint permanently if it was saved this many hours after the last permanent one; 0: none.
    every_steps, every_seconds
        Intervals after which `due` returns True; 0 disables a criterion.
    """

    def __init__(
        self,
        strategy: ParameterServerStrategy,
        directory: Path,
        max_to_keep: int = 5,
        *,
        keep_every_n_hours: float = 0.0,
        every_steps: int = 0,
        every_seconds: float = 0.0,
    ) -> None:
        if not isinstance(strategy, ParameterServerStrategy):
            raise errors.InvalidArgumentError(
                f"CheckpointManager: found a {type(strategy).__name__}, expected the strategy; all its variables are saved"
            )
        self._implementation = _capstan.CheckpointManager(
            strategy._implementation,
            directory,
            max_to_keep,
            keep_every_n_hours,
            every_steps,
            datetime.timedelta(seconds=every_seconds),
        )
        strategy._before_close.append(self.close)

    def close(self) -> None:
        """Wait for a save in the background. The manager cannot be used afterwards."""
        self._implementation = None

    def save(
        self,
        step: int,
        state: Any = None,
        *,
        consistency: str = "shard",
        incremental: bool = False,
        background: bool = False,
    ) -> pathlib.Path:
        """Save all variables. Return the directory of the checkpoint.

        Parameters
        ----------
        step : int
        state : optional
            A value of the program that JSON can represent; numpy's numbers and arrays become numbers and lists.
        consistency : {"shard", "global"}
            shard: each shard at its own time. global: all shards at once; waits for running functions.
        incremental : bool
            Save only rows that changed since the last full save.
        background : bool
            Return when every ps has a snapshot; its files are written meanwhile.
        """
        if consistency not in ("shard", "global"):
            raise ValueError(f"consistency: found {consistency!r}, expected 'shard' or 'global'")
        return self._implementation.save(step, _json(state), consistency == "global", incremental, background)

    def due(self, step: int) -> bool:
        """Return whether a checkpoint is due, by the interval or a signal."""
        return self._implementation.due(step)

    def wait(self) -> None:
        """Wait for a save in the background. Raise its error."""
        self._implementation.wait()

    def restore_latest(
        self, *, names: dict[str, str] | None = None, allow_missing: bool = False, allow_extra: bool = True
    ) -> int | None:
        """Restore all variables from the newest undamaged checkpoint. Return its step, or None without one.

        Parameters
        ----------
        names : dict, optional
            Maps names of the program's variables to their names in the checkpoint, where these differ.
        allow_missing, allow_extra : bool
            Whether the checkpoint may lack variables of the program, or have additional ones.

        Raises
        ------
        FailedPreconditionError
            Variables that do not match, by name. Nothing is changed.
        DataLossError
            All checkpoints are damaged.
        """
        return self._implementation.restore_latest(names or {}, allow_missing, allow_extra)

    def checkpoints(self) -> list[pathlib.Path]:
        """Return the paths of the checkpoints, oldest first."""
        return self._implementation.checkpoints()

    def latest(self) -> int | None:
        """Return the step of the newest checkpoint, or None."""
        return self._implementation.latest()


class Checkpoint(_Restored):
    """One checkpoint in a directory that the program names."""

    def __init__(self, strategy: ParameterServerStrategy) -> None:
        self._implementation = _capstan.Checkpoint(strategy._implementation)
        strategy._before_close.append(self.close)

    def close(self) -> None:
        """Release the strategy. The object cannot be used afterwards."""
        self._implementation = None

    def write(self, directory: Path, state: Any = None) -> None:
        """Save all variables into `directory`."""
        self._implementation.write(directory, _json(state))

    def read(
        self,
        directory: Path,
        *,
        names: dict[str, str] | None = None,
        allow_missing: bool = False,
        allow_extra: bool = True,
    ) -> int:
        """Restore one checkpoint, as `CheckpointManager.restore_latest`. Return its step."""
        return self._implementation.read(directory, names or {}, allow_missing, allow_extra)
