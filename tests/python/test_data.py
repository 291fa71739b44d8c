"""Datasets: operators, readers, positions, errors, and background threads."""
import gzip
import threading

import numpy as np
import pytest

import capstan as cs
from capstan.data import Dataset


def elements(dataset):
    return [element.tolist() if isinstance(element, np.ndarray) else element for element in dataset]


# A4.14: same.
def test_rows_of_arrays_are_selected_and_batched():
    x, y = np.arange(12).reshape(6, 2), np.arange(6.0)
    rows = Dataset.from_tensor_slices((x, y))
    first = next(iter(rows))
    np.testing.assert_array_equal(first[0], [0, 1])
    assert first[1] == 0 and rows.count() == 6
    batches = list(rows.skip(1).take(4).shard(2, 1).repeat(2).batch(3))
    np.testing.assert_array_equal(batches[0][0], x[[2, 4, 2]])
    np.testing.assert_array_equal(batches[1][1], [4])
    by_name = next(iter(Dataset.from_tensor_slices({"x": x}).batch(2)))
    np.testing.assert_array_equal(by_name["x"], x[:2])
    with pytest.raises(cs.errors.InvalidArgumentError, match="rows"):
        Dataset.from_tensor_slices((x, np.zeros(5)))


def test_shuffle_permutes_and_repeats_with_a_seed():
    rows = Dataset.range(100).shuffle(30, seed=7)
    first, second = list(rows), list(rows)
    assert sorted(first) == list(range(100)) and first != sorted(first) and first != second
    assert list(Dataset.range(100).shuffle(30, seed=7)) == first
    fixed = Dataset.range(100).shuffle(30, seed=7, reshuffle_each_iteration=False)
    assert list(fixed) == list(fixed)


def test_functions_receive_the_parts_of_tuples():
    pairs = Dataset.zip(Dataset.range(5), Dataset.range(10, 15))
    assert list(pairs.map(lambda a, b: a + b)) == [10, 12, 14, 16, 18]
    assert list(pairs.map(lambda a, b: (b, a), num_parallel_calls=2).filter(lambda b, a: a % 2 == 0)) == [(10, 0), (12, 2), (14, 4)]
    assert list(Dataset.range(3).enumerate(start=4)) == [(4, 0), (5, 1), (6, 2)]


def test_streams_are_combined():
    assert list(Dataset.range(2).concatenate(Dataset.range(7, 9))) == [0, 1, 7, 8]
    assert list(Dataset.range(3).flat_map(lambda n: Dataset.range(n))) == [0, 0, 1]
    assert list(Dataset.range(1, 3).interleave(lambda n: Dataset.range(10 * n, 10 * n + 3), cycle_length=2)) == [10, 20, 11, 21, 12, 22]
    assert elements(Dataset.range(5).batch(2)) == [[0, 1], [2, 3], [4]]
    assert elements(Dataset.range(5).batch(2, drop_remainder=True).rebatch(3)) == [[0, 1, 2], [3]]
    assert list(Dataset.range(5).batch(3).unbatch()) == [0, 1, 2, 3, 4]
    assert Dataset.range(5).reduce(0, lambda total, n: total + n) == 10
    assert list(Dataset.range(3).apply(lambda dataset: dataset.take(1))) == [0]
    assert list(Dataset.from_tensors((1, 2))) == [(1, 2)]
    assert list(Dataset.range(8, 0, -3)) == [8, 5, 2]


def test_generators_run_once_for_each_iteration():
    runs = []

    def generate():
        runs.append(0)
        yield from (3, 1)

    dataset = Dataset.from_generator(generate)
    assert list(dataset) == [3, 1] and list(dataset.repeat(2)) == [3, 1, 3, 1] and len(runs) == 3
    cached = dataset.cache()
    assert list(cached.repeat(2)) == list(cached.repeat(2)) and len(runs) == 4


def test_count_reads_all_elements():
    assert Dataset.range(3).repeat(2).count() == 6
    with pytest.raises(cs.errors.InvalidArgumentError, match="endless"):
        Dataset.range(3).repeat().count()


@pytest.mark.parametrize("parallel", [None, 2])
def test_an_exception_keeps_its_class_and_replaces_one_element(parallel):
    def reject_two(n):
        if n == 2:
            raise KeyError("two")
        return n

    iterator = iter(Dataset.range(4).map(reject_two, num_parallel_calls=parallel).prefetch(1))
    assert [next(iterator), next(iterator)] == [0, 1]
    with pytest.raises(KeyError, match="two") as caught:
        next(iterator)
    assert caught.traceback[-1].name == "reject_two"
    assert list(iterator) == [3]


def test_a_position_resumes_in_another_iterator():
    dataset = Dataset.range(20).shuffle(5, seed=1).map(lambda n: n * n).batch(3)
    first = iter(dataset)
    next(first), next(first)
    rest, position = [batch.tolist() for batch in first], None
    second = iter(dataset)
    next(second), next(second)
    position = second.position()
    resumed = iter(Dataset.range(20).shuffle(5, seed=1).map(lambda n: n * n).batch(3))
    resumed.restore(position)
    assert [batch.tolist() for batch in resumed] == [batch.tolist() for batch in second]
    assert len(rest) == 5
    with pytest.raises(cs.errors.InvalidArgumentError):
        iter(Dataset.range(3)).restore(position)


