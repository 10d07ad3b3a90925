"""The examples run, cut short, and end as they say: also without what they need, or interrupted.

Each is a process of its own, in an empty folder, where any warning is an error.
"""

import importlib.util
import inspect
import itertools
import math
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize

import funcgrad as fg

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"

pytest.importorskip("matplotlib")
pytest.importorskip("tqdm")

# Of each example, the last line of a run that is cut short.
LAST_LINES = {
    "char_lstm": r"bits per character: [3-6]\.\d{3}, by counted pairs 3\.\d{3}",
    "char_transformer": r"bits per character: [3-6]\.\d{3}, by counted pairs 3\.\d{3}",
    "diffusion_digits": r"read as meant: \d+\.\d% of 100 \(of real digits: [6-9]\d\.\d%\)",
    "gaussian_process": r"noise: 0\.\d{4}",
    "graph_walkthrough": r"gradient: 3\.0 by a, 8\.0 by b",
    "hamiltonian_monte_carlo": r"5000 samples, largest error [0-3]\.\d\d standard errors",
    "lenet_mnist": r"test accuracy: 0\.\d{4}",
    "logistic_newton": r"gradient below 1e-13 after 7 steps; held-out accuracy 0\.9[34]\d\d",
    "mnist_mlp": r"test accuracy: 0\.[6-9]\d{3}",
    "neural_ode": r"mean relative error of the continuation: 0\.\d{4}",
    "parabola": r"accuracy: (0\.9[5-9]\d\d|1\.0000)",
    "physics_fit": r"quality factor: 1[123]\.\d\d ± 0\.\d\d",
    "polynomial_regression": r"final losses: line 154\.975, parabola 681\d\d\d, network \d{6}",
    "toy_points": r"least accuracy: (0\.[5-9]\d|1\.00)",
    "vae_digits": r"ELBO: -[23]\d\d\.\d nats a digit \(pixels by themselves: -206\.\d\)",
}
# The other files there are shared by several.
SCRIPTS = [
    path.stem
    for path in sorted(EXAMPLES.glob("*.py"))
    if re.search(r"^    common\.run\(", path.read_text("utf-8"), flags=re.M)
]


def command(name, *options):
    return [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py"), *options]


def environment():
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}


def run(folder, arguments):
    return subprocess.run(
        arguments, cwd=folder, env=environment(), capture_output=True, encoding="utf-8"
    )


