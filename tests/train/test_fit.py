"""`fit` and what it is made of: the same as a loop written by hand, stopped and gone on with."""

import json
import os
import signal

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import ArgumentError, NonFiniteError, ShapeError
from funcgrad.train import EarlyStopping, History, TrainState, evaluate, fit, make_step

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 3))
Y = X @ np.array([1.0, -2.0, 3.0]) + 0.5


def loss_fn(params, x, y):
    return np.mean((x @ params["w"] + params["b"] - y) ** 2)


def params():
    return {"w": np.zeros(3), "b": np.array(0.0)}


def key(seed=0):
    return fg.random.key(seed)


def batches(epoch):
    del epoch
    return [(X[i : i + 20], Y[i : i + 20]) for i in range(0, 50, 20)]


def quiet(*args, **options):
    return fit(*args, progress=False, **options)


def test_fit_is_the_loop_one_would_write():
    optimizer = fg.optim.adam(0.1)
    expected, state = params(), optimizer.init(params())
    losses = []
    for _ in range(3):
        epoch_losses = []
        for x, y in batches(0):
            loss, grads = fg.value_and_grad(loss_fn)(expected, x, y)
            updates, state = optimizer.update(grads, state, expected)
            expected = fg.optim.apply_updates(expected, updates)
            epoch_losses.append(loss * len(x))
        losses.append(sum(epoch_losses) / 50)
    result = quiet(params(), loss_fn, optimizer, batches, epochs=3)
    np.testing.assert_array_equal(result.model["w"], expected["w"])
    np.testing.assert_allclose(result.history["loss"], losses, rtol=1e-14)
    assert result.state.step == 9
    assert result.stopped == "epochs"


def dropping(model, x, y, *, key=None):
    return fg.nn.losses.cross_entropy(model(x, key=key), y, reduction="mean")


def normalising(model, x, y, *, state):
    logits, state = model(x, state)
    return fg.nn.losses.cross_entropy(logits, y, reduction="mean"), state


def layers_that(kind, key):
    k1, k2 = fg.random.split(key)
    between = fg.nn.Dropout(0.5) if kind == "drop" else fg.nn.BatchNorm(8)
    return fg.nn.Sequential([fg.nn.Linear(3, 8, key=k1), between, fg.nn.Linear(8, 2, key=k2)])


@pytest.mark.parametrize("kind", ["drop", "normalise"])
def test_compiled_training_gives_the_same_numbers(kind):
    model, model_state = fg.nn.make_with_state(layers_that)(kind, key(1))
    labels = (Y > 0).astype(int)

    def train(jit):
        return quiet(
            model,
            dropping if kind == "drop" else normalising,
            fg.optim.sgd(0.1, momentum=0.9),
            (X, labels),
            epochs=3,
            batch_size=20,  # of 50: the last one is smaller
            key=key(),
            model_state=None if kind == "drop" else model_state,
            validation=(X[:30], labels[:30]),
            metrics={"accuracy": fg.train.accuracy},
            jit=jit,
        )

    compiled, eager = train(True), train(False)
    for name in ("loss", "validation_loss", "validation_accuracy"):
        np.testing.assert_allclose(compiled.history[name], eager.history[name], rtol=1e-12)
    for one, other in zip(*map(fg.tree.leaves, (compiled.state, eager.state)), strict=True):
        if isinstance(one, fg.random.Key):
            assert one == other
        else:
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-14)


def test_arrays_are_shuffled_and_all_used():
    seen = []

    def noting(w, x):
        seen.append(np.array(fg.stop_gradient(x)).ravel().tolist())
        return np.sum(w * 0) + np.mean(x) * 0

    quiet(np.ones(1), noting, fg.optim.sgd(0.1), np.arange(10.0), epochs=2, key=key(), batch_size=4)
    assert [len(batch) for batch in seen] == [4, 4, 2] * 2
    first, second = ([x for batch in part for x in batch] for part in (seen[:3], seen[3:]))
    assert sorted(first) == sorted(second) == list(range(10))
    assert first != second


def test_a_key_for_each_step():
    drawn = []

    def noisy(w, x, key):
        drawn.append(float(fg.random.uniform(key)))
        return np.sum(w) * 0 + np.mean(x) * 0

    quiet(np.ones(1), noisy, fg.optim.sgd(0.1), np.arange(8.0), epochs=2, key=key(), batch_size=4)
    assert len(set(drawn)) == 4