def test_a_closed_iterator_has_no_threads():
    before = threading.active_count()
    iterator = iter(Dataset.range(1000).map(lambda n: n, num_parallel_calls=2).prefetch(2))
    next(iterator)
    iterator.close()
    assert threading.active_count() == before
    with pytest.raises(cs.errors.FailedPreconditionError, match="closed"):
        next(iterator)


def test_invalid_arguments_are_rejected_at_once():
    for make in (
        lambda: Dataset.range(3).batch(0),
        lambda: Dataset.range(3).shard(2, 2),
        lambda: Dataset.range(3).shuffle(0),
        lambda: Dataset.list_files("/no/such/file*"),
    ):
        with pytest.raises(cs.errors.InvalidArgumentError):
            make()
    with pytest.raises(cs.errors.InvalidArgumentError, match="shapes"):
        next(iter(Dataset.range(1, 3).map(np.zeros).batch(2)))


def test_text_and_csv(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('name,n\n"x, y",1\nz,2\n')
    packed = tmp_path / "b.csv.gz"
    packed.write_bytes(gzip.compress(b"name,n\nw,3\n"))
    assert list(cs.data.TextLineDataset(path))[1] == '"x, y",1'
    assert list(cs.data.csv([path, packed], header=True)) == [("x, y", "1"), ("z", "2"), ("w", "3")]
    assert sorted(Dataset.list_files(str(tmp_path / "*"))) == [str(path), str(packed)]
    with pytest.raises(cs.errors.NotFoundError, match="missing"):
        next(iter(cs.data.TextLineDataset(tmp_path / "missing")))


def test_hashed_columns(tmp_path):
    path = tmp_path / "clicks.csv"
    path.write_text("red,1,2.5\n,0,7\n")
    (one, two) = cs.data.hashed_columns(path, label=1, numbers=[2], categories=[0])
    key = cs.hash_keys
    assert one[0] == 1
    np.testing.assert_array_equal(one[1], [key("", salt=2), key("red", salt=0)])
    np.testing.assert_array_equal(one[2], [2.5, 1])
    np.testing.assert_array_equal(two[1], [key("", salt=2)])
    with pytest.raises(cs.errors.InvalidArgumentError, match="column 0"):
        next(iter(cs.data.hashed_columns(path)))
    texts = tmp_path / "texts"
    texts.write_text("1 user=7:2\n")
    np.testing.assert_array_equal(next(iter(cs.data.libsvm(texts, salt=3)))[1], [key("user=7", salt=3)])


def test_libsvm(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("+1 1:0.5 3:2\n-1 2:1\n+1\n")
    label, ids, weights = next(iter(cs.data.libsvm(path)))
    assert (label, ids.tolist(), weights.tolist()) == (1, [0, 2], [0.5, 2])
    (batch,) = cs.data.libsvm(path, 8, two_classes=True)
    assert [part.tolist() for part in batch] == [[1, 0, 1], [0, 2, 3, 3], [0, 2, 1], [0.5, 2, 1]]
    path.write_text("+1 9:1\n")
    with pytest.raises(cs.errors.InvalidArgumentError, match="a.txt:1"):
        next(iter(cs.data.libsvm(path, features=5)))


def test_criteo(tmp_path):
    path = tmp_path / "day"
    path.write_text("1\t" + "\t".join(["7"] + [""] * 12) + "\t" + "\t".join(["ff"] + [""] * 25) + "\n")
    example = next(iter(cs.data.criteo(path)))
    assert example["label"] == 1 and example["integers"][0] == 7 and example["categories"][0] == 255
    assert example["integers_present"].tolist() == [True] + [False] * 12
    assert example["categories_present"].sum() == 1
    assert next(iter(cs.data.criteo(path).batch(1)))["categories"].shape == (1, 26)


# S19: same.
def test_binary_records(tmp_path):
    path = tmp_path / "records"
    writer = cs.data.TFRecordWriter(path, "GZIP")
    for record in (b"one", b"two"):
        writer.write(record)
    writer.close()
    assert list(cs.data.TFRecordDataset(path)) == [b"one", b"two"]
    path = tmp_path / "fixed"
    path.write_bytes(b"HEADaabb")
    assert list(cs.data.FixedLengthRecordDataset(path, 2, header_bytes=4)) == [b"aa", b"bb"]
    with pytest.raises(cs.errors.DataLossError):
        list(cs.data.FixedLengthRecordDataset(path, 3))
    with pytest.raises(cs.errors.InvalidArgumentError, match="LZ4"):
        cs.data.TFRecordDataset(path, "LZ4")


def test_arrays_in_files(tmp_path):
    images = tmp_path / "images"
    images.write_bytes(bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3]) + bytes(range(6)))
    assert elements(cs.data.idx(images)) == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(cs.errors.InvalidArgumentError, match="complex"):
        cs.data.idx(images, complex)