@pytest.fixture(scope="module")
def common():
    spec = importlib.util.spec_from_file_location("examples_common", EXAMPLES / "common.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """Return what an example printed when it was run with `--quick`; once for all tests."""
    done = {}

    def output(name):
        if name not in done:
            folder = tmp_path_factory.mktemp(name)
            result = run(folder, command(name, "--quick"))
            assert result.returncode == 0, result.stderr
            done[name] = result.stdout.splitlines(), sorted(folder.iterdir())
        return done[name]

    return output


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_last_line_is_the_final_figure(outputs, name):
    lines, _ = outputs(name)
    assert re.fullmatch(LAST_LINES[name], lines[-1]), lines[-1]


@pytest.mark.parametrize("name", SCRIPTS)
def test_one_picture_is_saved_in_the_current_folder(outputs, name):
    lines, files = outputs(name)
    (picture,) = files
    assert picture.stem == name
    start = {".png": b"\x89PNG", ".svg": b"<svg"}[picture.suffix]
    assert picture.read_bytes().startswith(start)
    assert f"picture: {picture.name}" in lines


def test_losses_of_the_line_are_those_of_a_correct_program(outputs):
    lines, _ = outputs("polynomial_regression")
    losses = [float(line.split(": ")[1]) for line in lines if line.startswith("line, epoch")]
    assert losses == [
        1643.094652, 1131.117594, 791.209086, 565.373716, 415.212699,
        315.286954, 248.732753, 204.363885, 174.755296, 154.975083,
    ]  # fmt: skip


def test_the_parabola_is_that_of_least_squares(outputs):
    lines, _ = outputs("polynomial_regression")
    assert "parabola by least squares: 681368" in lines


def test_newton_steps_end_at_the_minimum_that_scipy_finds(outputs):
    lines, _ = outputs("logistic_newton")
    found = float(re.match(r"step 9: loss ([\d.]+)", lines[9])[1])
    with np.load(EXAMPLES / "data" / "mnist_10k.npz") as data:
        chosen = np.flatnonzero(np.isin(data["labels"][:8000], (4, 9)))
        images, labels = data["images"][chosen] / 255, data["labels"][chosen]
    x = np.ones((len(chosen), 50))
    x[:, :49] = images.reshape(-1, 7, 4, 7, 4).mean(axis=(2, 4)).reshape(-1, 49)
    sign = np.where(labels == 9, 1.0, -1.0)

    def loss_and_gradient(w):
        margin = sign * (x @ w)
        gradient = -(x.T @ (sign / (1 + np.exp(margin)))) / len(x) + 2e-4 * w
        return np.mean(np.log1p(np.exp(-margin))) + 1e-4 * w @ w, gradient

    least = optimize.minimize(loss_and_gradient, np.zeros(50), jac=True, tol=1e-8).fun
    assert found == pytest.approx(least, rel=1e-6)


def test_pairs_of_characters_are_counted_right(outputs):
    lines, _ = outputs("char_lstm")
    docs = []
    for name in sorted(np.__all__):
        doc = inspect.cleandoc(getattr(np, name).__doc__ or "")
        if doc and doc not in docs:
            docs.append(doc)
    train = "".join(doc + "\n\n" for i, doc in enumerate(docs) if i % 10 != 9)
    held_out = "".join(doc + "\n\n" for doc in docs[9::10])
    characters = len(set(train + held_out))
    pairs, firsts = Counter(itertools.pairwise(train)), Counter(train[:-1])
    bits = [
        -math.log2((pairs[a, b] + 1) / (firsts[a] + characters))
        for a, b in itertools.pairwise(held_out)
    ]
    # Not to the last digit: SciPy, imported here and not there, rewrites the text of `np.sinc`.
    assert float(lines[-1].split()[-1]) == pytest.approx(np.mean(bits), abs=2e-3)


@pytest.mark.parametrize(
    "name", ["char_lstm", "hamiltonian_monte_carlo", "toy_points", "vae_digits"]
)
def test_eager_gives_the_same_numbers(outputs, tmp_path, name):
    result = run(tmp_path, command(name, "--quick", "--eager"))
    assert result.stdout.splitlines() == outputs(name)[0]


def test_another_seed_gives_other_numbers(outputs, tmp_path):
    result = run(tmp_path, command("physics_fit", "--seed", "1"))
    line = result.stdout.splitlines()[-1]
    assert re.fullmatch(LAST_LINES["physics_fit"], line)
    assert line != outputs("physics_fit")[0][-1]


# Bad input


def test_the_command_that_installs_what_is_missing_is_named(tmp_path):
    hidden = (
        "import runpy, sys; sys.modules['matplotlib'] = None; "
        f"sys.path.insert(0, {str(EXAMPLES)!r}); sys.argv = ['parabola.py']; "
        f"runpy.run_path({str(EXAMPLES / 'parabola.py')!r}, run_name='__main__')"
    )
    result = run(tmp_path, [sys.executable, "-c", hidden])
    assert result.returncode == 1
    install = f'{sys.executable} -m pip install --editable "{ROOT}[examples]"'
    assert result.stderr == f"This example needs matplotlib. To install: {install}\n"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--fast"], "unrecognized arguments: --fast"),
        (["--seed", "one"], "argument --seed: invalid int value: 'one'"),
        (["--out", "picture.txt"], "'picture.txt' does not end in .png or .svg or .pdf"),
        (["--out", "."], "'.' does not end in .png"),
        (["--epochs", "0"], "0 is not a whole number, 1 or more"),
        (["--epochs", "two"], "two is not a whole number, 1 or more"),
    ],
)
def test_wrong_options_show_the_usage(common, monkeypatch, capsys, options, complaint):
    monkeypatch.setattr(sys, "argv", ["example.py", *options])
    parser = common.parser("Show something.")
    parser.add_argument("--epochs", type=common.positive)
    with pytest.raises(SystemExit) as ended:
        common.run(print, parser)
    out, errors = capsys.readouterr()
    assert (ended.value.code, out) == (2, "")
    assert errors.startswith("usage: example.py [-h] [--seed SEED] [--quick] [--eager]")
    assert complaint in errors


@pytest.mark.parametrize("name", ["graph_walkthrough", "mnist_mlp"])
def test_a_wrong_option_ends_an_example(tmp_path, name):
    result = run(tmp_path, command(name, "--fast"))
    assert result.returncode == 2
    assert result.stderr.startswith(f"usage: {name}.py")


def test_a_folder_that_cannot_be_made_is_reported_first(common, tmp_path, monkeypatch, capsys):
    (tmp_path / "file").touch()
    monkeypatch.setattr(sys, "argv", ["example.py", "--out", str(tmp_path / "file" / "a.png")])
    with pytest.raises(SystemExit) as ended:
        common.run(print, common.parser("Show something."))
    out, errors = capsys.readouterr()
    assert (ended.value.code, out) == (2, "")
    assert "error: --out: " in errors


@pytest.mark.skipif(os.name == "nt", reason="Windows sends Ctrl-C to consoles, not to processes")
def test_ctrl_c_ends_the_work_and_leaves_no_file(tmp_path):
    process = subprocess.Popen(
        command("neural_ode"), cwd=tmp_path, env={**environment(), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
    )  # fmt: skip
    assert process.stdout.readline().startswith("step   0")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, "\nstopped\n")
    assert not list(tmp_path.iterdir())


def test_ctrl_c_while_packages_are_loaded_shows_no_traceback(tmp_path):
    pressed = (
        "import sys; sys.modules['tqdm'] = type(sys)('tqdm'); "
        "sys.modules['tqdm'].__spec__ = sys.__spec__; "
        "sys.modules['tqdm'].__getattr__ = lambda name: (_ for _ in ()).throw(KeyboardInterrupt); "
        f"sys.path.insert(0, {str(EXAMPLES)!r}); import common"
    )
    result = run(tmp_path, [sys.executable, "-c", pressed])
    assert result.returncode != 0
    assert result.stderr == "\nstopped\n"


def test_ctrl_c_in_the_training_loop_ends_the_program_too(common):
    def press(state, row):
        signal.raise_signal(signal.SIGINT)

    def loss_fn(w, x):
        return np.sum((x - w) ** 2)

    result = fg.train.fit(
        np.zeros(1), loss_fn, fg.optim.sgd(0.1), (np.ones((4, 1)),), epochs=3, progress=False,
        callbacks=[press],
    )  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        common.finished(result)


def test_ctrl_c_while_a_picture_is_written_leaves_the_old_one(common, tmp_path, monkeypatch):
    picture = tmp_path / "picture.png"
    picture.write_bytes(b"old")

    def interrupted(source, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(common.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        common.write(b"new", picture)
    assert picture.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [picture]


def test_a_picture_replaces_the_old_one_and_may_be_read_by_others(common, tmp_path):
    picture = tmp_path / "picture.png"
    picture.write_bytes(b"old")
    common.write(b"new", picture)
    assert picture.read_bytes() == b"new"
    assert picture.stat().st_mode & 0o044 == 0o044
