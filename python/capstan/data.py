"""Datasets, with the names of ``tf.data``: lazy pipelines whose elements are numpy arrays, tuples or dicts.

A dataset is read where it is iterated: usually on each worker, in the function passed to
``ClusterCoordinator.create_per_worker_dataset``. Its operators run in C++, and call Python for `map`, `filter` and the
combination of batches.
"""

from __future__ import annotations

import atexit
import glob
import os
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Union

import numpy as np

from . import _capstan, errors
from ._capstan import TFRecordWriter

#: For `Dataset.map` and `Dataset.prefetch`: selects a number that fits this host.
AUTOTUNE = -1

Files = Union[str, "os.PathLike[str]", Iterable[Union[str, "os.PathLike[str]"]]]

__all__ = [
    "AUTOTUNE",
    "Dataset",
    "DatasetIterator",
    "FixedLengthRecordDataset",
    "TFRecordDataset",
    "TFRecordWriter",
    "TextLineDataset",
    "criteo",
    "csv",
    "hashed_columns",
    "hdf5_rows",
    "idx",
    "libsvm",
]

_iterators: weakref.WeakSet[DatasetIterator] = weakref.WeakSet()


class DatasetIterator(Iterator[Any]):
    """A stream of elements with a position. One thread at a time.

    An exception of the pipeline replaces one element, with the rest of its batch; the next call continues after it.
    """

    def __init__(self, native: _capstan.DatasetIterator) -> None:
        self._native = native
        _iterators.add(self)

    def __next__(self) -> Any:
        return self._native.next()

    def position(self) -> bytes:
        """Return the position, for `restore` of another iterator of the same pipeline, in any process."""
        return self._native.position()

    def restore(self, position: bytes) -> None:
        """Resume after a position. Raise `InvalidArgumentError` for a position of another pipeline."""
        self._native.restore(position)

    def close(self) -> None:
        """End the background threads of the pipeline."""
        self._native.close()


@atexit.register
def _close_all() -> None:
    for iterator in list(_iterators):
        iterator.close()


