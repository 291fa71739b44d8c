"""The scopes of this process: the strategies in which variables are created."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._strategy import ParameterServerStrategy

open_scopes: list[ParameterServerStrategy] = []  # innermost last


def current_strategy() -> ParameterServerStrategy | None:
    """Return the strategy whose scope is open, or None."""
    return open_scopes[-1] if open_scopes else None
