"""Drawings: well-formed, complete, and saved as a whole."""

import os
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import ArgumentError, MissingExtraError
from funcgrad.viz import drawing as module

X = np.array([0.5, -1.0, 2.0])
SVG = "{http://www.w3.org/2000/svg}"


def loss(params, x):
    return np.sum(np.tanh(x @ params["w"]) * 2 + np.arange(2.0))


PARAMS = {"w": np.ones((3, 2))}


@pytest.fixture(autouse=True)
def _without_graphviz(monkeypatch):
    monkeypatch.setattr(module.shutil, "which", lambda name: None)


def boxes(svg):
    """Return the boxes of a drawing: kind, texts, and where they are."""
    found = []
    for group in ET.fromstring(svg).iter(f"{SVG}g"):
        rect = group.find(f"{SVG}rect")
        if group.get("class") and rect is not None:
            texts = [text.text for text in group.findall(f"{SVG}text")]
            place = tuple(float(rect.get(key)) for key in ("x", "y", "width", "height"))
            found.append((group.get("class"), texts, place))
    return found


def test_every_value_has_its_box():
    kinds = [(kind, texts[0]) for kind, texts, _ in boxes(fg.viz.graph(loss, PARAMS, X).svg)]
    assert kinds == [
        ("input", "params['w']"),
        ("input", "x"),
        ("constant", "A = [0., 1.]"),
        ("operation", "matmul"),
        ("operation", "tanh"),
        ("operation", "multiply"),
        ("operation", "add"),
        ("operation", "sum"),
        ("output", "result"),
    ]


def test_shapes_stand_on_the_edges():
    texts = [
        node.text for node in ET.fromstring(fg.viz.graph(loss, PARAMS, X).svg).iter(f"{SVG}text")
    ]
    assert "float64[3,2]" in texts
    assert texts.count("float64[2]") == 5  # the constant, and four operations


def test_boxes_say_their_numbers_and_parameters():
    drawing = fg.viz.graph(lambda x: np.sum(2 * x, axis=0), X)
    details = {texts[0]: texts[1] for _, texts, _ in boxes(drawing.svg) if len(texts) > 1}
    assert details == {"multiply": "(2, ·)", "sum": "axis=0"}


def test_boxes_have_the_equation_and_its_line_as_a_tip():
    tips = [
        node.text for node in ET.fromstring(fg.viz.graph(loss, PARAMS, X).svg).iter(f"{SVG}title")
    ]
    tip = next(tip for tip in tips if "tanh" in tip)
    assert tip.startswith("b: float64[2] = tanh(a)\n")
    assert tip.endswith(f"test_drawing.py:{loss.__code__.co_firstlineno + 1}")


def test_tips_do_not_show_folders(tmp_path, monkeypatch):
    script = tmp_path / "secret" / "drawn.py"
    code = compile("def fun(x):\n    return x * 2.0\n", str(script), "exec")
    namespace = {}
    exec(code, namespace)
    drawing = fg.viz.graph(namespace["fun"], 1.0)
    assert "\ndrawn.py:2<" in drawing.draw("plain")
    assert "secret" not in drawing.draw("plain") + drawing.dot
    monkeypatch.chdir(tmp_path)
    assert f"\n{os.path.join('secret', 'drawn.py')}:2<" in drawing.draw("plain")


