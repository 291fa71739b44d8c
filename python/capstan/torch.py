"""Models of torch whose tables, and whose other parameters, are on the ps.

Not imported by ``import capstan``: ``import capstan.torch`` needs torch.

Examples
--------
On the coordinator, in the scope of a strategy, and then in a function on the workers:

>>> model = capstan.torch.DistributedModel(Net(capstan.torch.RemoteEmbedding(10**9, 64, name="users")))
>>> replica = model.on_workers(coordinator)
>>> def step(model, batch):
...     model.pull()
...     loss = loss_of(model(batch.ids), batch.labels)
...     loss.backward()  # pushes the gradients of the rows
...     model.push()  # pushes the gradients of the other parameters
...     return loss.item()
>>> coordinator.schedule(step, args=(replica, batch))
"""

from __future__ import annotations

from typing import Any

import numpy as np

import torch

from . import _capstan, errors, initializers
from ._arrays import Array
from ._coordinator import ClusterCoordinator, PerWorkerValues
from ._embedding import lookup_all
from ._table import DynamicTable
from ._variable import Variable


def _to_tensor(array: Array) -> torch.Tensor:
    if array.dtype.name == "bfloat16":  # numpy's name for it is unknown to torch
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _to_array(tensor: torch.Tensor) -> Array:
    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype == torch.bfloat16:
        from ml_dtypes import bfloat16

        return tensor.view(torch.int16).numpy().view(bfloat16)
    return tensor.numpy()


def _distinct(ids: torch.Tensor) -> tuple[Array, torch.Tensor]:
    distinct, where = torch.unique(ids, return_inverse=True)
    return distinct.cpu().numpy(), where


