"""The package as a whole: which way imports point, what is exported, and what loading it costs."""

import ast
import functools
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import funcgrad as fg

ROOT = Path(fg.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))

# What the modules of each part may import of the package, besides their own part: the arrows of the
# design, from the top down. `None` stands for the public names alone.
ARROWS = {
    "errors": set(),
    "typing": set(),
    "tree": {"errors"},
    "core": {"tree", "errors", "typing"},
    "rules": {"core", "errors", "typing"},
    "transforms": {"core", "tree", "errors", "typing"},  # never rules: no primitive by name
    "staging": {"transforms", "core", "tree", "errors", "typing"},
    "numpy": {"rules", "core", "errors", "typing"},
    # `integrate` and `ndimage` differentiate the user's function, or a formula, by transforms.
    "scipy": {"implicit", "rules", "transforms", "core", "tree", "errors", "typing"},
    "random": {"rules", "core", "tree", "errors", "typing"},
    "implicit": {"transforms", "core", "tree", "errors", "typing"},
    "indexed": {"rules", "core", "errors", "typing"},
    "control": {"transforms", "staging", "core", "tree", "errors", "typing"},
    "debug": {"control", "staging", "transforms", "core", "tree", "errors", "typing"},
    "experimental": {"transforms", "core", "tree", "errors", "typing"},
    "testing": {"transforms", "core", "tree", "errors", "typing"},
    "viz": {"staging", "core", "tree", "errors", "typing"},
    "__main__": {"public", "staging"},
    "nn": None,
    "optim": None,
    "data": None,
    "train": None,
    "serialize": None,
}
# Primitives with a rule of their own that losses and layers are made of; NumPy has no such names.
EXCEPTIONS = {"nn": "funcgrad.rules.nn"}


def part_of(path):
    return path.relative_to(ROOT).with_suffix("").parts[0]