def test_layers_with_state():
    def make(key):
        k1, k2 = fg.random.split(key)
        return fg.nn.Sequential(
            [fg.nn.Linear(3, 4, key=k1), fg.nn.BatchNorm(4), fg.nn.Linear(4, "scalar", key=k2)]
        )

    model, state = fg.nn.make_with_state(make)(key())

    def loss(model, x, y, state):
        out, state = model(x, state)
        return np.mean((out - y) ** 2), state

    result = quiet(
        model, loss, fg.optim.adam(0.03), (X, Y), epochs=60, key=key(1), model_state=state,
        validation=(X, Y), metrics={"r2": fg.train.r2_score},
    )  # fmt: skip
    assert result.model_state.get(model[1].running).count == 60 * 2
    assert result.history[-1]["validation_r2"] > 0.95
    assert result.history[-1]["loss"] < 0.1 * result.history[0]["loss"]


def test_validation_is_over_examples():
    measured = evaluate(params(), batches(0), loss_fn)
    assert measured["loss"] == pytest.approx(np.mean(Y**2), rel=1e-13)
    assert evaluate(params(), (X, Y), loss_fn, batch_size=7) == pytest.approx(measured, rel=1e-13)


def test_metrics_are_of_everything_at_once():
    measured = evaluate(
        params(), batches(0), metrics={"r2": fg.train.r2_score}, predict=lambda p, x: x @ p["w"]
    )
    assert measured["r2"] == pytest.approx(1 - np.sum(Y**2) / np.sum((Y - Y.mean()) ** 2))


@pytest.mark.parametrize("mode", ["min", "max"])
def test_early_stopping_returns_the_best(mode):
    sign = 1 if mode == "min" else -1
    values = iter([sign * v for v in (3.0, 1.0, 2.0, 4.0, 5.0, 0.1)])

    def metric(found, true):
        return next(values)

    options = {
        "epochs": 10,
        "validation": [(X, Y)],
        "metrics": {"cost": metric},
        "predict": lambda p, x: x @ p["w"],
    }
    rule = EarlyStopping("validation_cost", patience=3, mode=mode)
    optimizer = fg.optim.sgd(0.1)
    result = quiet(params(), loss_fn, optimizer, batches, early_stopping=rule, **options)
    assert result.stopped == "early"
    assert len(result.history) == 5
    best = quiet(params(), loss_fn, optimizer, batches, epochs=2)
    np.testing.assert_array_equal(result.model["w"], best.model["w"])


def test_callbacks_see_each_epoch_and_may_stop():
    rows = []

    def callback(state, row):
        rows.append((state.step, row["epoch"]))
        return row["epoch"] == 2

    result = quiet(params(), loss_fn, fg.optim.sgd(0.1), batches, epochs=9, callbacks=[callback])
    assert rows == [(3, 1), (6, 2)]
    assert result.stopped == "callback"


@pytest.mark.parametrize("save_every", [None, 2])
def test_a_training_that_was_stopped_goes_on_as_if_it_had_not(tmp_path, save_every):
    data = fg.data.Dataset.from_arrays((X, Y)).shuffle(key(5)).batch(8)
    optimizer = fg.optim.adam(0.05)

    def noisy(params, x, y, key):
        return loss_fn(params, x + 0.1 * fg.random.normal(key, x.shape), y)

    whole = quiet(params(), noisy, optimizer, data, epochs=4, key=key(3))

    class Stop(Exception):
        pass

    calls = []

    def failing(params, x, y, key):
        calls.append(1)
        if len(calls) == 17:  # in the third epoch, which has seven steps
            raise Stop
        return noisy(params, x, y, key)

    def run(loss):
        return quiet(
            params(), loss, optimizer, data, epochs=4, key=key(3), save_every=save_every,
            checkpoints=fg.CheckpointManager(tmp_path),
        )  # fmt: skip

    with pytest.raises(Stop):
        run(failing)
    resumed = run(noisy)
    np.testing.assert_array_equal(resumed.model["w"], whole.model["w"])
    assert resumed.history["loss"] == whole.history["loss"]
    assert resumed.state.step == whole.state.step


def test_ctrl_c_stops_between_steps_and_saves(tmp_path):
    manager = fg.CheckpointManager(tmp_path)
    steps = []

    def interrupting(params, x, y):
        steps.append(1)
        if len(steps) == 4:
            os.kill(os.getpid(), signal.SIGINT)
        return loss_fn(params, x, y)

    before = signal.getsignal(signal.SIGINT)
    result = quiet(
        params(), interrupting, fg.optim.sgd(0.1), batches, epochs=9, checkpoints=manager
    )
    assert result.stopped == "interrupted"
    assert result.state.step == len(steps) == 4
    assert manager.latest_step() == 4
    assert signal.getsignal(signal.SIGINT) is before