class Dataset:
    """A lazy pipeline. Every operator returns a new dataset; invalid arguments raise `InvalidArgumentError` at once.

    An element is an array, a number, a string, or a tuple or dict of them. A function of `map`, `filter`, `flat_map` or
    `interleave` receives the parts of a tuple as arguments.
    """

    _native: _capstan.Dataset

    @staticmethod
    def _of(native: _capstan.Dataset) -> Dataset:
        dataset = Dataset.__new__(Dataset)
        dataset._native = native
        return dataset

    # Operators that select elements without reading them are applied to `_source`.

    @property
    def _source(self) -> _capstan.Dataset:
        return self._native

    def _selection(self, source: _capstan.Dataset) -> Dataset:
        return Dataset._of(source)

    # Sources.

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Dataset:
        """Return the rows along axis 0 of an array, or of each array in a tuple or dict."""
        arrays = _mapped(np.asarray, tensors)
        return _Rows(arrays, _capstan.dataset_range(0, _size(arrays), 1))

    @staticmethod
    def from_tensors(tensors: Any) -> Dataset:
        """Return a dataset of one element."""
        return Dataset.range(1).map(lambda _: tensors)

    @staticmethod
    def from_generator(generator: Callable[[], Iterable[Any]]) -> Dataset:
        """Return the elements of ``generator()``, which is called for each iteration."""
        return Dataset._of(_capstan.dataset_from_generator(generator))

    @staticmethod
    def range(start: int, stop: int | None = None, step: int = 1) -> Dataset:
        """Return integers, as Python's `range` does."""
        start, stop = (0, start) if stop is None else (start, stop)
        return Dataset._of(_capstan.dataset_range(start, stop, step))

    @staticmethod
    def zip(*datasets: Dataset) -> Dataset:
        """Return tuples of one element of each dataset, up to the end of the shortest."""
        if len(datasets) == 1 and isinstance(datasets[0], (tuple, list)):  # as in TensorFlow before 2.13
            datasets = tuple(datasets[0])
        return Dataset._of(_capstan.dataset_zip([dataset._native for dataset in datasets]))

    @staticmethod
    def list_files(pattern: str, shuffle: bool = True, seed: int | None = None) -> Dataset:
        """Return the names of the files that match a pattern, in sorted or random order."""
        names = sorted(glob.glob(pattern))
        if not names:
            raise errors.InvalidArgumentError(f"list_files: no files match {pattern}")
        files = Dataset.range(len(names)).map(lambda i: names[i])
        return files.shuffle(len(names), seed) if shuffle else files

    # Elements.

    def map(self, map_func: Callable[..., Any], num_parallel_calls: int | None = None) -> Dataset:
        """Replace each element by ``map_func(element)``.

        Parameters
        ----------
        map_func : callable
        num_parallel_calls : int, optional
            Number of threads, or `AUTOTUNE`. Elements keep their order. Threads help functions that release the
            interpreter's lock, as those of numpy and torch do for large arrays. Default: the reading thread.
        """
        threads = num_parallel_calls or 0
        if threads == AUTOTUNE:
            threads = len(os.sched_getaffinity(0))
        return Dataset._of(self._native.map(_taking_parts(map_func), threads))

    def filter(self, predicate: Callable[..., Any]) -> Dataset:
        """Return the elements for which ``predicate(element)`` is true."""
        return Dataset._of(self._native.filter(_taking_parts(predicate)))

    def take(self, count: int) -> Dataset:
        """Return the first `count` elements; -1: all."""
        return self._selection(self._source.take(count))

    def skip(self, count: int) -> Dataset:
        """Return all elements except the first `count`; -1: no elements."""
        return self._selection(self._source.skip(count))

    def shard(self, num_shards: int, index: int) -> Dataset:
        """Return the elements index, index + num_shards, ..."""
        return self._selection(self._source.shard(num_shards, index))

    def enumerate(self, start: int = 0) -> Dataset:
        """Return pairs of a number and an element; the numbers count up from `start`."""
        return Dataset.zip(Dataset.range(start, np.iinfo(np.int64).max), self)

    def batch(self, batch_size: int, drop_remainder: bool = False) -> Dataset:
        """Stack `batch_size` elements along a new axis 0. The last batch may be smaller, or is dropped."""
        return Dataset._of(self._native.batch(batch_size, _stacked, drop_remainder))

    def unbatch(self) -> Dataset:
        """Return the rows of each batch."""
        return self.flat_map(lambda *parts: Dataset.from_tensor_slices(parts[0] if len(parts) == 1 else parts))

    def rebatch(self, batch_size: int, drop_remainder: bool = False) -> Dataset:
        """Return batches of another size."""
        return Dataset._of(self._native.rebatch([batch_size], drop_remainder))

    # Streams.

    def shuffle(self, buffer_size: int, seed: int | None = None, reshuffle_each_iteration: bool = True) -> Dataset:
        """Draw each element at random from a buffer of `buffer_size` elements.

        Parameters
        ----------
        buffer_size : int
        seed : int, optional
            Default: random.
        reshuffle_each_iteration : bool
            Whether each iteration has an order of its own.
        """
        return self._selection(self._source.shuffle(buffer_size, seed, reshuffle_each_iteration))

    def repeat(self, count: int | None = None) -> Dataset:
        """Repeat the dataset `count` times; None or -1: endlessly."""
        return self._selection(self._source.repeat(-1 if count is None else count))

    def concatenate(self, dataset: Dataset) -> Dataset:
        """Return the elements of this dataset, then those of `dataset`."""
        return Dataset._of(self._native.concatenate(dataset._native))

    def interleave(
        self, map_func: Callable[..., Dataset], cycle_length: int | None = None, block_length: int = 1
    ) -> Dataset:
        """Take `block_length` elements in turn from each of `cycle_length` datasets ``map_func(element)``."""
        make = _taking_parts(map_func)
        cycle = len(os.sched_getaffinity(0)) if cycle_length is None else cycle_length
        return Dataset._of(self._native.interleave(lambda element: make(element)._native, cycle, block_length))

    def flat_map(self, map_func: Callable[..., Dataset]) -> Dataset:
        """Return the elements of ``map_func(element)`` for each element."""
        return self.interleave(map_func, 1)

    def prefetch(self, buffer_size: int) -> Dataset:
        """Read up to `buffer_size` elements ahead in a background thread; `AUTOTUNE`: 2. Put it last, after `batch`."""
        return Dataset._of(self._native.prefetch(2 if buffer_size == AUTOTUNE else buffer_size))

    def cache(self) -> Dataset:
        """Keep the elements of the first iteration in memory for all later ones."""
        return Dataset._of(self._native.cache())

    def apply(self, transformation: Callable[[Dataset], Dataset]) -> Dataset:
        """Return ``transformation(self)``."""
        return transformation(self)

    # Reading.

    def __iter__(self) -> DatasetIterator:
        return DatasetIterator(_capstan.DatasetIterator(self._native))

    def as_numpy_iterator(self) -> DatasetIterator:
        """Return ``iter(self)``: elements are numpy arrays already."""
        return iter(self)

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Any], Any]) -> Any:
        """Return the last ``state = reduce_func(state, element)``."""
        state = initial_state
        for element in self:
            state = reduce_func(state, element)
        return state

    def count(self) -> int:
        """Return the number of elements, by reading all of them. Raise `InvalidArgumentError` for an endless dataset."""
        return self._source.count()