def imports_of(path):
    """Yield (line, dotted name) of everything of the package that a module imports when it runs."""
    for node in ast.walk(without_type_checking(ast.parse(path.read_text(encoding="utf-8")))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = path.relative_to(ROOT.parent).parts[: -node.level]
                base = ".".join([*above, *filter(None, [base])])
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"


def without_type_checking(tree):
    """Drop the blocks that only a type checker reads."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    return tree


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_imports_point_down(path):
    part = part_of(path)
    if part == "__init__":
        return  # the public names
    assert part in ARROWS, "a new part: draw its arrows"
    allowed = ARROWS[part]
    for line, name in imports_of(path):
        names = name.split(".")
        if names[0] != "funcgrad":
            continue
        target = names[1] if len(names) > 1 else "public"
        if target == part:
            continue
        where = f"{path.relative_to(ROOT).as_posix()}:{line} imports {name}"
        if part in EXCEPTIONS and f"{name}.".startswith(f"{EXCEPTIONS[part]}."):
            continue
        if allowed is None:
            assert target in {"public", *fg.__all__}, where
            assert len(names) <= 3, f"{where}, from the inside of {target}"
        else:
            assert target in allowed, where


def test_the_arrows_have_no_cycle():
    order = []
    remaining = {part: set(targets or ()) for part, targets in ARROWS.items()}
    while remaining:
        free = [part for part, targets in remaining.items() if not targets & remaining.keys()]
        assert free, remaining
        order += free
        for part in free:
            del remaining[part]
    assert order[0] == "errors"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_module_says_what_it_is_for(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not tree.body or ast.get_docstring(tree)


# The public names


def public_objects():
    for name in fg.__all__:
        value = getattr(fg, name)
        if inspect.ismodule(value):
            for inner in getattr(value, "__all__", ()):
                yield f"{name}.{inner}", getattr(value, inner)
        else:
            yield name, value


PUBLIC = dict(public_objects())


def test_names_that_are_promised_exist():
    transforms = {"grad", "value_and_grad", "vjp", "jvp", "linearize", "stop_gradient"}
    parts = {"errors", "nn", "numpy", "optim", "random", "testing", "tree"}
    assert transforms | parts | {"at", "pytree", "static"} <= set(fg.__all__)
    assert list(fg.__all__) == sorted(fg.__all__)


def test_dir_lists_the_public_names():
    assert set(fg.__all__) <= set(dir(fg))


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'colour'"):
        fg.colour  # noqa: B018 - the access is the test


@pytest.mark.parametrize("name", PUBLIC)
def test_public_name_has_a_docstring(name):
    value = PUBLIC[name]
    if not (inspect.isclass(value) or inspect.isroutine(value)) or is_numpys(value):
        return
    doc = inspect.getdoc(value)
    assert doc, "no docstring"
    first = doc.splitlines()[0]
    assert first.endswith("."), first


def is_numpys(value):
    return (getattr(value, "__module__", None) or "numpy").split(".")[0] != "funcgrad"


@pytest.mark.parametrize("name", PUBLIC)
def test_public_function_is_annotated(name):
    value = PUBLIC[name]
    if not inspect.isfunction(value) or is_numpys(value):
        return
    signature = inspect.signature(value)
    assert signature.return_annotation is not inspect.Signature.empty
    for parameter in signature.parameters.values():
        assert parameter.annotation is not inspect.Parameter.empty, parameter.name


@pytest.mark.parametrize("transform", [fg.grad, fg.value_and_grad, fg.vjp, fg.jvp, fg.linearize])
def test_transform_has_the_sections_of_numpydoc(transform):
    doc = inspect.getdoc(transform)
    sections = ["Parameters", "Returns", "Raises", "Examples"]
    places = [doc.index(f"\n{section}\n{'-' * len(section)}\n") for section in sections]
    assert places == sorted(places)


# What it costs to load


@functools.cache
def modules_of(code):
    """Return the modules that a fresh interpreter has loaded after `code`."""
    code += "\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT.parent,
    )
    return frozenset(json.loads(done.stdout))


def test_import_loads_little_beside_numpy():
    added = modules_of("import numpy, funcgrad") - modules_of("import numpy")
    foreign = {name.split(".")[0] for name in added} - {"funcgrad"}
    # Small ones of the standard library, most of them in C.
    small = {"__future__", "_string", "cmath", "string", "threading", "opcode", "_opcode"}
    assert foreign <= small | {"importlib"}


def test_import_leaves_alone_what_only_a_part_needs():
    loaded = modules_of("import funcgrad")
    for name in ("attr", "attrs", "scipy", "dataclasses", "typing_extensions", "numpy.ma"):
        assert name not in loaded or name in modules_of("import numpy"), name
    for part in ("nn", "optim", "testing", "random", "numpy"):
        assert f"funcgrad.{part}" not in loaded, part


def test_rules_load_none_of_those_for_scipy():
    loaded = modules_of("import funcgrad.rules")
    assert "funcgrad.rules.linalg.eigen" in loaded
    assert not [name for name in loaded if name.startswith(("scipy", "funcgrad.rules.scipy"))]


def test_rules_of_a_part_of_scipy_load_no_others():
    loaded = modules_of("import funcgrad.scipy.special")
    parts = {name.split(".")[3] for name in loaded if name.startswith("funcgrad.rules.scipy.")}
    assert parts - {"adopt"} == {"special"}


def test_differentiating_loads_what_it_takes_and_nothing_more():
    use = "import numpy as np, funcgrad as fg\nfg.grad(lambda x: np.sum(np.sin(x) * x))(np.ones(3))"
    added = modules_of(use) - modules_of("import numpy, funcgrad")
    parts = {name.split(".")[1] for name in added if name.startswith("funcgrad.")}
    assert parts == {"core", "errors", "rules", "transforms", "tree"}
    assert not {"attr", "attrs", "scipy", "dataclasses"} & added


@pytest.mark.parametrize("part", ["nn", "optim", "testing", "random", "numpy"])
def test_part_loads_when_it_is_named(part):
    assert f"funcgrad.{part}" in modules_of(f"import funcgrad\nfuncgrad.{part}")
    assert f"funcgrad.{part}" in modules_of(f"import funcgrad.{part}")


def test_package_is_typed():
    assert (ROOT / "py.typed").exists()