def test_a_loss_that_is_not_finite_names_step_and_leaf():
    bad = X.copy()
    bad[30, 1] = np.nan
    data = [(X[:20], Y[:20]), (bad[20:40], Y[20:40])]
    with pytest.raises(NonFiniteError, match=r"the loss is nan at step 1\n.*the batch\[0\]"):
        quiet(params(), loss_fn, fg.optim.sgd(0.1), lambda epoch: data, epochs=1)

    def exploding(params, x, y):
        with np.errstate(over="ignore"):
            return np.sum(np.exp(1e3 + params["w"]))

    with pytest.raises(NonFiniteError, match=r"the new model\['w'\]"):
        quiet(
            params(),
            exploding,
            fg.optim.sgd(0.1),
            batches,
            epochs=1,
        )


def test_make_step_gives_the_optimizer_what_it_asks_for():
    step = make_step(loss_fn, fg.optim.lbfgs())
    state = TrainState.create(params(), fg.optim.lbfgs())
    for _ in range(15):
        state, loss = step(state, (X, Y))
    assert loss < 1e-10


def test_a_batch_that_is_a_dict_is_one_argument():
    step = make_step(lambda p, batch: loss_fn(p, batch["x"], batch["y"]), fg.optim.sgd(0.1))
    state = TrainState.create(params(), fg.optim.sgd(0.1))
    state, loss = step(state, {"x": X, "y": Y})
    assert loss == pytest.approx(np.mean(Y**2))


def test_predict_needs_no_key():
    model = fg.nn.Sequential([fg.nn.Dropout(0.5)])
    np.testing.assert_array_equal(fg.train.predict(model, X), X)


def test_history_as_csv_and_json(tmp_path):
    result = quiet(params(), loss_fn, fg.optim.sgd(0.1), batches, epochs=2, validation=(X, Y))
    result.history.to_csv(tmp_path / "h.csv")
    lines = (tmp_path / "h.csv").read_text().splitlines()
    assert lines[0] == "epoch,step,loss,validation_loss,seconds"
    assert lines[1].split(",")[:3] == ["1", "3", repr(result.history[0]["loss"])]
    text = result.history.to_json(tmp_path / "h.json")
    assert json.loads((tmp_path / "h.json").read_text()) == result.history.rows
    assert History.from_json(text) == result.history


@pytest.mark.parametrize("write", [History.to_csv, History.to_json, History.plot])
def test_failed_write_leaves_no_part_of_a_file(write, tmp_path):
    if write is History.plot:
        pytest.importorskip("matplotlib")
    (tmp_path / "history.png").mkdir()
    with pytest.raises(OSError, match="history"):
        write(History([{"epoch": 1, "loss": 0.5}]), tmp_path / "history.png")
    assert [path.name for path in tmp_path.iterdir()] == ["history.png"]


def test_history_prints_as_a_table():
    history = History([{"epoch": 1, "loss": 0.5}, {"epoch": 2, "loss": 1e-7, "other": 3.0}])
    assert repr(history).splitlines() == [
        "epoch    loss   other",
        "    1  0.5000        ",
        "    2   1e-07  3.0000",
    ]


