"""Pipelines: what each step does, and that epochs are decided by keys and their numbers alone."""

import collections
import pickle

import numpy as np
import pytest

from funcgrad import errors, random
from funcgrad.data import Dataset, collate

KEY = random.key(3)


def numbers(n=10):
    return Dataset.from_arrays(np.arange(n))


def stream(n=10):
    return Dataset.from_generator(lambda: iter(range(n)), length=n)


def flat(data, **options):
    return np.concatenate([np.atleast_1d(item) for item in data.iterate(**options)]).tolist()


# Sources


def test_arrays_give_rows_of_every_leaf():
    data = Dataset.from_arrays({"x": np.arange(6.0).reshape(3, 2), "y": (np.array([5, 6, 7]),)})
    item = data[-1]
    assert item["x"].tolist() == [4.0, 5.0]
    assert item["y"] == (7,)
    assert len(data) == 3


def test_items_and_batches_are_copies():
    x = np.zeros((4, 2))
    data = Dataset.from_arrays(x)
    for item in (
        data[0],
        next(data.batch(2).iterate()),
        next(data.shuffle(KEY).batch(2).iterate()),
    ):
        item += 1.0
    assert not x.any()


def test_batches_keep_dtypes_and_memory_maps(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(6, dtype=np.float32))
    data = Dataset.from_arrays(np.load(tmp_path / "x.npy", mmap_mode="r")).batch(4)
    batch = next(data.iterate())
    assert batch.dtype == np.float32
    assert type(batch) is np.ndarray
    assert batch.tolist() == [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize("index", [slice(2, 5), 1.0, np.arange(2), "a"])
def test_number_of_an_item_is_an_int(index):
    with pytest.raises(errors.ArgumentError, match=r"skip\(start\)\.take\(count\)"):
        Dataset.from_arrays(np.arange(10))[index]


def test_generator_function_that_gives_nothing_to_go_through():
    with pytest.raises(errors.ArgumentError, match=r"returned int 3, which is nothing to go thr"):
        list(Dataset.from_generator(lambda: 3))


def test_sequence_can_be_any_class_with_length_and_items():
    class Squares:
        def __len__(self):
            return 4

        def __getitem__(self, i):
            return {"i": i, "square": float(i * i)}

    batches = list(Dataset.from_sequence(Squares()).batch(3))
    assert batches[0]["square"].tolist() == [0.0, 1.0, 4.0]
    assert batches[1]["i"].tolist() == [3]


def test_generator_is_called_anew_for_each_epoch():
    calls = []

    def make():
        calls.append(1)
        yield from range(3)

    data = Dataset.from_generator(make)
    assert flat(data) == flat(data) == [0, 1, 2]
    assert len(calls) == 2


def test_making_a_pass_calls_nothing():
    calls = []
    data = Dataset.from_generator(lambda: calls.append(1) or iter("abc"))
    data.iterate()
    numbers().map(calls.append).batch(2).iterate()
    assert not calls


# Steps


@pytest.mark.parametrize("source", [numbers, stream])
def test_steps_do_the_same_with_and_without_numbers(source):
    data = source(10).map(lambda i: i * 2).skip(1).take(7)
    assert len(data) == 7
    assert flat(data.batch(3)) == [2, 4, 6, 8, 10, 12, 14]
    assert [len(batch) for batch in data.batch(3)] == [3, 3, 1]
    assert [len(batch) for batch in data.batch(3, drop_last=True)] == [3, 3]
    assert flat(data.batch(4).repeat(2)) == [2, 4, 6, 8, 10, 12, 14] * 2
    assert len(data.batch(4).repeat(3)) == 6
    assert flat(data.repeat(2).batch(4)) == [2, 4, 6, 8, 10, 12, 14] * 2
    assert [len(batch) for batch in data.repeat(2).batch(4)] == [4, 4, 4, 2]


@pytest.mark.parametrize("source", [numbers, stream])
@pytest.mark.parametrize(("take", "skip"), [(0, 0), (20, 0), (3, 3), (3, 20), (10, 10)])
def test_take_and_skip_beyond_the_end(source, take, skip):
    expected = list(range(10))[:take][skip:]
    data = source(10).take(take).skip(skip)
    assert [int(i) for i in data] == expected
    assert len(data) == len(expected)
    assert bool(data) == bool(expected)


def test_filter_keeps_what_it_says():
    data = numbers(10).filter(lambda i: i % 3 == 0)
    assert flat(data) == [0, 3, 6, 9]
    assert flat(data.batch(3)) == [0, 3, 6, 9]


def test_custom_collate_gets_the_list_of_items():
    for source in (numbers, stream):
        sizes = list(source(5).batch(2, collate=len))
        assert sizes == [2, 2, 1]


def test_batches_can_be_batched():
    batches = list(numbers(8).batch(2).batch(2))
    assert batches[1].tolist() == [[4, 5], [6, 7]]


def test_endless_repeat_can_be_taken_from():
    for source in (numbers, stream):
        assert flat(source(3).repeat().take(7)) == [0, 1, 2, 0, 1, 2, 0]
        assert flat(source(3).repeat().batch(2).take(3)) == [0, 1, 2, 0, 1, 2]


def test_methods_leave_the_data_set_alone():
    data = numbers(4)
    data.batch(2), data.shuffle(KEY), data.map(str), data.take(1)
    assert flat(data) == [0, 1, 2, 3]


def test_data_sets_can_be_pickled():
    data = pickle.loads(pickle.dumps(numbers(5).shuffle(KEY).batch(2)))
    assert flat(data) == flat(numbers(5).shuffle(KEY).batch(2))


# Random order


def test_every_sample_comes_once_an_epoch():
    data = numbers(1000).shuffle(KEY).batch(64)
    for epoch in range(3):
        assert sorted(flat(data, epoch=epoch)) == list(range(1000))


def test_order_is_that_of_the_permutation_of_key_and_epoch():
    expected = random.permutation(random.fold_in(random.key(3), 5), 50).tolist()
    assert flat(numbers(50).shuffle(KEY).batch(7), epoch=5) == expected


def test_leaves_stay_together_when_shuffled():
    x = np.arange(100)
    data = Dataset.from_arrays((x, {"y": x * 3})).shuffle(KEY).batch(9)
    for xs, rest in data:
        assert np.array_equal(rest["y"], xs * 3)


def test_epochs_differ_and_repeat_bit_for_bit():
    data = numbers(50).shuffle(KEY).batch(8)
    assert flat(data, epoch=0) != flat(data, epoch=1)
    assert flat(data, epoch=1) == flat(data, epoch=1)


def test_other_keys_give_other_orders():
    assert flat(numbers(50).shuffle(KEY)) != flat(numbers(50).shuffle(random.key(4)))


@pytest.mark.parametrize("source", [numbers, stream])
def test_repeat_goes_on_with_the_next_epoch(source):
    data = source(6).shuffle(KEY, buffer=6)
    whole = flat(data.repeat(3))
    assert whole == [i for epoch in range(3) for i in flat(data, epoch=epoch)]
    assert flat(data.repeat(3), epoch=1)[:6] == flat(data, epoch=3)


def test_shuffle_after_repeat_mixes_the_epochs():
    found = flat(numbers(10).shuffle(random.key(1)).repeat(3).shuffle(KEY).batch(4))
    assert collections.Counter(found) == dict.fromkeys(range(10), 3)
    assert sorted(found[:10]) != list(range(10))


def test_batches_across_epochs_have_each_sample_in_its_place():
    expected = flat(numbers(5).shuffle(KEY).repeat(4))
    assert flat(numbers(5).shuffle(KEY).repeat(4).batch(3)) == expected
    assert flat(numbers(5).shuffle(KEY).repeat(4).batch(12)) == expected


def test_stream_is_shuffled_in_blocks():
    data = stream(10).shuffle(KEY, buffer=4)
    found = flat(data)
    assert [sorted(found[i : i + 4]) for i in (0, 4, 8)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert found != list(range(10))
    assert flat(data, epoch=1) != found


@pytest.mark.parametrize("source", [numbers, stream])
def test_map_with_a_key_gives_each_item_its_own_in_each_epoch(source):
    data = source(20).map(lambda i, key: random.uniform(key), key=KEY)
    first, second = flat(data), flat(data, epoch=1)
    assert len({*first, *second}) == 40
    assert flat(data, epoch=1) == second


def test_pass_again_in_the_same_random_order_warns():
    data = numbers(5).shuffle(KEY)
    list(data)
    with pytest.warns(
        random.KeyReuseWarning, match=r"passed over twice.*\n.*test_dataset.*\n.*epoch="
    ):
        list(data)


def test_pass_again_in_a_fixed_order_does_not_warn():
    data = numbers(5).batch(2)
    assert flat(data) == [int(i) for batch in data for i in batch]
    list(data)


# Lengths


def test_length_is_unknown_after_filter():
    with pytest.raises(errors.ArgumentError, match="no known length"):
        len(numbers().filter(bool))
    assert "of unknown length" in repr(numbers().filter(bool))


def test_endless_data_has_no_length():
    with pytest.raises(errors.ArgumentError, match="no end"):
        len(numbers().repeat())
    assert "without end" in repr(numbers().repeat().batch(3))


def test_batches_are_counted():
    assert len(numbers(10).batch(3)) == 4
    assert len(numbers(10).batch(3, drop_last=True)) == 3
    assert len(numbers(10).batch(5, drop_last=True).prefetch(2)) == 2


def test_iterator_hints_at_what_is_left():
    batches = numbers(10).batch(3).iterate()
    next(batches)
    assert batches.__length_hint__() == 3


# Collate


def test_collate_stacks_numbers_arrays_and_lists_strings():
    batch = collate([(1, np.ones(2), "a", None), (2, np.zeros(2), "b", None)])
    assert batch[0].tolist() == [1, 2]
    assert batch[1].shape == (2, 2)
    assert batch[2:] == (["a", "b"], None)


def test_collate_names_the_leaf_whose_shapes_differ():
    samples = [{"x": np.zeros(3)}, {"x": np.zeros(3)}, {"x": np.zeros(4)}]
    with pytest.raises(
        errors.ShapeError, match=r"\['x'\] has the shape \(3,\).*\(4,\) in sample 2"
    ):
        collate(samples)


def test_collate_names_the_sample_whose_structure_differs():
    with pytest.raises(errors.TreeMismatchError, match="sample 1 of the batch"):
        collate([{"x": 1}, {"y": 1}])


def test_collate_of_nothing():
    with pytest.raises(errors.ArgumentError, match="no samples"):
        collate([])


# Bad input


def test_sizes_that_differ_are_named_by_path():
    arrays = {"x": np.zeros((5, 2)), "y": [np.zeros(5), np.zeros(4)]}
    with pytest.raises(errors.ShapeError, match=r"\['x'\] is float64\[5,2\], but \['y'\]\[1\] is"):
        Dataset.from_arrays(arrays)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.zeros((0, 3))}, r"data set is empty\n.*\['x'\] is float64\[0,3\]"),
        ({}, "without arrays"),
        ({"x": [1, 2]}, r"needs arrays\n.*\['x'\]\[0\] is int 1"),
        ({"x": np.float64(1.0)}, r"first axis of samples\n.*\['x'\]"),
        ("text", "needs arrays"),
    ],
)
def test_what_is_no_array_of_samples(arrays, message):
    with pytest.raises(errors.FuncgradError, match=message):
        Dataset.from_arrays(arrays)


