"""Processes that are killed: what was saved before is there, and a run goes on as if nothing was.

Each test runs a script of its own, which forks, so that Python is started once for many deaths.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import funcgrad as fg

ROOT = Path(fg.__file__).parent.parent
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork there")


def run(script, *args, code=0):
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, args)], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == code, done.stderr
    return done.stdout


AT_RANDOM = """
import os, random, signal, sys, time
import numpy as np
import funcgrad as fg

random.seed(0)
manager = fg.CheckpointManager(sys.argv[1], max_to_keep=2)
manager.save(0, {"step": 0, "x": np.zeros(200_000)})
start = time.perf_counter()
manager.save(1, {"step": 1, "x": np.ones(200_000)})
duration = time.perf_counter() - start
began, cut = 0, 0
for trial in range(60):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, b"?")
        step = manager.latest_step()
        while True:
            step += 1
            manager.save(step, {"step": step, "x": np.full(200_000, step)})
            os.write(writing, b".")
    first = manager.latest_step()
    os.read(reading, 1)
    time.sleep(random.uniform(0, 4 * duration))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(writing)
    saved = len(os.read(reading, 10_000))
    os.close(reading)
    began += saved > 0
    cut += any(name.endswith(".tmp") for name in os.listdir(sys.argv[1]))
    out = manager.restore()
    assert out["step"] == manager.latest_step() >= first + saved, (out["step"], first, saved)
    assert (out["x"] == out["step"]).all()
manager.save(manager.latest_step() + 1, 0)
assert not any(name.endswith(".tmp") for name in os.listdir(sys.argv[1]))
assert len(manager.all_steps()) == 2
print(began > 0, cut > 0)
"""


def test_last_complete_checkpoint_loads_after_a_death_at_any_time(tmp_path):
    """Sixty deaths, some of them in the middle of a file."""
    assert run(AT_RANDOM, tmp_path / "run").split() == ["True", "True"]


AT_EACH_LINE = """
import os, signal, sys
import numpy as np
import funcgrad as fg
from funcgrad.serialize import zipping

zipping._LARGE = 1000  # so that there is a thread
path, suffix = sys.argv[1:]
old = {"step": 1, "x": np.full(3000, 1.0)} if suffix == "npz" else {"x": np.full(3000, 1.0)}
new = fg.tree.map(lambda leaf: leaf + 1, old)
path = f"{path}.{suffix}"

def save_and_die(line):
    def trace(frame, event, arg):
        nonlocal line
        if "serialize" not in frame.f_code.co_filename:
            return None
        line -= event == "line"
        if line < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    sys.settrace(trace)
    fg.save(path, new)
    sys.settrace(None)

found = []
line = 0
while True:
    fg.save(path, old)
    child = os.fork()
    if child == 0:
        save_and_die(line)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    out = fg.load(path)
    assert any(all(map(np.array_equal, out.values(), tree.values())) for tree in (old, new))
    found.append(bool(out["x"][0] == 2))
    if status == 0:
        break
    line += 1
assert found[-1] and not found[0] and found == sorted(found)  # once it is new, it stays so
print(len(found) > 50, found.count(True) > 1)
"""


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_file_is_the_old_or_the_new_one_after_a_death_at_any_line(suffix, tmp_path):
    assert run(AT_EACH_LINE, tmp_path / "x", suffix).split() == ["True", "True"]


TRAINING = """
import os, signal, sys
import numpy as np
import funcgrad as fg

folder, result, dies_at = sys.argv[1], sys.argv[2], int(sys.argv[3])
x = fg.random.normal(fg.random.key(1), (50, 4))
y = np.sum(np.sin(x), axis=1, keepdims=True)
optimizer = fg.optim.adam(1e-2)
"""

LOOP = """
def loss(model, x, y, key):
    noise = 0.01 * fg.random.normal(key, x.shape)
    return np.mean((model(x + noise) - y) ** 2)

model = fg.nn.MLP(4, 1, 8, 1, np.tanh, key=fg.random.key(0))
state = {
    "model": model,
    "optimizer": optimizer.init(model),
    "key": fg.random.key(2),
    "step": 0,
    "data": first_position(),
}
manager = fg.CheckpointManager(folder, max_to_keep=2)
if manager.latest_step() is not None:
    state = manager.restore(template=state)
while state["step"] < 24:
    (bx, by), position = next_batch(state["data"])
    key, noise_key = fg.random.split(state["key"])
    grads = fg.grad(loss)(state["model"], bx, by, noise_key)
    updates, opt = optimizer.update(grads, state["optimizer"], state["model"])
    state = {
        "model": fg.optim.apply_updates(state["model"], updates),
        "optimizer": opt,
        "key": key,
        "step": state["step"] + 1,
        "data": position,
    }
    if state["step"] == dies_at:
        os.kill(os.getpid(), signal.SIGKILL)
    if state["step"] % 3 == 0:
        manager.save(state["step"], state)
fg.save(result, fg.tree.leaves([state["model"], state["optimizer"], state["key"]]))
"""

BY_PERMUTATION = """
def first_position():
    return {"epoch": 0, "batch": 0}

def next_batch(position):
    epoch, batch = position["epoch"], position["batch"]
    order = fg.random.permutation(fg.random.fold_in(fg.random.key(3), epoch), 50)
    rows = order[10 * batch : 10 * batch + 10]
    later = {"epoch": epoch, "batch": batch + 1} if batch < 4 else {"epoch": epoch + 1, "batch": 0}
    return (x[rows], y[rows]), later
"""


BY_DATASET = """
data = fg.data.Dataset.from_arrays((x, y)).shuffle(fg.random.key(3)).batch(10)

def first_position():
    return data.iterate(epoch=0).state

def next_batch(position):
    batches = data.iterate(position)
    batch = next(batches, None)
    if batch is None:
        batches = data.iterate(epoch=position["epoch"] + 1)
        batch = next(batches)
    return batch, batches.state
"""


@pytest.mark.parametrize("deaths", [[1], [13, 22]], ids=str)
@pytest.mark.parametrize("batches", [BY_PERMUTATION, BY_DATASET], ids=["permutation", "dataset"])
def test_run_that_is_killed_and_resumed_ends_bit_identical(batches, deaths, tmp_path):
    """24 steps in epochs of 5 batches, with a checkpoint every 3: deaths are in mid-epoch."""
    script = TRAINING + batches + LOOP
    run(script, tmp_path / "whole", tmp_path / "whole.npz", 0)
    for death in deaths:
        run(script, tmp_path / "killed", tmp_path / "killed.npz", death, code=-9)
    run(script, tmp_path / "killed", tmp_path / "killed.npz", 0)
    assert (tmp_path / "killed.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()
