"""`DataLoader`, `batch_iterator` and `random_split`."""

import numpy as np
import pytest

from funcgrad import errors, random
from funcgrad.data import DataLoader, Dataset, batch_iterator, random_split


def arrays(n=20):
    return {"x": np.arange(2.0 * n).reshape(n, 2), "y": np.arange(n)}


# DataLoader


def test_loader_is_the_pipeline_of_its_steps():
    loader = DataLoader(arrays(), 6, key=random.key(1), drop_last=True, prefetch=2)
    data = Dataset.from_arrays(arrays()).shuffle(random.key(1)).batch(6, drop_last=True)
    assert len(loader) == len(data) == 3
    for one, other in zip(loader.iterate(epoch=4), data.iterate(epoch=4), strict=True):
        assert np.array_equal(one["x"], other["x"])
        assert np.array_equal(one["y"], other["y"])


def test_loader_takes_a_data_set_and_has_its_methods():
    loader = DataLoader(Dataset.from_sequence([3, 4, 5]).map(float), 2)
    assert [batch.tolist() for batch in loader.map(np.negative)] == [[-3.0, -4.0], [-5.0]]


def test_loader_without_a_key_keeps_the_order():
    assert [batch.tolist() for batch in DataLoader(np.arange(5), 2)] == [[0, 1], [2, 3], [4]]


def test_loader_resumes():
    loader = DataLoader(arrays(), 6, key=random.key(1), prefetch=2)
    with loader.iterate(epoch=1) as batches:
        next(batches)
        state = batches.state
        rest = [batch["y"].tolist() for batch in batches]
    assert [batch["y"].tolist() for batch in loader.iterate(state)] == rest


def test_loader_checks_sizes():
    with pytest.raises(errors.ShapeError, match=r"DataLoader needs arrays of equally many"):
        DataLoader((np.zeros(3), np.zeros(4)), 2)


# batch_iterator


def test_batch_iterator_gives_every_sample_once():
    found = [y for batch in batch_iterator(random.key(0), arrays(20), 6) for y in batch["y"]]
    assert sorted(found) == list(range(20))
    assert found != list(range(20))


def test_batch_iterator_is_decided_by_its_key():
    one, same, other = (
        [batch.tolist() for batch in batch_iterator(random.key(seed), np.arange(20), 6)]
        for seed in (0, 0, 1)
    )
    assert one == same != other


def test_batch_iterator_without_a_key_keeps_the_order():
    assert [b.tolist() for b in batch_iterator(None, np.arange(5), 2)] == [[0, 1], [2, 3], [4]]


def test_batch_iterator_drops_the_last():
    assert [len(b) for b in batch_iterator(random.key(0), np.arange(5), 2, drop_last=True)] == [
        2,
        2,
    ]


def test_batch_iterator_uses_up_its_key():
    key = random.key(0)
    batch_iterator(key, np.arange(5), 2)
    with pytest.warns(random.KeyReuseWarning, match="used twice"):
        batch_iterator(key, np.arange(5), 2)


def test_batch_iterator_names_the_leaf_of_another_size():
    with pytest.raises(errors.ShapeError, match=r"\['x'\] is float64\[3\], but \['y'\] is"):
        batch_iterator(random.key(0), {"x": np.zeros(3), "y": np.zeros(2)}, 2)


def test_batch_iterator_of_nothing():
    with pytest.raises(errors.ArgumentError, match="data set is empty"):
        batch_iterator(random.key(0), np.zeros((0, 4)), 2)


def test_sixty_thousand_samples_make_as_many_distinct_ones():
    batches = batch_iterator(random.key(0), np.arange(60_000), 64, drop_last=True)
    found = np.concatenate(list(batches))
    assert len(np.unique(found)) == len(found) == 59_968


# random_split


@pytest.mark.parametrize(
    ("lengths", "sizes"),
    [
        ([15, 5], [15, 5]),
        ([0.75, 0.25], [15, 5]),
        ([20], [20]),
        ([0, 20], [0, 20]),
        ([0.5, 0.3, 0.2], [10, 6, 4]),
        ([1 / 3, 1 / 3, 1 / 3], [7, 7, 6]),
        ([0.0, 0.33, 0.67], [0, 7, 13]),
        (np.array([12, 8]), [12, 8]),
    ],
)
def test_parts_have_their_lengths_and_each_sample_is_in_one(lengths, sizes):
    parts = random_split(random.key(0), arrays(20), lengths)
    assert [len(part["y"]) for part in parts] == sizes
    assert sorted(y for part in parts for y in part["y"]) == list(range(20))
    for part in parts:
        assert np.array_equal(part["x"][:, 0], 2 * part["y"])


def test_fractions_that_are_inexact_give_what_is_meant():
    parts = random_split(random.key(0), np.arange(10), [0.7 + 0.1, 0.2])
    assert [len(part) for part in parts] == [8, 2]


def test_split_of_a_data_set_gives_data_sets():
    data = Dataset.from_sequence(list("abcdefghij")).map(str.upper)
    train, test = random_split(random.key(0), data, [7, 3])
    assert len(train) == 7
    assert sorted([*train, *test]) == list("ABCDEFGHIJ")
    batches = Dataset.batch(
        random_split(random.key(0), Dataset.from_arrays(np.arange(9)), [9])[0], 4
    )
    assert sorted(np.concatenate(list(batches))) == list(range(9))


def test_split_is_decided_by_its_key():
    one, same, other = (random_split(random.key(s), np.arange(50), [25, 25])[0] for s in (0, 0, 1))
    assert one.tolist() == same.tolist() != other.tolist()


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ([15, 6], "21 together, of 20 samples"),
        ([0.5, 0.4], "0.9 together"),
        ([-1, 21], "lengths=-1"),
        ([1.5, -0.5], "do not add up"),
        ([], "do not add up"),
        (["a"], "do not add up"),
    ],
)
def test_lengths_that_do_not_add_up(lengths, message):
    with pytest.raises(errors.ArgumentError, match=message):
        random_split(random.key(0), arrays(20), lengths)


@pytest.mark.parametrize("step", ["shuffle", "filter", "repeat", "prefetch"])
def test_split_where_samples_would_be_in_both_parts(step):
    data = Dataset.from_arrays(np.arange(10))
    data = {
        "shuffle": lambda: data.shuffle(random.key(1)).map(float),
        "filter": lambda: data.filter(bool),
        "repeat": lambda: data.repeat(2),
        "prefetch": lambda: data.prefetch(1),
    }[step]()
    with pytest.raises(errors.ArgumentError, match="stay the same in all epochs"):
        random_split(random.key(0), data, [0.5, 0.5])