@pytest.mark.parametrize("samples", [[], (), ""])
def test_empty_sequence(samples):
    with pytest.raises(errors.ArgumentError, match="data set is empty"):
        Dataset.from_sequence(samples)


def test_generator_in_place_of_its_function():
    with pytest.raises(errors.ArgumentError, match="needs a function"):
        Dataset.from_generator(iter("abc"))


def test_generator_that_gives_nothing():
    with pytest.raises(errors.ArgumentError, match="data set is empty"):
        next(Dataset.from_generator(lambda: iter(())).iterate())


def test_filter_that_leaves_nothing_ends_an_endless_repeat():
    with pytest.raises(errors.ArgumentError, match="epoch without items"):
        next(numbers().filter(lambda i: False).repeat().iterate())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda data: data.batch(0), r"batch\(\) got size=0"),
        (lambda data: data.batch(2.0), r"batch\(\) got size=2.0"),
        (lambda data: data.batch(True), r"size=True"),
        (lambda data: data.batch(11, drop_last=True), "leaves nothing of 10"),
        (lambda data: data.take(-1), "count=-1"),
        (lambda data: data.repeat(0), "times=0"),
        (lambda data: data.prefetch(-1), "count=-1"),
        (lambda data: data.shuffle(0), r"needs a key.*\n.*\n.*fg.random.key\(0\)"),
        (lambda data: data.map(len, key=7), r"key\(7\)"),
        (lambda data: data.map(None), "needs a function"),
        (lambda data: data.filter(3), "needs a function"),
        (lambda data: data.batch(np.array([1, 2])), r"size=array"),
        (lambda data: data.repeat().shuffle(KEY), "no end"),
        (lambda data: data.filter(bool).shuffle(KEY), "size of a buffer"),
        (lambda data: data.iterate(epoch=-1), "epoch=-1"),
        (lambda data: data.filter(bool)[0], "have no numbers"),
        (lambda data: data.take(0).repeat(), "epoch without items"),
        (lambda data: Dataset(np.zeros(3)), "has no constructor"),
    ],
)
def test_arguments_that_make_no_sense(wrong, message):
    with pytest.raises(errors.ArgumentError, match=message):
        wrong(numbers(10))


def test_index_out_of_range_is_an_index_error():
    with pytest.raises(IndexError, match=r"data\[10\] of 10"):
        numbers(10)[10]


@pytest.mark.parametrize("source", [numbers, stream])
@pytest.mark.parametrize("step", ["map", "filter", "batch"])
def test_stop_iteration_in_a_function_does_not_end_the_pass(source, step):
    def fun(item):
        raise StopIteration

    data = source(3)
    data = data.batch(2, collate=fun) if step == "batch" else getattr(data, step)(fun)
    with pytest.raises(RuntimeError, match=f"function given to {step}"):
        list(data)