class _Rows(Dataset):
    """Rows of arrays, selected and shuffled as row numbers, so that a batch indexes each array only once."""

    def __init__(self, arrays: Any, numbers: _capstan.Dataset) -> None:
        self._arrays = arrays
        self._numbers = numbers
        self._native = numbers.map(self._at)

    def _at(self, numbers: Any) -> Any:
        return _mapped(lambda array: array[numbers], self._arrays)

    @property
    def _source(self) -> _capstan.Dataset:
        return self._numbers

    def _selection(self, source: _capstan.Dataset) -> Dataset:
        return _Rows(self._arrays, source)

    def batch(self, batch_size: int, drop_remainder: bool = False) -> Dataset:
        return Dataset._of(self._numbers.batch(batch_size, self._at, drop_remainder))


# Readers. Files are read in order, and those compressed with gzip are unpacked.


def TextLineDataset(filenames: Files) -> Dataset:  # noqa: N802
    """Return the lines of text files as strings, without line terminators."""
    return Dataset._of(_capstan.text_lines(_paths(filenames)))


def TFRecordDataset(filenames: Files, compression_type: str = "") -> Dataset:  # noqa: N802
    """Return the records of TFRecord files as bytes. Every checksum is verified.

    Parameters
    ----------
    filenames : path, or iterable of paths
    compression_type : {"", "NONE", "GZIP", "ZLIB"}
        Default: GZIP is recognized.

    Raises
    ------
    DataLossError
        Raised by the iterator for a damaged or truncated file; the message names the file and the byte.
    """
    return Dataset._of(_capstan.tf_records(_paths(filenames), compression_type))


def FixedLengthRecordDataset(  # noqa: N802
    filenames: Files, record_bytes: int, header_bytes: int = 0, footer_bytes: int = 0
) -> Dataset:
    """Return records of `record_bytes` bytes each."""
    return Dataset._of(_capstan.fixed_records(_paths(filenames), record_bytes, header_bytes, footer_bytes))


def libsvm(
    filenames: Files,
    batch_size: int | None = None,
    *,
    first_id: int = 1,
    features: int = 0,
    two_classes: bool = False,
    salt: int | None = None,
    drop_remainder: bool = False,
) -> Dataset:
    """Return the examples of libsvm files.

    Parameters
    ----------
    filenames : path, or iterable of paths
    batch_size : int, optional
        Elements are batches ``(labels, row_splits, ids, values)``, where example i has the ids
        ``ids[row_splits[i]:row_splits[i + 1]]``; twice as fast as `Dataset.batch`. Default: ``(label, ids, values)``.
    first_id : int
        Feature id in the file that becomes id 0.
    features : int
        Number of features; a larger id is an error. 0: not checked.
    two_classes : bool
        Labels are 0 and 1, or -1 and 1, which become 0 and 1.
    salt : int, optional
        Ids are any texts, which become ``hash_keys(text, salt)``: keys for a `DynamicTable`. `first_id` and
        `features` have no effect.
    drop_remainder : bool
        Whether a last, smaller batch is dropped.
    """
    return Dataset._of(
        _capstan.libsvm(_paths(filenames), first_id, features, two_classes, salt, batch_size, drop_remainder)
    )


