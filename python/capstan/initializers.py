"""Initializers, with which each ps fills its own shards of a variable, whatever their number.
"""

from ._capstan import initializers as _native

zeros = _native.zeros
ones = _native.ones
constant = _native.constant
uniform = _native.uniform
normal = _native.normal
truncated_normal = _native.truncated_normal
orthogonal = _native.orthogonal
identity = _native.identity

__all__ = ["zeros", "ones", "constant", "uniform", "normal", "truncated_normal", "orthogonal", "identity"]
