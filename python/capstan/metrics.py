"""Metrics, with the names of Keras: state on a ps, updated by functions on workers, and readable anywhere.

A metric is made on the coordinator, in the scope of a strategy, and passed to functions as an argument. Its
state is a variable with the metric's name, which is saved in checkpoints. An update counts once, even if its
function runs again after its worker died.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._capstan import metrics as _native

__all__ = ["AUC", "Accuracy", "Mean", "MeanSquaredError", "Metric", "Sum"]


def _numbers(values: ArrayLike) -> np.ndarray[Any, Any]:
    return np.ascontiguousarray(values, np.float64).reshape(np.shape(values))


def _weights(sample_weight: ArrayLike | None) -> np.ndarray[Any, Any]:
    return _numbers(1.0 if sample_weight is None else sample_weight)


class Metric:
    """Base of all metrics."""

    _native: Any

    @property
    def name(self) -> str:
        """Name of the metric, and of its variable."""
        return self._native.name

    def result(self) -> float:
        """Return the value of all updates. After `ClusterCoordinator.join`, it covers those of all functions."""
        return self._native.result()

    def reset_state(self) -> None:
        """Restore the initial state. Call it after `ClusterCoordinator.join`."""
        self._native.reset_state()

    def __getstate__(self) -> Any:
        return self._native

    def __setstate__(self, native: Any) -> None:
        self._native = native


class _OfValues(Metric):
    def update_state(self, values: ArrayLike, sample_weight: ArrayLike | None = None) -> None:
        """Add values.

        Parameters
        ----------
        values : array_like
        sample_weight : array_like, optional
            One number, or an array of the shape of `values` or of their leading axes. Default: 1.
        """
        self._native.update_state(_numbers(values), _weights(sample_weight))


class _OfPredictions(Metric):
    def update_state(self, y_true: ArrayLike, y_pred: ArrayLike, sample_weight: ArrayLike | None = None) -> None:
        """Add predictions.

        Parameters
        ----------
        y_true, y_pred : array_like
            Labels and predictions, of equal shapes; one may lack a last axis of size 1.
        sample_weight : array_like, optional
            One number, or one for each sample. Default: 1.
        """
        self._native.update_state(_numbers(y_true), _numbers(y_pred), _weights(sample_weight))


class Sum(_OfValues):
    """The weighted sum of all values."""

    def __init__(self, name: str = "sum") -> None:
        self._native = _native.Sum(name)


class Mean(_OfValues):
    """The weighted mean of all values; 0 without values."""

    def __init__(self, name: str = "mean") -> None:
        self._native = _native.Mean(name)


class Accuracy(_OfPredictions):
    """The weighted fraction of predictions equal to their labels."""

    def __init__(self, name: str = "accuracy") -> None:
        self._native = _native.Accuracy(name)


class MeanSquaredError(_OfPredictions):
    """The weighted mean of ``(y_true - y_pred) ** 2``."""

    def __init__(self, name: str = "mean_squared_error") -> None:
        self._native = _native.MeanSquaredError(name)


class AUC(_OfPredictions):
    """The area under a curve, approximated at fixed thresholds. Predictions are in [0, 1].

    Parameters
    ----------
    num_thresholds : int
        At least 2; evenly spaced.
    curve : {"ROC", "PR"}
    summation_method : {"interpolation", "minoring", "majoring"}
    name : str
    thresholds : sequence of float, optional
        Numbers in [0, 1], in place of `num_thresholds`.
    """

    def __init__(
        self,
        num_thresholds: int = 200,
        curve: str = "ROC",
        summation_method: str = "interpolation",
        name: str = "auc",
        *,
        thresholds: Sequence[float] | None = None,
    ) -> None:
        if curve not in ("ROC", "PR"):
            raise ValueError(f"curve: found {curve!r}, expected 'ROC' or 'PR'")
        if summation_method not in ("interpolation", "minoring", "majoring"):
            raise ValueError(
                f"summation_method: found {summation_method!r}, expected 'interpolation', 'minoring' or 'majoring'"
            )
        self._native = _native.AUC(name, num_thresholds, curve, summation_method, list(thresholds or []))

    @property
    def thresholds(self) -> list[float]:
        """All thresholds, in ascending order."""
        return self._native.thresholds

    def confusion_counts(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return the weighted counts of true and false positives and negatives at each threshold."""
        names = ("true_positives", "false_positives", "true_negatives", "false_negatives")
        return dict(zip(names, map(np.asarray, self._native.confusion_counts())))
