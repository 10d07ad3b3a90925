"""``fg.CheckpointManager``: which checkpoints stay, which comes back, what is said if none."""

import os
import pickle
import threading
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import funcgrad as fg
from funcgrad.errors import ArgumentError, TreeMismatchError
from funcgrad.serialize import CheckpointNotFoundError, FileFormatError
from funcgrad.serialize.replacing import replacing


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "run"


def saved(folder, losses, **options):
    """Save one checkpoint after the other, by step and loss, and return the manager."""
    manager = fg.CheckpointManager(folder, **options)
    for step, loss in losses.items():
        manager.save(step, {"step": step}, None if loss is None else {"loss": loss})
    return manager


def damage(path):
    """Change one byte of the array's data."""
    content = bytearray(path.read_bytes())
    content[content.index(b"\7\7\7\7")] ^= 1
    path.write_bytes(content)


# Saving and restoring


def test_latest_is_restored(folder):
    assert saved(folder, {3: None, 12: None, 5: None}).restore() == {"step": 12}


def test_any_step_is_restored(folder):
    assert saved(folder, {3: None, 12: None}).restore(3) == {"step": 3}


def test_steps_are_in_order(folder):
    assert saved(folder, {100: None, 20: None, 3: None}).all_steps() == [3, 20, 100]


def test_template_is_filled(folder):
    manager = fg.CheckpointManager(folder)
    model = fg.nn.MLP(2, 1, 3, 1, np.tanh, key=fg.random.key(1))
    manager.save(0, model)
    other = fg.nn.MLP(2, 1, 3, 1, np.tanh, key=fg.random.key(2))
    assert manager.restore(template=other) == model


def test_template_is_compared(folder):
    with pytest.raises(TreeMismatchError, match=r"step-1\.npz does not fit the template"):
        saved(folder, {1: None}).restore(template={"step": 1.5})


def test_not_strict_restores_a_part(folder):
    out = saved(folder, {1: None}).restore(template={"step": 0, "new": 2}, strict=False)
    assert out == {"step": 1, "new": 2}


def test_another_manager_sees_the_same(folder):
    saved(folder, {1: 0.5, 2: 0.1, 3: 0.3}, best_metric="loss")
    other = fg.CheckpointManager(folder, best_metric="loss")
    assert (other.all_steps(), other.latest_step(), other.best_step()) == ([1, 2, 3], 3, 2)


def test_file_is_one_of_load(folder):
    path = fg.CheckpointManager(folder).save(7, {"w": np.ones(2)})
    assert path == str(folder / "step-7.npz")
    assert_array_equal(fg.load(path)["w"], [1, 1])


def test_folder_of_checkpoints_is_made_by_saving(folder):
    manager = fg.CheckpointManager(folder / "deep")
    assert not folder.exists()
    manager.save(0, 1)
    assert manager.restore() == 1


def test_step_may_be_a_numpy_integer(folder):
    assert saved(folder, {np.int64(3): None}).all_steps() == [3]


