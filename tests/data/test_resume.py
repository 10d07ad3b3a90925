"""Passes that stop in the middle and go on: bit for bit, from a few ints, also after a failure."""

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import errors, random
from funcgrad.data import Dataset

KEY, OTHER = random.split(random.key(0))


def noisy(batch, key):
    return batch + random.normal(key, np.shape(batch))


def odd(item):
    return item % 2 == 1


ARRAYS = Dataset.from_arrays(np.arange(23.0))
STREAM = Dataset.from_generator(lambda: iter(np.arange(23.0)))

PIPELINES = {
    "arrays": ARRAYS,
    "batches": ARRAYS.shuffle(KEY).batch(4),
    "drop_last": ARRAYS.shuffle(KEY).batch(4, drop_last=True),
    "random map": ARRAYS.shuffle(KEY).batch(4).map(noisy, key=OTHER),
    "repeated": ARRAYS.shuffle(KEY).batch(5).repeat(3),
    "across epochs": ARRAYS.shuffle(KEY).repeat(3).batch(5),
    "endless": ARRAYS.shuffle(KEY).repeat().batch(5).take(9),
    "parts": ARRAYS.shuffle(KEY).skip(3).take(17).batch(4),
    "prefetched": ARRAYS.shuffle(KEY).batch(4).map(noisy, key=OTHER).prefetch(3),
    "prefetched and repeated": ARRAYS.shuffle(KEY).batch(4).repeat(2).prefetch(2),
    "prefetched twice": ARRAYS.shuffle(KEY).batch(4).prefetch(2).map(noisy, key=OTHER).prefetch(2),
    "filtered": ARRAYS.shuffle(KEY).filter(odd).batch(2),
    "generator": STREAM,
    "generator, all steps": STREAM.map(noisy, key=OTHER)
    .skip(2)
    .shuffle(KEY, buffer=5)
    .filter(lambda x: x > 0.0)
    .take(15)
    .batch(2)
    .repeat(3)
    .prefetch(2),
    "generator, repeated batches": STREAM.batch(4).repeat(2).shuffle(KEY, buffer=3),
    "filtered, repeated": ARRAYS.shuffle(KEY).filter(odd).repeat(3).batch(4),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_pass_goes_on_bit_for_bit_from_every_place(name, tmp_path):
    data = PIPELINES[name]
    whole = [item.tobytes() for item in data.iterate(epoch=2)]
    assert len(whole) > 4
    for stop in range(len(whole) + 1):
        with data.iterate(epoch=2) as items:
            for _ in range(stop):
                next(items)
            state = items.state
        fg.save(tmp_path / "state.npz", state)
        with data.iterate(fg.load(tmp_path / "state.npz")) as rest:
            assert [item.tobytes() for item in rest] == whole[stop:], stop


@pytest.mark.parametrize("name", PIPELINES)
def test_state_is_a_small_dict_of_ints_and_strings(name):
    with PIPELINES[name].iterate() as items:
        next(items)
        leaves = fg.tree.leaves(items.state)
    assert all(type(leaf) in (int, str) for leaf in leaves)
    assert len(leaves) < 10


@pytest.mark.parametrize("name", PIPELINES)
def test_state_moves_only_with_items(name):
    with PIPELINES[name].iterate() as items:
        before = items.state
        assert items.state == before
        next(items)
        assert items.state != before


def test_state_survives_arrays_in_place_of_ints():
    items = PIPELINES["batches"].iterate()
    next(items)
    state = fg.tree.map(np.asarray, items.state)
    assert next(PIPELINES["batches"].iterate(state)).tolist() == next(items).tolist()


def test_state_of_the_end_gives_nothing_more():
    for name in ("batches", "generator", "filtered, repeated", "prefetched"):
        items = PIPELINES[name].iterate()
        list(items)
        assert list(PIPELINES[name].iterate(items.state)) == []


# What fails is tried again


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("source", [ARRAYS, STREAM, ARRAYS.filter(odd)])
def test_item_that_failed_comes_when_asked_for_again(source, prefetch):
    failures = [True, True]

    def sometimes(x):
        if x == 7.0 and failures:
            failures.pop()
            raise KeyboardInterrupt
        return x

    expected = [batch.tolist() for batch in source.batch(2)]
    items = source.map(sometimes).batch(2).prefetch(prefetch).iterate()
    found = []
    while True:
        try:
            found.append(next(items).tolist())
        except KeyboardInterrupt:
            continue
        except StopIteration:
            break
    assert found == expected
    assert not failures


def test_state_after_a_failure_is_before_the_batch_that_failed():
    def fails(x):
        if x == 5.0:
            raise ValueError("five")
        return x

    items = STREAM.map(fails).batch(2).iterate()
    next(items), next(items)
    with pytest.raises(ValueError, match="five"):
        next(items)
    resumed = STREAM.map(lambda x: x).batch(2).iterate(items.state)
    assert next(resumed).tolist() == [4.0, 5.0]


# States that do not fit

DATA = "23 samples, shuffled, in batches of 4"


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({}, "another pipeline"),
        ("text", "another pipeline"),
        ({"epoch": 0}, "where this pipeline has"),
        ({"epoch": "x", "position": 1, "data": DATA}, "'epoch' is str 'x'"),
        ({"epoch": 0, "position": 1, "data": "24 samples"}, f"was 24 samples; this is {DATA}"),
        ({"epoch": 0, "position": 7, "data": DATA}, "position 7 of 6"),
        ({"epoch": 0, "position": -1, "data": DATA}, "position -1 of 6"),
        ({"epoch": 0, "position": "x", "data": DATA}, "'position' is str 'x'"),
        ({"epoch": 0, "source": {"position": 1, "data": DATA}}, "where this pipeline has"),
    ],
)
def test_state_of_another_pipeline(state, message):
    with pytest.raises(errors.ArgumentError, match=message):
        PIPELINES["batches"].iterate(state)


@pytest.mark.parametrize("name", ["filtered", "generator", "prefetched"])
def test_state_of_another_stream(name):
    with pytest.raises(errors.ArgumentError, match="another pipeline"):
        PIPELINES[name].iterate({"epoch": 0, "position": 1, "data": DATA})


@pytest.mark.parametrize(
    "other",
    [
        Dataset.from_arrays(np.arange(22.0)).shuffle(KEY).batch(4),
        Dataset.from_sequence([1.0] * 24).shuffle(KEY).batch(4),
        ARRAYS.batch(4),
        ARRAYS.shuffle(KEY).batch(5).take(6),
        ARRAYS.shuffle(KEY).take(22).batch(4),
        ARRAYS.shuffle(KEY).take(21).batch(4, drop_last=True),
        ARRAYS.shuffle(KEY).batch(2).repeat(2).skip(18),
        fg.data.random_split(OTHER, ARRAYS, [22, 1])[0].shuffle(KEY).batch(4),
    ],
)
def test_state_of_other_data_of_as_many_batches(other):
    with pytest.raises(errors.ArgumentError, match=f"that was {DATA}; this is "):
        other.iterate(PIPELINES["batches"].iterate().state)


def test_state_fits_what_maps_the_same_items():
    items = PIPELINES["batches"].iterate()
    next(items)
    doubled = PIPELINES["batches"].map(np.negative)
    assert np.array_equal(next(doubled.iterate(items.state)), -next(items))


def test_generator_that_became_shorter():
    state = {"epoch": 0, "count": 5}
    with pytest.raises(errors.ArgumentError, match="after item 5 of a generator that gave 3"):
        next(Dataset.from_generator(lambda: iter(range(3))).iterate(state))
