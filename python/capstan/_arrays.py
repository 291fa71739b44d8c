"""Conversions between numpy arrays, arrays of other libraries, and arrays that the extension module takes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import _capstan, errors

try:
    from ml_dtypes import bfloat16 as _bfloat16
except ImportError:
    _bfloat16 = None

Array = np.ndarray[Any, Any]

# Numbers of DType in capstan/dtype.hpp.
_NUMBERS = {"float32": 1, "float64": 2, "int64": 3, "int32": 4, "float16": 5, "bfloat16": 6, "bool": 7}
#: dtypes by number.
DTYPES = {_NUMBERS[name]: np.dtype(name) for name in _NUMBERS if name != "bfloat16"}
_BFLOAT16 = None if _bfloat16 is None else np.dtype(_bfloat16)
if _BFLOAT16 is not None:
    DTYPES[_NUMBERS["bfloat16"]] = _BFLOAT16

# Devices of DLPack whose memory the host can read: CPU, and pinned memory of CUDA.
_HOST_DEVICES = (1, 3)


def number_of(dtype: Any) -> int:
    """Return the number of a dtype."""
    name = "bfloat16" if dtype == "bfloat16" else np.dtype(dtype).name
    if name not in _NUMBERS:
        raise errors.InvalidArgumentError(f"found dtype {name}, expected one of {', '.join(_NUMBERS)}")
    if name == "bfloat16" and _bfloat16 is None:
        raise errors.UnimplementedError("bfloat16 needs the package ml_dtypes; install it with pip")
    return _NUMBERS[name]


def communication_number(dtype: Any) -> int | None:
    """Return the number of a dtype of messages, or None. No array has it, so bfloat16 needs no package."""
    if dtype is None:
        return None
    return _NUMBERS["bfloat16"] if str(dtype) == "bfloat16" else number_of(dtype)


# Below this, numpy reuses its own memory.
_SMALLEST_BUFFER = 64 << 10


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return an array for a read. A large one gets the memory of an earlier one: new pages take longer than the read."""
    size = math.prod(shape) * dtype.itemsize
    if size < _SMALLEST_BUFFER:
        return np.empty(shape, dtype)
    return _capstan.buffer(size).view(dtype).reshape(shape)


def raw(array: Array) -> Array:
    """Return `array` for the extension module, which does not know bfloat16 and gets uint16 instead."""
    return array.view(np.uint16) if _BFLOAT16 is not None and array.dtype == _BFLOAT16 else array


def contiguous(array: Array) -> Array:
    """Return a row-major array with these values; faster than np.require."""
    return array if array.flags.c_contiguous else array.copy(order="C")


def host_array(value: Any, dtype: Any = None) -> Array:
    """Return an array of numpy, torch, JAX, or any library with DLPack as a numpy array.

    Copies only to convert.

    Raises
    ------
    InvalidArgumentError
        An array in the memory of a GPU.
    """
    if isinstance(value, np.ndarray) or not hasattr(value, "__dlpack__"):
        return np.asarray(value, dtype)
    if hasattr(value, "__array__"):
        try:
            return np.asarray(value, dtype)
        except TypeError as error:  # a GPU's array, or bfloat16 of torch
            reason: Exception | None = error
    else:
        reason = None
    return np.asarray(_from_dlpack(value, reason), dtype)


def writable(out: Any) -> Array:
    """Return an array that shares the memory of `out`, which may be a tensor of another library."""
    return out if isinstance(out, np.ndarray) else _from_dlpack(out, None)


def _from_dlpack(value: Any, reason: Exception | None) -> Array:
    device = value.__dlpack_device__()[0]
    if device not in _HOST_DEVICES:
        raise errors.InvalidArgumentError(
            f"found a {type(value).__name__} on a device, expected host memory; copy it with .cpu() or .get()"
        ) from reason
    array, is_bfloat16 = _capstan.from_dlpack(value)
    return array.view(DTYPES[number_of("bfloat16")]) if is_bfloat16 else array


def id_array(ids: Any) -> Array:
    """Return row numbers as a contiguous array of int64."""
    array = host_array(ids)
    if array.dtype != np.int64:
        if array.size and array.dtype.kind not in "iu":
            raise errors.InvalidArgumentError(f"ids: found dtype {array.dtype}, expected integers")
        array = array.astype(np.int64)
    return contiguous(array)


def initial_array(value: Any, dtype: Any) -> Array:
    """Return the values of a new variable. Python's floats are float32 and its integers int32, as in TensorFlow."""
    if callable(value) and not hasattr(value, "__array__"):
        value = value()
    if dtype == "bfloat16":
        dtype = DTYPES[number_of(dtype)]
    array = host_array(value, dtype)
    if dtype is None and not (hasattr(value, "dtype") or hasattr(value, "__dlpack__")):
        array = array.astype({"f": np.float32, "i": np.int32}.get(array.dtype.kind, array.dtype))
    return array