FUNCTIONS = {
    "loss": (loss, (PARAMS, X)),
    "gradient": (fg.grad(loss), (PARAMS, X)),
    "hessian": (fg.hessian(lambda x: np.sum(np.sin(x) ** 3)), (X,)),
    "several": (lambda x: np.linalg.eigh(np.outer(x, x) + np.eye(3)), (X,)),
    "constant": (lambda x: (1.0, np.ones(2), x), (X,)),
    "loop": (lambda x: fg.fori_loop(0, 8, lambda i, c: c * x + np.sin(c), x), (X,)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_boxes_do_not_overlap(name):
    fun, args = FUNCTIONS[name]
    places = [place for *_, place in boxes(fg.viz.graph(fun, *args).svg)]
    for number, (x, y, width, height) in enumerate(places):
        for left, top, wide, high in places[:number]:
            assert x >= left + wide or left >= x + width or y >= top + high or top >= y + height


@pytest.mark.parametrize("name", FUNCTIONS)
def test_boxes_are_within_the_drawing(name):
    fun, args = FUNCTIONS[name]
    svg = fg.viz.graph(fun, *args).svg
    root = ET.fromstring(svg)
    for *_, (x, y, width, height) in boxes(svg):
        assert x >= 0
        assert x + width <= float(root.get("width"))
        assert y >= 0
        assert y + height <= float(root.get("height"))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_edges_go_downwards(name):
    fun, args = FUNCTIONS[name]
    for path in ET.fromstring(fg.viz.graph(fun, *args).svg).iter(f"{SVG}path"):
        if path.get("marker-end"):
            heights = [float(y) for y in re.findall(r",(-?[\d.]+)", path.get("d"))]
            assert heights == sorted(heights)


def test_names_are_escaped():
    drawing = fg.viz.graph(lambda x: x["<&>"] + 1, {"<&>": X})
    assert boxes(drawing.svg)[0][1] == ["x['<&>']"]
    assert "\"x['<&>']\"" in drawing.dot


def test_what_is_not_used_is_left_out_of_a_function():
    def fun(x):
        np.exp(x)
        return np.sin(x)

    assert "exp" not in fg.viz.graph(fun, X).svg
    assert "exp" in fg.viz.graph(fg.make_program(fun)(X)).svg


def test_what_is_no_function():
    with pytest.raises(ArgumentError, match="takes a function or a program, got float"):
        fg.viz.graph(3.0)


def test_a_program_takes_no_arguments():
    with pytest.raises(ArgumentError, match="without arguments"):
        fg.viz.graph(fg.make_program(np.sin)(X), X)


def test_the_source_for_graphviz():
    source = fg.viz.graph(loss, PARAMS, X).dot
    assert source.startswith('digraph "loss" {\n')
    assert source.endswith("}\n")
    assert len(re.findall(r"^  n\d+ \[", source, re.M)) == 9
    assert 'n1 -> n3 [label=" float64[3]"];' in source


def test_notebooks_show_the_svg():
    drawing = fg.viz.graph(np.sin, X)
    assert drawing._repr_svg_() == drawing.svg


# Graphviz


def test_graphviz_draws_where_it_is_installed(monkeypatch):
    calls = []

    def run(command, *, input, capture_output, check):
        calls.append((command, input))
        return type("Done", (), {"stdout": b"<svg/>"})

    monkeypatch.setattr(module.shutil, "which", lambda name: "/usr/bin/dot")
    monkeypatch.setattr(module.subprocess, "run", run)
    drawing = fg.viz.graph(np.sin, X)
    assert drawing.svg == "<svg/>"
    assert calls == [(["/usr/bin/dot", "-Tsvg"], drawing.dot.encode())]
    assert drawing.draw("plain").startswith("<svg xmlns")


def test_a_graphviz_that_fails_is_done_without(monkeypatch):
    monkeypatch.setattr(module.shutil, "which", lambda name: "/nowhere/dot")
    assert fg.viz.graph(np.sin, X).svg.startswith("<svg xmlns")


def test_graphviz_that_is_missing_is_an_error_when_asked_for():
    with pytest.raises(MissingExtraError, match="graphviz is not installed"):
        fg.viz.graph(np.sin, X).draw("dot")


def test_other_engines_are_refused():
    with pytest.raises(ArgumentError, match="engine must be one of"):
        fg.viz.graph(np.sin, X).draw("neato")


# Files


@pytest.mark.parametrize("suffix", ["svg", "dot"])
def test_drawings_are_saved_by_suffix(tmp_path, suffix):
    drawing = fg.viz.graph(np.sin, X)
    path = tmp_path / f"graph.{suffix}"
    path.write_text("before")
    drawing.save(path)
    assert path.read_text(encoding="utf-8") == getattr(drawing, suffix)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_other_suffixes_are_refused(tmp_path):
    with pytest.raises(ArgumentError, match=r"saved as \.svg, \.dot or \.png"):
        fg.viz.graph(np.sin, X).save(tmp_path / "graph.jpeg")


def test_png_takes_a_package(tmp_path, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(module.importlib, "import_module", missing)
    with pytest.raises(MissingExtraError, match="pip install cairosvg"):
        fg.viz.graph(np.sin, X).save(tmp_path / "graph.png")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "graph.svg"
    path.write_text("before")

    def replace(source, target):
        raise OSError("no")

    monkeypatch.setattr(module.os, "replace", replace)
    with pytest.raises(OSError, match="no"):
        fg.viz.graph(np.sin, X).save(path)
    assert path.read_text() == "before"
    assert len(list(tmp_path.iterdir())) == 1


# Labels


def test_labels_stand_on_the_edges_instead_of_shapes():
    drawing = fg.viz.graph(lambda x: 2 * x + 1, 3.0).labelled({"x": "three", "a": "six"})
    texts = [node.text for node in ET.fromstring(drawing.svg).iter(f"{SVG}text")]
    assert texts[:3] == ["three", "six", "float"]


def test_labels_are_in_the_language_of_graphviz():
    assert '" six"' in fg.viz.graph(lambda x: 2 * x + 1, 3.0).labelled({"a": "six"}).dot


def test_a_label_of_no_variable_is_refused():
    with pytest.raises(ArgumentError, match="the program has no 'z'") as raised:
        fg.viz.graph(lambda x: 2 * x + 1, 3.0).labelled({"z": "?"})
    assert "a, b, x" in str(raised.value)
