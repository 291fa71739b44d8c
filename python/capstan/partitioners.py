"""Partitioners, which decide into how many shards a variable is divided, with the formulas of TensorFlow.
"""

from ._capstan import partitioners as _native

FixedShardsPartitioner = _native.FixedShardsPartitioner
MinSizePartitioner = _native.MinSizePartitioner
MaxSizePartitioner = _native.MaxSizePartitioner

__all__ = ["FixedShardsPartitioner", "MinSizePartitioner", "MaxSizePartitioner"]