class RemoteEmbedding(torch.nn.Module):
    """A table of embeddings on the ps, as ``torch.nn.Embedding`` and ``torch.nn.EmbeddingBag``.

    The forward pass looks up each distinct row once. The backward pass pushes the gradients of these rows, to which
    the ps apply their optimizer, so a table may be larger than the memory of a worker. It has no parameters.

    Parameters
    ----------
    num_embeddings : int or None
        Number of rows. None: any 64-bit number is an id (`DynamicTable`).
    embedding_dim : int
        Elements of a row.
    name : str, optional
        Name of the variable.
    optimizer : Optimizer, optional
        Default: Adagrad with a learning rate of 0.01.
    initializer : Initializer, optional
        Default: normal with a standard deviation of 1, as torch.
    mode : {None, "sum", "mean"}
        None: a row for each id. Otherwise the combined rows of each bag.
    dtype : optional
        Default: float32.

    Raises
    ------
    FailedPreconditionError
        No scope of a strategy is open.
    """

    def __init__(
        self,
        num_embeddings: int | None,
        embedding_dim: int,
        *,
        name: str | None = None,
        optimizer: _capstan.Optimizer | None = None,
        initializer: _capstan.Initializer | None = None,
        mode: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if mode not in (None, "sum", "mean"):
            raise errors.InvalidArgumentError(f"mode: found {mode!r}, expected None, 'sum' or 'mean'")
        self.mode = mode
        initializer = initializer or initializers.normal(0.0, 1.0)
        optimizer = optimizer or _capstan.optimizers.Adagrad(0.01)
        self.variable: Variable | DynamicTable
        if num_embeddings is None:
            self.variable = DynamicTable(name, embedding_dim, initializer, dtype or np.float32, optimizer, missing="initial")
        else:
            shape = (num_embeddings, embedding_dim)
            self.variable = Variable(initializer, name=name, dtype=dtype, shape=shape, optimizer=optimizer)
        self._prefetched: tuple[Any, ...] | None = None

    @classmethod
    def from_pretrained(
        cls,
        weights: torch.Tensor,
        *,
        name: str | None = None,
        optimizer: _capstan.Optimizer | None = None,
        mode: str | None = None,
    ) -> RemoteEmbedding:
        """Return a table with these values, such as ``embedding.weight`` of a ``torch.nn.Embedding``."""
        table = cls(*weights.shape, name=name, optimizer=optimizer, mode=mode, initializer=initializers.zeros())
        assert isinstance(table.variable, Variable)
        table.variable.assign(_to_array(weights))
        return table

    def to_embedding(self) -> torch.nn.Embedding:
        """Return a ``torch.nn.Embedding`` with the present values. Not for a dynamic table, whose ids have gaps."""
        if isinstance(self.variable, DynamicTable):
            raise errors.UnimplementedError(f"to_embedding of {self.variable.name!r}: its ids are keys; use export_rows")
        return torch.nn.Embedding.from_pretrained(_to_tensor(self.variable.pull()), freeze=False)

    def prefetch(self, ids: torch.Tensor) -> None:
        """Start the lookup of the next forward pass, which must get the same tensor.

        The rows may not yet include pushes that are made after this call.
        """
        distinct, where = _distinct(ids)
        self._prefetched = (ids, distinct, where, self.variable.lookup_async(distinct))

    def forward(
        self, ids: torch.Tensor, offsets: torch.Tensor | None = None, per_sample_weights: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return the rows of `ids`, or with `mode` the combined rows of each bag.

        Parameters
        ----------
        ids : tensor of integers
            Any shape without `mode`. With `mode`, one axis if `offsets` is given, else two.
        offsets : tensor of integers, optional
            Index in `ids` at which each bag begins.
        per_sample_weights : tensor, optional
            One for each id; needs mode "sum".
        """
        if self._prefetched is not None and self._prefetched[0] is ids:
            _, distinct, where, pending = self._prefetched
            rows = pending.wait()
        else:
            distinct, where = _distinct(ids)
            rows = self.variable.lookup(distinct)
        self._prefetched = None
        return self._combine(distinct, where, rows, offsets, per_sample_weights)

    def _combine(
        self, distinct: Array, where: torch.Tensor, rows: Array, offsets: torch.Tensor | None, weights: torch.Tensor | None
    ) -> torch.Tensor:
        table = _to_tensor(rows).to(where.device)
        if torch.is_grad_enabled():
            table.requires_grad_()
            variable = self.variable
            table.register_hook(lambda gradient: variable.push(distinct, _to_array(gradient)))
        if self.mode is None:
            return torch.nn.functional.embedding(where, table)
        return torch.nn.functional.embedding_bag(where, table, offsets, mode=self.mode, per_sample_weights=weights)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_prefetched": None}

    def extra_repr(self) -> str:
        """Return the arguments for ``repr``."""
        rows = None if isinstance(self.variable, DynamicTable) else self.variable.shape[0]
        return f"{rows}, {self.variable.shape[1]}, name={self.variable.name!r}, mode={self.mode!r}"


class EmbeddingCollection(torch.nn.Module):
    """Several tables whose rows are looked up with one round trip to each ps.

    Parameters
    ----------
    tables : dict of RemoteEmbedding
    """

    def __init__(self, tables: dict[str, RemoteEmbedding]) -> None:
        super().__init__()
        self._position = {name: number for number, name in enumerate(tables)}
        self._tables = torch.nn.ModuleList(tables.values())  # a ModuleDict rejects names such as "items"

    def __getitem__(self, name: str) -> RemoteEmbedding:
        """Return a table by its name."""
        table = self._tables[self._position[name]]
        assert isinstance(table, RemoteEmbedding)
        return table

    def forward(self, features: dict[str, Any]) -> dict[str, torch.Tensor]:
        """Return the output of each table.

        Parameters
        ----------
        features : dict
            Maps a table's name to a tensor of ids, or for jagged bags to ``(ids, offsets)`` or
            ``(ids, offsets, weights)``.
        """
        inputs = {name: (value if isinstance(value, tuple) else (value,)) for name, value in features.items()}
        found = {name: _distinct(values[0]) for name, values in inputs.items()}
        pending = lookup_all([(self[name].variable, found[name][0]) for name in inputs])
        output = {}
        for (name, values), rows in zip(inputs.items(), pending.wait()):
            offsets, weights = (*values[1:], None, None)[:2]
            output[name] = self[name]._combine(*found[name], rows, offsets, weights)
        return output


class DistributedModel(torch.nn.Module):
    """A model whose parameters are on the ps. Made on the coordinator, in the scope of a strategy.

    A function on a worker calls `pull`, computes, and calls `push` after the backward pass. `RemoteEmbedding`
    modules in the model push their gradients in the backward pass.

    Parameters
    ----------
    module : torch.nn.Module
        Its class must be importable by the workers.
    optimizer : Optimizer, optional
        Applied to all parameters. Default: SGD with a learning rate of 0.01.
    name : str
        Prefix of the names of the variables.
    """

    def __init__(
        self, module: torch.nn.Module, *, optimizer: _capstan.Optimizer | None = None, name: str = "model"
    ) -> None:
        super().__init__()
        self.module = module
        self.variables = {
            parameter: Variable(_to_array(value), name=f"{name}/{parameter.replace('.', '/')}", optimizer=optimizer)
            for parameter, value in module.named_parameters()
        }

    def on_workers(self, coordinator: ClusterCoordinator) -> PerWorkerValues:
        """Return an argument of functions that stands for a copy of the model on each worker."""
        return coordinator.create_per_worker_resource(_same, (self,))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self.module(*args, **kwargs)

    def pull(self) -> None:
        """Read the parameters from the ps."""
        with torch.no_grad():
            for name, parameter in self.module.named_parameters():
                parameter.copy_(_to_tensor(self.variables[name].pull()))

    def push(self) -> None:
        """Send the gradients of the parameters to the ps, and clear them."""
        for name, parameter in self.module.named_parameters():
            if parameter.grad is not None:
                self.variables[name].push_dense(_to_array(parameter.grad))
                parameter.grad = None

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Return the state of the module, with the parameters of the ps."""
        self.pull()
        return self.module.state_dict(*args, **kwargs)

    def load_state_dict(self, state: Any, *args: Any, **kwargs: Any) -> Any:
        """Load a state of the module, on the coordinator, and assign its parameters on the ps."""
        result = self.module.load_state_dict(state, *args, **kwargs)
        for name, parameter in self.module.named_parameters():
            self.variables[name].assign(_to_array(parameter))
        return result


def _same(model: DistributedModel) -> DistributedModel:
    return model
