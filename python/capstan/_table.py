"""DynamicTable: a table whose rows are named by arbitrary keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from . import _capstan, errors
from ._arrays import Array, communication_number, empty, host_array, id_array, number_of
from ._rows import RowAccess, check_optimizer
from ._scope import current_strategy

# Numbers of MissingKeys, WhenFull, and RowOp::set.
_MISSING = {"zeros": 0, "default_row": 1, "initial": 2, "error": 3}
_WHEN_FULL = {"refuse": 0, "evict_least_recent": 1, "evict_least_frequent": 2}
_SET = 1
# Rows that export_rows lists at a time.
_EXPORTED_ROWS = 65536


def hash_keys(texts: ArrayLike, salt: int = 0) -> Array:
    """Return keys for texts, with the shape of `texts`: XXH3 with 64 bits.

    Parameters
    ----------
    texts : array_like of str
    salt : int
        Different salts give independent keys, for columns that share a table.
    """
    array = np.asarray(texts)
    hashed = _capstan.hash_keys([_text(text) for text in array.reshape(-1).tolist()], salt)
    return np.asarray(hashed).reshape(array.shape)


def _text(text: Any) -> str:
    if isinstance(text, bytes):
        return text.decode()
    if not isinstance(text, str):
        raise errors.InvalidArgumentError(f"keys: found {text!r}, expected texts or integers")
    return text


class DynamicTable(RowAccess):
    """A table on the ps whose rows are named by keys: any 64-bit integers, or texts, which are hashed by `hash_keys`.

    The first push to a key adds its row. Made on the coordinator, in the scope of a strategy, with one shard on each
    ps; passed to functions as an argument. `lookup`, `push` and the other calls of variables take keys instead of row
    numbers; so do `capstan.lookup_all`, `capstan.embedding_lookup` and `capstan.embedding_lookup_sparse`.

    Parameters
    ----------
    name : str or None
        Must be unique. None: Variable, Variable_1, ...
    dim : int
        Elements of a row.
    initializer : Initializer, optional
        Values of a new row; must not depend on the shape. Default: zeros.
    dtype : optional
        As in `Variable`. Default: float32.
    optimizer : Optimizer, optional
        Applied by the ps to pushes. Default: SGD with a rate of 0.01; 1 for integers.
    missing : {"zeros", "default_row", "initial", "error"}
        Result of a lookup of a key that does not exist: zeros; the row of `set_default_row`; the row with
        which the key would be added; or NotFoundError.
    max_keys : int
        Number of keys for which the ps reserve addresses. Memory is allocated when keys are added.
    when_full : {"refuse", "evict_least_recent", "evict_least_frequent"}
        Effect of a push to a new key while max_keys are in use. refuse: the push is dropped and counted in
        ``statistics()["refused"]``. Otherwise the new key replaces one with old pushes, or with few pushes.
    admit_after : int
        Number of occurrences in recent pushes, 1 to 15, at which a push adds a key. Earlier gradients of the
        key go to the default row with ``missing="default_row"``, and are dropped otherwise. Counts are
        approximate.
    admit_probability : float
        Probability, above 0 and at most 1, with which a push adds a new key: the alternative to
        admit_after. A function that runs again after a failure adds the same keys.
    evict_after : int
        Age above which a key is evicted: the number of pushes to the table that its ps has received since
        the last one to the key. A step of a synchronous group counts as one push. 0: never.
    trainable : bool
        Marks the table for training; pushes are accepted in any case.
    group : UpdateGroup, optional
        As in `Variable`. A synchronous group adds the keys of a step when the step ends.
    stochastic_rounding : bool
        As in `Variable`.
    int8_rows : bool
        As in `Variable`.
    communication_dtype : optional
        As in `Variable`.
    int8_lookups : bool, optional
        As in `Variable`.

    Raises
    ------
    FailedPreconditionError
        No scope is open, or this is not the coordinator.
    InvalidArgumentError
        Invalid sizes, dtypes, names or parameters of the optimizer.
    AlreadyExistsError
        The name is taken.
    """

    _kind = "table"

    def __init__(
        self,
        name: str | None,
        dim: int,
        initializer: _capstan.Initializer | None = None,
        dtype: DTypeLike = np.float32,
        optimizer: _capstan.Optimizer | None = None,
        *,
        missing: str = "zeros",
        max_keys: int = 1 << 26,
        when_full: str = "refuse",
        admit_after: int = 1,
        admit_probability: float = 1.0,
        evict_after: int = 0,
        trainable: bool = True,
        group: _capstan.UpdateGroup | None = None,
        stochastic_rounding: bool = False,
        int8_rows: bool = False,
        communication_dtype: DTypeLike | None = None,
        int8_lookups: bool | None = None,
    ) -> None:
        strategy = current_strategy()
        if strategy is None:
            raise errors.FailedPreconditionError(
                "DynamicTable: no scope is open; create tables in 'with strategy.scope():' on the coordinator"
            )
        check_optimizer(name, optimizer)
        if missing not in _MISSING:
            raise errors.InvalidArgumentError(f"missing: found {missing!r}, expected one of {', '.join(_MISSING)}")
        if when_full not in _WHEN_FULL:
            raise errors.InvalidArgumentError(f"when_full: found {when_full!r}, expected one of {', '.join(_WHEN_FULL)}")
        if dim < 1 or max_keys < 1:
            raise errors.InvalidArgumentError(
                f"table {name!r}: found dim {dim} and max_keys {max_keys}, expected at least 1"
            )
        self._bind(
            _capstan.create_table(
                strategy._name(name),
                number_of(dtype),
                dim,
                initializer,
                optimizer,
                _MISSING[missing],
                max_keys,
                _WHEN_FULL[when_full],
                admit_after,
                admit_probability,
                evict_after,
                trainable,
                group,
                stochastic_rounding,
                int8_rows,
                communication_number(communication_dtype),
                int8_lookups,
            ),
            strategy._implementation,
        )
        self.shape = (-1, dim)  # the number of rows changes

    @classmethod
    def _of(cls, raw: _capstan.RawVariable) -> DynamicTable:
        table = cls.__new__(cls)
        table._bind(raw, None)
        table.shape = (-1, table._width)
        return table

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (*self._native.to_send(), self._handle.dtype)

    def _ids(self, ids: Any) -> Array:
        if isinstance(ids, (str, bytes)):
            return hash_keys(ids)
        array = host_array(ids)
        return hash_keys(array) if array.dtype.kind in "USO" else id_array(array)

    def lookup_or_insert(self, keys: ArrayLike, *, out: Array | None = None) -> Array:
        """Return the rows of keys, and add those that do not exist, with the values of the initializer.

        Parameters
        ----------
        keys : array_like of integers or str
        out : array, optional
            As in `lookup`.

        Returns
        -------
        ndarray of shape ``keys.shape + (dim,)``
        """
        keys = self._ids(keys)
        if out is None:
            out = empty(keys.shape + self._row_shape, self.dtype)
        _capstan.table_lookup_or_insert(self._native, keys.reshape(-1), self._receiver(out))
        return out

    def insert(self, keys: ArrayLike) -> DynamicTable:
        """Add keys that do not exist, with the values of the initializer. Return the table."""
        _capstan.table_insert(self._native, self._ids(keys).reshape(-1))
        return self

    def erase(self, keys: ArrayLike) -> DynamicTable:
        """Remove keys, their rows and slots; ignore those that do not exist. Return the table."""
        _capstan.table_erase(self._native, self._ids(keys).reshape(-1))
        return self

    def assign(self, keys: ArrayLike, values: ArrayLike) -> DynamicTable:
        """Set the rows of keys, and add those that do not exist. Return the table."""
        keys, values = self._slices(keys, values, "assign")
        self._native.scatter(_SET, keys, values)
        return self

    def set_default_row(self, values: ArrayLike) -> DynamicTable:
        """Set the row that lookups with ``missing="default_row"`` return. Return the table."""
        _capstan.table_set_default_row(self._native, self._values(values, self._row_shape, "set_default_row"))
        return self

    def contains(self, keys: ArrayLike) -> Array:
        """Return whether each key exists: bools of the shape of `keys`."""
        keys = self._ids(keys)
        return _capstan.table_contains(self._native, keys.reshape(-1)).astype(bool).reshape(keys.shape)

    def statistics(self) -> dict[str, int]:
        """Return numbers of keys (present, maximum, inserted, erased, refused, evicted, not admitted), and bytes."""
        return _capstan.table_statistics(self._native)

    def __len__(self) -> int:
        """Return the number of keys."""
        return self.statistics()["keys"]

    def export_rows(self) -> Iterator[tuple[Array, Array]]:
        """Yield ``(keys, rows)`` for all keys, some at a time, in no particular order.

        Keys that are added or removed meanwhile may be left out. Rows are exact, whatever
        communication_dtype and int8_lookups are.
        """
        for shard in range(len(self._native.shards())):
            first, end = 0, 1
            while first < end:
                end, keys = _capstan.table_keys(self._native, shard, first, _EXPORTED_ROWS)
                first += _EXPORTED_ROWS
                if keys.size:
                    rows = empty(keys.shape + self._row_shape, self.dtype)
                    _capstan.table_lookup_exactly(self._native, keys, self._receiver(rows))
                    yield keys, rows

    def erase_if(self, predicate: Callable[[Array, Array], ArrayLike]) -> int:
        """Remove the keys that a predicate selects; return their number.

        Parameters
        ----------
        predicate : callable
            Called with keys and rows, some at a time, as `export_rows` yields them; returns a bool for each key.
            Pushes that arrive between the call and the removal are lost with the key.
        """
        removed = 0
        for keys, rows in self.export_rows():
            found = keys[np.asarray(predicate(keys, rows), dtype=bool)]
            if found.size:
                self.erase(found)
            removed += found.size
        return removed

    def __repr__(self) -> str:
        return f"<capstan.DynamicTable {self.name!r} dim={self._width} dtype={self.dtype}>"


class KeyTexts:
    """Turns texts into keys, and keys back into texts.

    The texts are the rows of a dynamic table of their own, so they are in checkpoints and survive failures as
    rows do. Any number of tables may use the keys. Made in a scope of a strategy on the coordinator; may be
    passed to functions as an argument.

    Parameters
    ----------
    name : str
        Of the table of texts.
    max_bytes : int
        Bytes of a text in UTF-8, rounded up to a multiple of 8. The end of a longer text is not kept.
    max_keys : int
        As for `DynamicTable`; further texts are not kept.

    Raises
    ------
    As `DynamicTable`.
    """

    def __init__(self, name: str, max_bytes: int = 64, max_keys: int = 1 << 26) -> None:
        if max_bytes < 1:
            raise errors.InvalidArgumentError(f"KeyTexts {name!r}: found max_bytes {max_bytes}, expected at least 1")
        self.table = DynamicTable(name, -(-max_bytes // 8), dtype=np.int64, max_keys=max_keys, trainable=False)

    def keys_of(self, texts: ArrayLike, salt: int = 0) -> Array:
        """Return ``hash_keys(texts, salt)``, and keep the texts that are new.

        Reads the texts of all keys; if some are new, waits for this rank's earlier pushes.

        Raises
        ------
        AlreadyExistsError
            Another text has the same key. The message names both. If two ranks add such texts at the same time,
            one replaces the other, and possibly only a later call with the replaced text raises.
        """
        keys = hash_keys(texts, salt)
        flat = keys.reshape(-1)
        wanted = self._stored_parts(_text(text) for text in np.asarray(texts).reshape(-1).tolist())
        unknown = np.arange(flat.size)
        # The second pass finds texts that another one with the same key has replaced.
        for _ in range(2):
            unknown = self._store(wanted, flat, unknown)
        return keys

    def _store(self, wanted: Array, keys: Array, unknown: Array) -> Array:
        asked, wanted = keys[unknown], wanted[unknown]
        found = self._stored_texts(asked)
        new = found != wanted
        replaced = np.flatnonzero(new & (found != b""))
        if replaced.size:
            at = replaced[0]
            raise errors.AlreadyExistsError(
                f"{_decoded(wanted[at])!r} and {_decoded(found[at])!r} have the same key, {asked[at]}, in "
                f"{self.table.name!r}; use another salt for one of their columns"
            )
        # A run of a function stores what the runs before it have not, so its pushes differ from theirs.
        rows = np.ascontiguousarray(wanted[new]).view(np.int64)
        _capstan.table_assign_in_every_run(self.table._native, asked[new], rows)
        return unknown[new]

    def texts_of(self, keys: ArrayLike) -> Array:
        """Return the text of each key, ``""`` for a key without one: an array of objects of the shape of `keys`."""
        keys = np.asarray(keys)
        texts = np.empty(keys.size, dtype=object)
        texts[:] = [_decoded(text) for text in self._stored_texts(keys.reshape(-1))]
        return texts.reshape(keys.shape)

    def _stored_parts(self, texts: Iterable[str]) -> Array:
        size = 8 * self.table.shape[1]
        return np.array([text.encode().split(b"\0", 1)[0][:size] for text in texts], dtype=f"S{size}")

    def _stored_texts(self, keys: Array) -> Array:
        return self.table.lookup(keys, consistent=True).reshape(-1).view(f"S{8 * self.table.shape[1]}")


def _decoded(text: bytes) -> str:
    return text.decode(errors="ignore")  # the last character may have been cut


def _received(number: int, part: int, dtype: int) -> DynamicTable:
    return DynamicTable._of(_capstan.variable_of(number, part, dtype))