def test_relative_folder_stays_the_same_if_the_process_moves(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    manager = saved("run", {1: None})
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert manager.latest_step() == 1


# What stays


def test_all_stay_by_default(folder):
    assert saved(folder, dict.fromkeys(range(9))).all_steps() == list(range(9))


def test_last_ones_stay(folder):
    assert saved(folder, dict.fromkeys(range(9)), max_to_keep=3).all_steps() == [6, 7, 8]


LOSSES = {0: 0.9, 1: 0.1, 2: 0.5, 3: 0.7, 4: 0.6}


@pytest.mark.parametrize(("mode", "best"), [("min", 1), ("max", 0)])
def test_best_stays_besides_the_last(mode, best, folder):
    manager = saved(folder, LOSSES, max_to_keep=2, best_metric="loss", mode=mode)
    assert manager.all_steps() == [best, 3, 4]
    assert manager.best_step() == best


def test_old_best_goes_when_there_is_a_better_one(folder):
    manager = saved(folder, {**LOSSES, 5: 0.05, 6: 0.2}, max_to_keep=1, best_metric="loss")
    assert manager.all_steps() == [5, 6]


def test_periodic_ones_stay(folder):
    manager = saved(folder, dict.fromkeys(range(10)), max_to_keep=1, keep_period=4)
    assert manager.all_steps() == [0, 4, 8, 9]


def test_the_one_just_saved_stays_whatever_its_step(folder):
    manager = saved(folder, {5: None, 6: None}, max_to_keep=1)
    manager.save(2, "again from an earlier one")
    assert manager.all_steps() == [2, 6]


def test_first_of_equal_ones_is_the_best(folder):
    assert saved(folder, {1: 0.5, 2: 0.5}, best_metric="loss").best_step() == 1


def test_nan_is_never_the_best(folder):
    losses = {1: np.nan, 2: 3.0, 3: np.nan}
    manager = saved(folder, losses, best_metric="loss", max_to_keep=1)
    assert manager.best_step() == 2
    assert manager.all_steps() == [2, 3]
    assert np.isnan(manager.metrics(3)["loss"])


def test_one_without_metrics_is_never_the_best(folder):
    manager = saved(folder, {1: None, 2: 3.0, 3: None}, best_metric="loss")
    assert manager.best_step() == 2
    assert saved(folder / "none", {1: None}, best_metric="loss").best_step() is None


def test_metrics_come_back(folder):
    manager = fg.CheckpointManager(folder)
    manager.save(1, 0, {"loss": np.float32(0.5), "correct": 3, "f1": np.array(0.25)})
    assert manager.metrics(1) == {"loss": 0.5, "correct": 3.0, "f1": 0.25}
    manager.save(2, 0)
    assert manager.metrics(2) == {}


def test_other_files_are_left_alone(folder):
    folder.mkdir()
    names = ["notes.txt", "step-x.npz", "step-01.npz", "step--1.npz", "step-1.npz.bak", "step-²"]
    for name in names:
        (folder / name).write_text("mine")
    manager = saved(folder, {8: None, 9: None}, max_to_keep=1)
    assert manager.all_steps() == [9]
    assert sorted(os.listdir(folder)) == sorted([*names, "step-9.npz"])


def test_failed_save_removes_nothing(folder, monkeypatch):
    manager = saved(folder, {1: None}, max_to_keep=1)

    def fail(*args):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="no space left"):
        manager.save(2, 0)
    assert os.listdir(folder) == ["step-1.npz"]


def test_without_fsync_nothing_waits_for_the_disk(folder, monkeypatch):
    def fail(*args):
        raise AssertionError("fsync")

    monkeypatch.setattr(os, "fsync", fail)
    assert saved(folder, {1: None}, fsync=False).restore() == {"step": 1}
    fg.save(folder / "x.npz", 1, fsync=False)
    assert fg.load(folder / "x.npz") == 1


# Leftovers


def test_leftover_of_a_killed_writer_is_removed(folder):
    folder.mkdir()
    (folder / ".funcgrad-0123456789abcdef.tmp").write_bytes(b"half")
    saved(folder, {1: None})
    assert os.listdir(folder) == ["step-1.npz"]


def test_file_that_is_being_written_is_no_leftover(folder):
    folder.mkdir()
    with replacing(str(folder / "other.npz")) as file:
        file.write(b"first half, ")
        saved(folder, {1: None})
        file.write(b"second half")
    assert (folder / "other.npz").read_bytes() == b"first half, second half"


@pytest.mark.skipif(os.name == "nt", reason="there are no such locks there")
def test_writer_whose_file_is_taken_for_a_leftover_begins_again(folder, monkeypatch):
    import fcntl

    folder.mkdir()
    lock, taken = fcntl.flock, []

    def slow(file, how):
        if not taken and how == fcntl.LOCK_EX:
            taken.append(file.name)
            os.unlink(file.name)
        return lock(file, how)

    monkeypatch.setattr(fcntl, "flock", slow)
    fg.save(folder / "x.npz", 1)
    assert taken
    assert fg.load(folder / "x.npz") == 1


# Readers


def test_reader_gets_whole_checkpoints_while_they_are_written_and_removed(folder):
    writer = saved(folder, {0: None}, max_to_keep=1, fsync=False)
    reader = fg.CheckpointManager(folder)
    seen, errors, done = [], [], threading.Event()

    def read():
        try:
            while not done.is_set():
                seen.append(reader.restore()["step"])
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for step in range(1, 60):
        writer.save(step, {"step": step, "x": np.full(1000, step)})
    done.set()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(set(seen)) > 1


# Damage


def damaged_latest(folder):
    manager = fg.CheckpointManager(folder)
    for step in (1, 2, 3):
        manager.save(step, {"step": step, "x": np.full(8, 7, np.uint8)})
    damage(folder / "step-3.npz")
    return manager


def test_damaged_latest_is_an_error_that_offers_the_one_before(folder):
    with pytest.raises(FileFormatError, match=r"step-3\.npz is damaged") as caught:
        damaged_latest(folder).restore()
    assert "restore(step=2)" in caught.value.fix
    assert "fallback=True" in caught.value.fix