def csv(filenames: Files, separator: str = ",", quote: str = '"', header: bool = False) -> Dataset:
    """Return the fields of each record, as a tuple of strings.

    Parameters
    ----------
    filenames : path, or iterable of paths
    separator : str
    quote : str
        "": no quoting.
    header : bool
        Whether the first record of each file names the columns, and is skipped.
    """
    return Dataset._of(_capstan.separated(_paths(filenames), separator, quote, header))


def hashed_columns(
    filenames: Files,
    *,
    label: int = 0,
    numbers: Iterable[int] = (),
    categories: Iterable[int] = (),
    separator: str = ",",
    quote: str = '"',
    header: bool = False,
) -> Dataset:
    """Return an example ``(label, keys, values)`` for each record, with keys for a `DynamicTable`.

    Empty fields are left out. Columns are counted from 0.

    Parameters
    ----------
    filenames : path, or iterable of paths
    label : int
        Column of the label, a number; -1: none, and labels are 0.
    numbers : iterable of int
        Columns with a number: the key ``hash_keys("", column)``, whose value is the number.
    categories : iterable of int
        Columns with a text: the key ``hash_keys(text, column)``, whose value is 1.
    separator, quote, header
        As in `csv`. Criteo's logs have the separator ``"\\t"``, numbers 1 to 13 and categories 14 to 39.
    """
    return Dataset._of(
        _capstan.hashed_columns(
            _paths(filenames), label, list(numbers), list(categories), separator, quote, header
        )
    )


def criteo(filenames: Files, has_label: bool = True) -> Dataset:
    """Return the lines of Criteo's click logs.

    Elements are dicts with a ``label``, 13 ``integers`` (int64) and 26 ``categories`` (uint32). A missing
    field is 0. The masks ``integers_present`` and ``categories_present`` (bool) are true for present fields.
    """
    return Dataset._of(_capstan.criteo(_paths(filenames), has_label))


def idx(filenames: Files, dtype: Any = np.uint8) -> Dataset:
    """Return the items of IDX files, such as MNIST's images, as arrays. `dtype` must be that of the files."""
    return Dataset._of(_capstan.idx(_paths(filenames), np.dtype(dtype).name))


def hdf5_rows(filenames: Files, name: str, dtype: Any = np.float32) -> Dataset:
    """Return the rows of the dataset `name` of HDF5 files, converted to `dtype`."""
    return Dataset._of(_capstan.hdf5_rows(_paths(filenames), name, np.dtype(dtype).name))


# Elements and batches.


def _paths(files: Files) -> list[str]:
    if isinstance(files, (str, os.PathLike)):
        files = [files]
    return [os.fspath(file) for file in files]


def _taking_parts(function: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda element: function(*element) if isinstance(element, tuple) else function(element)


def _mapped(function: Callable[..., Any], *elements: Any) -> Any:
    """Apply a function to corresponding parts of tuples and dicts."""
    first = elements[0]
    if isinstance(first, dict):
        return {key: _mapped(function, *(element[key] for element in elements)) for key in first}
    if isinstance(first, tuple):
        parts = [_mapped(function, *parts) for parts in zip(*elements)]
        return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
    return function(*elements)


def _stacked(elements: list[Any]) -> Any:
    def stack(*parts: Any) -> Any:
        try:
            return np.stack(parts)
        except ValueError as error:
            shapes = sorted({np.shape(part) for part in parts})
            raise errors.InvalidArgumentError(f"batch: found shapes {shapes}, expected equal shapes") from error

    return _mapped(stack, *elements)


def _leaves(batch: Any) -> Iterator[Any]:
    if isinstance(batch, (dict, tuple)):
        for part in batch.values() if isinstance(batch, dict) else batch:
            yield from _leaves(part)
    else:
        yield batch


def _size(batch: Any) -> int:
    sizes = {len(leaf) if np.ndim(leaf) else None for leaf in _leaves(batch)}
    if len(sizes) != 1 or None in sizes:
        raise errors.InvalidArgumentError(f"found arrays of {sizes or 'no'} rows, expected equal numbers")
    return int(sizes.pop() or 0)


def _slice(batch: Any, first: int, last: int) -> Any:
    return _mapped(lambda leaf: leaf[first:last], batch)


def _joined(batch: Any, part: Any) -> Any:
    return _mapped(lambda *parts: np.concatenate(parts), batch, part)


_capstan.set_batch_hooks(_size, _slice, _joined)