def test_learning_curves_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    history = History([{"epoch": i, "loss": 1 / i, "validation_loss": 2 / i} for i in (1, 2, 3)])
    figure = history.plot(tmp_path / "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 1000
    (axes,) = figure.axes
    assert [line.get_label() for line in axes.lines] == ["training", "validation"]
    np.testing.assert_allclose(axes.lines[1].get_ydata(), [2, 1, 2 / 3])
    assert len(list(tmp_path.iterdir())) == 1


def test_progress_is_shown(capfd):
    fit(params(), loss_fn, fg.optim.sgd(0.1), batches, epochs=2)
    assert "2/2" in capfd.readouterr().err


@pytest.mark.parametrize(
    "optimizer",
    [fg.optim.adam(0.1), fg.optim.lbfgs(), fg.optim.polyak_sgd()],
    ids=["adam", "lbfgs", "polyak_sgd"],
)
def test_tables_of_integers_in_a_model_stay(optimizer):
    model = {"w": np.zeros(3), "columns": np.array([2, 1, 0]), "used": np.array(True)}
    result = quiet(
        model,
        lambda m, x, y: np.mean((x[:, m["columns"]] @ m["w"] * m["used"] - y) ** 2),
        optimizer,
        (X, Y - 0.5),
        batch_size=50,
        epochs=200,
    )
    np.testing.assert_allclose(result.model["w"], [3.0, -2.0, 1.0], atol=0.05)
    np.testing.assert_array_equal(result.model["columns"], [2, 1, 0])
    assert result.model["used"].dtype == bool


def test_a_key_that_is_needed_is_none_in_validation():
    keys = []

    def with_key(p, x, y, key):
        keys.append(key)
        return loss_fn(p, x, y)

    quiet(params(), with_key, fg.optim.sgd(0.1), batches, epochs=1, key=key(), validation=(X, Y))
    assert [key is None for key in keys] == [False, False, False, True]


def test_a_model_that_broke_in_the_last_step_is_not_saved(tmp_path):
    manager = fg.CheckpointManager(tmp_path)

    @fg.custom_vjp
    def broken(x):
        return x

    broken.defvjp(lambda x: (x, None), lambda _, bar: (bar * np.nan,))
    with pytest.raises(NonFiniteError, match="the model is not finite after step 3") as caught:
        quiet(
            params(),
            lambda p, x, y: loss_fn(p, x, y) + (0 * broken(p["b"]) if len(x) == 10 else 0),
            fg.optim.sgd(0.1),
            batches,
            epochs=1,
            checkpoints=manager,
        )
    assert "the model['b'] is the first" in str(caught.value)
    assert manager.latest_step() is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": -1}, "epochs=int -1"),
        ({"epochs": 2.5}, "epochs=float 2.5"),
        ({"metrics": {"r2": fg.train.r2_score}}, "metrics="),
        ({"metrics": [fg.train.r2_score], "validation": (X, Y)}, "metrics=list"),
        ({"checkpoints": "folder"}, "checkpoints=str 'folder'"),
        ({"save_every": 0}, "save_every=int 0"),
        ({"callbacks": print}, "callbacks="),
        ({"early_stopping": True}, "early_stopping=bool True"),
        ({"early_stopping": EarlyStopping("val_loss"), "validation": (X, Y)}, "'val_loss', which"),
    ],
)
def test_arguments_are_checked_before_the_first_step(options, message):
    steps = []

    def counted(p, x, y):
        steps.append(1)
        return loss_fn(p, x, y)

    with pytest.raises(ArgumentError, match=message):
        quiet(params(), counted, fg.optim.sgd(0.1), batches, **{"epochs": 2, **options})
    assert not steps


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: quiet(params(), loss_fn, fg.optim.sgd(0.1), lambda epoch: [], epochs=1),
            ArgumentError,
            "no batches to train on",
        ),
        (lambda: evaluate(params(), [], loss_fn), ArgumentError, "no batches to measure"),
        (
            lambda: quiet(
                params(), lambda p, x, y, key: 0.0, fg.optim.sgd(0.1), batches, epochs=1
            ),
            ArgumentError,
            "the state has no key",
        ),
        (
            lambda: quiet(
                params(), loss_fn, fg.optim.sgd(0.1), batches, epochs=1,
                early_stopping=EarlyStopping(),
            ),
            ArgumentError,
            "'validation_loss', which is not measured",
        ),
        (lambda: EarlyStopping(mode="less"), ArgumentError, "mode='less'"),
        (
            lambda: evaluate(params(), (X, Y), metrics={"r2": fg.train.r2_score}),
            ArgumentError,
            "which cannot be called",
        ),
        (
            lambda: quiet(params(), loss_fn, fg.optim.sgd(0.1), 3, epochs=1),
            ArgumentError,
            "nothing to go",
        ),
        (lambda: History()["loss"], ArgumentError, "was not measured"),
        (
            lambda: quiet(params(), loss_fn, fg.optim.sgd, batches, epochs=1),
            ArgumentError,
            "an optimizer has init and update, and function <function sgd",
        ),
        (
            lambda: quiet(params(), loss_fn, fg.optim.sgd(0.1), iter(batches(0)), epochs=2),
            ArgumentError,
            r"fit\(\) cannot have data=",
        ),
        (
            lambda: TrainState.create(np.zeros(3, int), fg.optim.sgd(0.1)),
            ArgumentError,
            "there is nothing to train",
        ),
        (
            lambda: evaluate(params(), (X, Y), lambda p, x, y: x @ p["w"]),
            ShapeError,
            r"the loss is not one number: float64\[50\]",
        ),
        (
            lambda: evaluate(
                lambda x: x[:, :2], (X, Y > 0), metrics={"c": fg.train.confusion_matrix}
            ),
            ShapeError,
            r"metric 'c' is not one number: int64\[2,2\]",
        ),
    ],
)  # fmt: skip
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
