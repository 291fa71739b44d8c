"""Optimizers, which a ps applies to pushes, with the names and parameters of Keras.

Each function returns an `Optimizer`. A learning rate is a number, or one of `schedules`, whose steps are the
number of pushes that a shard has applied.
"""

from ._capstan import optimizers as _native

SGD = _native.SGD
Momentum = _native.Momentum
Adagrad = _native.Adagrad
RMSprop = _native.RMSprop
Adam = _native.Adam
AdamW = _native.AdamW
Ftrl = _native.Ftrl
schedules = _native.schedules

__all__ = ["SGD", "Momentum", "Adagrad", "RMSprop", "Adam", "AdamW", "Ftrl", "schedules"]
