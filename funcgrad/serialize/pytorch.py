"""What PyTorch calls the parameters of its layers: `torch_names`, for `load`.

Most layers have PyTorch's names and layouts already, so that a path in a model, written with dots,
is the name there. The functions here know the exceptions: biases that are two in PyTorch, three
matrices that are one, statistics that PyTorch keeps in the layer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad import tree
from funcgrad.serialize.fitting import Source
from funcgrad.serialize.statics import function_name

__all__ = ["torch_names"]

_FIELDS: dict[str, dict[str, str]] = {
    "Sequential": {"layers": ""},
    "PReLU": {"negative_slope": "weight"},
    "MultiheadAttention": {"output_proj": "out_proj"},
    "TransformerEncoder": {"blocks": "layers"},
    "TransformerDecoder": {"blocks": "layers"},
    "TransformerEncoderBlock": {
        "attention": "self_attn",
        "attention_norm": "norm1",
        "inner": "linear1",
        "outer": "linear2",
        "mlp_norm": "norm2",
    },
    "TransformerDecoderBlock": {"block": "", "cross": "multihead_attn", "cross_norm": "norm2"},
}
"""Fields with another name in PyTorch, by class; the empty name adds nothing."""

_STATISTICS = {"mean": "running_mean", "variance": "running_var", "count": "num_batches_tracked"}


def torch_names(template: Any, prefix: str = "") -> dict[str, Source]:
    """Return what PyTorch calls the leaves of a model, for the argument `names` of `load`.

    Parameters
    ----------
    template : pytree
        A module, or a tuple of a module and its `nn.State`. Fields of your own modules should be
        called as in PyTorch's.
    prefix : str
        What stands before each name in the file, such as ``"model."``.

    Returns
    -------
    dict
        From the path of each leaf to a name, or to a function where a leaf is made of other arrays
        than PyTorch's. It can be changed before it is used.

    See Also
    --------
    load : takes it.

    Notes
    -----
    It knows `nn.Sequential`; convolutions, whose biases have axes of size 1; `nn.RNN`, `nn.LSTM`,
    `nn.GRU` and their cells, whose biases are sums of PyTorch's; `nn.MultiheadAttention`, whose
    projections are one matrix there; `nn.BatchNorm` with its statistics; and transformers.

    Examples
    --------
    >>> import funcgrad as fg
    >>> k1, k2 = fg.random.split(fg.random.key(0))
    >>> model = fg.nn.Sequential([fg.nn.Linear(2, 3, key=k1), fg.nn.Linear(3, 1, key=k2)])
    >>> torch_names(model)[".layers[1].weight"]
    '1.weight'
    """
    names: dict[str, Source] = {}
    prefixes: dict[int, str] = {}  # of the layers with a state, by its number
    _collect(template, (), prefix, names, prefixes)
    for path, node in _states(template):
        for number, value in node.values.items():
            if number in prefixes and isinstance(value, fg.nn.RunningStats):
                steps = (*path, tree.AttrKey("values"), tree.DictKey(number))
                _statistics(steps, prefixes[number], names)
    return names


def _collect(
    node: Any,
    path: tree.KeyPath,
    prefix: str,
    names: dict[str, Source],
    prefixes: dict[int, str],
) -> None:
    kind = type(node)
    if isinstance(node, fg.nn.State):
        return
    if isinstance(node, fg.nn.StateIndex):
        if node.number is not None:
            prefixes[node.number] = prefix
        elif isinstance(node.init, fg.nn.RunningStats):
            _statistics((*path, tree.AttrKey("init")), prefix, names)
        return
    if isinstance(node, (fg.nn.RNN, fg.nn.LSTM, fg.nn.GRU)):
        for i, ways in enumerate(node.cells):
            for j, cell in enumerate(ways):
                steps = (tree.AttrKey("cells"), tree.SequenceKey(i), tree.SequenceKey(j))
                _cell(cell, (*path, *steps), prefix, f"_l{i}{'_reverse' * j}", names)
        return
    if isinstance(node, (fg.nn.RNNCell, fg.nn.LSTMCell, fg.nn.GRUCell)):
        _cell(node, path, prefix, "", names)
        return
    children = tree.leaves_with_path(node, is_leaf=lambda inner: inner is not node)
    if len(children) == 1 and children[0][0] == ():
        if function_name(node) is None:
            names[tree.keystr(path)] = _leaf(node, path, prefix.removesuffix("."))
        return
    fields = _FIELDS.get(kind.__name__, {}) if kind.__module__.startswith("funcgrad.") else {}
    with_state = kind is tuple and any(isinstance(child, fg.nn.State) for _, child in children)
    for (key,), child in children:
        step = tree.keystr((key,), simple=True)
        step = "" if with_state else fields.get(step, step)
        if step == "running" and isinstance(child, fg.nn.StateIndex):
            step = ""
        inner = f"{prefix}{step}." if step else prefix
        _collect(child, (*path, key), inner, names, prefixes)
    if isinstance(node, fg.nn.MultiheadAttention):
        _projections(node, path, prefix, names)
    if isinstance(node, fg.nn.TransformerDecoderBlock):
        for name in ("weight", "bias"):  # the third norm there is the second of the block here
            place = (*path, *map(tree.AttrKey, ("block", "mlp_norm", name)))
            if tree.keystr(place) in names:
                names[tree.keystr(place)] = f"{prefix}norm3.{name}"


def _leaf(leaf: Any, path: tree.KeyPath, name: str) -> Source:
    """Return the source of a leaf: that of a bias of a convolution gets axes of size 1."""
    axes = np.ndim(leaf) - 1 if hasattr(leaf, "shape") else 0
    if axes < 1 or tree.keystr(path[-1:]) != ".bias" or leaf.shape[1:] != (1,) * axes:
        return name

    def bias_of_convolution(stored: Mapping[str, Any]) -> Any:
        bias = stored[name]
        return np.reshape(bias, (*bias.shape, *(1,) * axes))

    return bias_of_convolution


def _cell(
    cell: Any, path: tree.KeyPath, prefix: str, suffix: str, names: dict[str, Source]
) -> None:
    def named(name: str) -> str:
        return f"{prefix}{name}{suffix}"

    def bias(stored: Mapping[str, Any]) -> Any:
        inner, outer = stored[named("bias_ih")], stored[named("bias_hh")]
        if not isinstance(cell, fg.nn.GRUCell):
            return inner + outer
        summed = 2 * cell.hidden_size  # the last third of the other stays apart: bias_n
        return np.concatenate([(inner + outer)[:summed], inner[summed:]])

    def bias_n(stored: Mapping[str, Any]) -> Any:
        return stored[named("bias_hh")][2 * cell.hidden_size :]

    sources: dict[str, Source] = {
        "weight_ih": named("weight_ih"),
        "weight_hh": named("weight_hh"),
        "bias": bias,
        "bias_n": bias_n,
    }
    for name, source in sources.items():
        if getattr(cell, name, None) is not None:
            names[tree.keystr((*path, tree.AttrKey(name)))] = source


def _projections(layer: Any, path: tree.KeyPath, prefix: str, names: dict[str, Source]) -> None:
    """Name the three projections of attention, which are one array in PyTorch if they can be."""
    sizes = [layer.query_proj, layer.key_proj, layer.value_proj]
    starts = np.cumsum([0, *(proj.weight.shape[0] for proj in sizes)])
    for i, (field, letter) in enumerate([("query", "q"), ("key", "k"), ("value", "v")]):
        rows = slice(starts[i], starts[i + 1])
        steps = (*path, tree.AttrKey(f"{field}_proj"))
        for name, alone in [("weight", f"{letter}_proj_weight"), ("bias", None)]:
            if getattr(sizes[i], name) is not None:
                source = _rows(f"{prefix}in_proj_{name}", rows, alone and prefix + alone)
                names[tree.keystr((*steps, tree.AttrKey(name)))] = source


def _rows(name: str, rows: slice, alone: str | None) -> Callable[[Mapping[str, Any]], Any]:
    def rows_of_projection(stored: Mapping[str, Any]) -> Any:
        if alone is not None and alone in stored:
            return stored[alone]
        return stored[name][rows]

    return rows_of_projection


def _statistics(path: tree.KeyPath, prefix: str, names: dict[str, Source]) -> None:
    for field, name in _STATISTICS.items():
        names[tree.keystr((*path, tree.AttrKey(field)))] = prefix + name


def _states(template: Any) -> list[tuple[tree.KeyPath, Any]]:
    pairs = tree.leaves_with_path(template, is_leaf=lambda node: isinstance(node, fg.nn.State))
    return [(path, node) for path, node in pairs if isinstance(node, fg.nn.State)]