def test_damaged_latest_falls_back_if_asked(folder):
    manager = damaged_latest(folder)
    with pytest.warns(UserWarning, match=r"step-3\.npz is damaged: step 2 is restored"):
        assert manager.restore(fallback=True)["step"] == 2


def test_fallback_goes_back_as_far_as_needed(folder):
    manager = damaged_latest(folder)
    (folder / "step-2.npz").write_bytes(b"")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert manager.restore(fallback=True)["step"] == 1
    assert len(caught) == 2


def test_fallback_from_the_only_one_is_an_error(folder):
    manager = damaged_latest(folder)
    for step in (1, 2):
        os.unlink(folder / f"step-{step}.npz")
    with pytest.raises(FileFormatError, match="is damaged"):
        manager.restore(fallback=True)


def test_fallback_is_for_damage_alone(folder):
    with pytest.raises(TreeMismatchError):
        saved(folder, {1: None, 2: None}).restore(template={"step": "text"}, fallback=True)


def test_damaged_file_is_never_the_best(folder):
    manager = saved(folder, {1: 0.5, 2: 0.1}, best_metric="loss")
    (folder / "step-2.npz").write_bytes(b"")
    assert manager.best_step() == 1


# Errors


def test_nothing_to_restore_is_an_error(folder):
    manager = fg.CheckpointManager(folder)
    assert manager.latest_step() is None
    with pytest.raises(CheckpointNotFoundError, match="there is no checkpoint"):
        manager.restore()
    with pytest.raises(FileNotFoundError):
        manager.metrics(3)


def test_error_of_a_missing_checkpoint_pickles(folder):
    with pytest.raises(CheckpointNotFoundError) as caught:
        fg.CheckpointManager(folder).restore(3)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_step_that_is_not_there_is_an_error_that_lists_those_that_are(folder):
    with pytest.raises(CheckpointNotFoundError, match="no checkpoint of step 3") as caught:
        saved(folder, {1: None, 2: None}).restore(3)
    assert "there are 1, 2" in caught.value.where


def test_same_step_is_saved_once(folder):
    manager = saved(folder, {1: None})
    with pytest.raises(ArgumentError, match="of step 1 already"):
        manager.save(1, "again")
    assert manager.restore() == {"step": 1}


def test_same_step_is_replaced_by_force(folder):
    manager = saved(folder, {1: 0.1, 2: 0.2}, best_metric="loss")
    assert manager.best_step() == 1
    manager.save(1, "again", {"loss": 0.9}, force=True)
    assert (manager.restore(1), manager.best_step()) == ("again", 2)


@pytest.mark.parametrize("step", [-1, 1.0, "1", True, None])
def test_step_is_a_whole_number(step, folder):
    with pytest.raises(ArgumentError, match="a whole number from 0 up"):
        fg.CheckpointManager(folder).save(step, 0)


@pytest.mark.parametrize("value", ["low", None, np.ones(2), 1j])
def test_metric_is_a_number(value, folder):
    with pytest.raises(ArgumentError, match="'loss' is no number"):
        fg.CheckpointManager(folder).save(1, 0, {"loss": value})


def test_metric_of_the_best_is_given(folder):
    with pytest.raises(ArgumentError, match="has no 'loss'") as caught:
        fg.CheckpointManager(folder, best_metric="loss").save(1, 0, {"accuracy": 1.0})
    assert "accuracy" in caught.value.where
    assert not folder.exists()


def test_best_needs_a_metric(folder):
    with pytest.raises(ArgumentError, match="which metric"):
        fg.CheckpointManager(folder).best_step()


@pytest.mark.parametrize(
    "options",
    [
        {"max_to_keep": 0},
        {"max_to_keep": "3"},
        {"max_to_keep": 1.5},
        {"keep_period": 0},
        {"keep_period": True},
        {"best_metric": 3},
        {"mode": "best"},
    ],
)
def test_wrong_option_is_named(options, folder):
    with pytest.raises(ArgumentError, match=next(iter(options))):
        fg.CheckpointManager(folder, **options)


@pytest.mark.parametrize("folder", [None, 3, b"run"])
def test_folder_is_a_path(folder):
    with pytest.raises(ArgumentError, match="takes the name of a folder first"):
        fg.CheckpointManager(folder)


def test_metrics_are_a_dict(folder):
    with pytest.raises(ArgumentError, match="metrics are numbers by name, not list"):
        fg.CheckpointManager(folder).save(1, 0, [0.5])
