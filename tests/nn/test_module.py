"""`Module`: classes of models as pytrees."""

import copy
import dataclasses
import inspect
import pickle
from abc import abstractmethod
from typing import ClassVar, Generic, TypeVar

import attrs
import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import ArgumentError, MutationError

T = TypeVar("T")


class Affine(fg.nn.Module):
    weight: np.ndarray
    bias: np.ndarray
    name: str = fg.static(default="affine")

    def __call__(self, x):
        return x @ self.weight + self.bias


class Scaled(fg.nn.Module):
    inner: Affine
    factor: float
    tags: list = attrs.field(factory=list)
    kind: ClassVar[str] = "scaled"

    def __init__(self, size):
        self.inner = Affine(np.ones((size, size)), np.zeros(size))
        self.factor = 2.0

    def __call__(self, x):
        return self.factor * self.inner(x)


def test_fields_are_leaves_and_static_fields_are_structure():
    leaves, treedef = fg.tree.flatten(Affine(1.0, 2.0, "a"))
    assert leaves == [1.0, 2.0]
    assert treedef != fg.tree.structure(Affine(1.0, 2.0, "b"))


def test_the_gradient_is_a_model():
    x = np.array([1.0, 2.0])
    grads = fg.grad(lambda model: np.sum(model(x)))(Scaled(2))
    assert isinstance(grads, Scaled)
    assert grads.factor == 6.0
    np.testing.assert_array_equal(grads.inner.weight, [[2.0, 2.0], [4.0, 4.0]])
    np.testing.assert_array_equal(grads.inner.bias, [2.0, 2.0])


def test_a_model_is_a_function_for_vmap():
    model = Scaled(2)
    x = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(fg.vmap(model)(x), model(x))


def test_what_init_leaves_unset_has_its_default():
    first, second = Scaled(1), Scaled(1)
    assert first.tags == []
    assert first.tags is not second.tags


def test_a_subclass_inherits_fields_and_init():
    class Shifted(Scaled):
        def __call__(self, x):
            return super().__call__(x) + 1

    model = Shifted(2)
    assert fg.tree.leaves_with_path(model)[-1][1] == 2.0
    np.testing.assert_array_equal(model(np.ones(2)), [5.0, 5.0])


def test_a_subclass_adds_fields_to_the_made_init():
    class Named(Affine):
        extra: float = 0.0

    assert fg.tree.leaves(Named(1.0, 2.0, extra=3.0)) == [1.0, 2.0, 3.0]


def test_class_variables_are_no_fields():
    assert Scaled.kind == "scaled"
    assert len(fg.tree.leaves(Scaled(1))) == 3


def test_abstract_methods_must_be_written():
    class Abstract(fg.nn.Module):
        @abstractmethod
        def __call__(self, x): ...

    with pytest.raises(TypeError, match="abstract"):
        Abstract()


def test_replace_shares_the_rest():
    model = Affine(np.ones(2), np.zeros(2))
    changed = model.replace(bias=None)
    assert changed.bias is None
    assert changed.weight is model.weight
    assert model.bias is not None


def test_replace_refuses_unknown_fields():
    with pytest.raises(ArgumentError, match="Affine has no field 'wieght'"):
        Affine(1.0, 2.0).replace(wieght=3.0)


def test_a_field_cannot_be_set_after_init():
    model = Affine(1.0, 2.0)
    with pytest.raises(MutationError, match=r"model\.replace\(bias=\.\.\.\)"):
        model.bias = 3.0
    with pytest.raises(MutationError, match="deleted"):
        del model.bias


def test_a_field_cannot_be_set_after_an_init_that_failed():
    held = []

    class Failing(fg.nn.Module):
        x: float

        def __init__(self):
            held.append(self)
            raise KeyError("no")

    with pytest.raises(KeyError):
        Failing()
    with pytest.raises(MutationError):
        held[0].x = 1.0


def test_init_sets_declared_fields_only():
    class Wrong(fg.nn.Module):
        x: float

        def __init__(self):
            self.y = 1.0

    with pytest.raises(MutationError, match="Wrong has no field 'y'"):
        Wrong()


def test_init_must_set_every_field():
    class Unset(fg.nn.Module):
        x: float

        def __init__(self):
            pass

    with pytest.raises(ArgumentError, match=r"Unset\.__init__ has not set the field 'x'"):
        Unset()


def test_equality_is_by_content():
    model = Affine(np.ones(2), np.zeros(2))
    assert model == Affine(np.ones(2), np.zeros(2))
    assert model != Affine(np.ones(2), np.ones(2))
    assert model != Affine(np.ones(2), np.zeros(2), "other")
    assert hash(model) == hash(Affine(np.zeros(2), np.ones(2)))


@pytest.mark.parametrize(
    "clone", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))]
)
def test_copies_are_equal_and_frozen(clone):
    model = Scaled(2)
    made = clone(model)
    assert made == model
    with pytest.raises(MutationError):
        made.factor = 1.0


def test_repr_has_shapes_and_counts():
    assert repr(Affine(np.ones((2, 2)), np.ones(2, np.float32))) == (
        "Affine(weight=float64[2,2], bias=float32[2], name='affine')  # 6 parameters"
    )


def test_a_long_repr_takes_a_line_for_each_layer():
    class Net(fg.nn.Module):
        layers: tuple
        activation: object = fg.static(default=np.tanh)

    layer = Affine(np.ones((64, 64), np.float32), np.ones(64, np.float32), "a layer with a name")
    assert repr(Net((layer, layer))).splitlines() == [
        "Net(",
        "  layers=(",
        "    Affine(weight=float32[64,64], bias=float32[64], name='a layer with a name'),"
        "  # 4,160 parameters",
        "    Affine(weight=float32[64,64], bias=float32[64], name='a layer with a name'),"
        "  # 4,160 parameters",
        "  ),",
        "  activation=tanh,",
        ")  # 8,320 parameters",
    ]


def test_a_traced_model_prints():
    seen = []
    fg.grad(lambda model: seen.append(repr(model)) or np.sum(model.bias))(
        Affine(np.ones(1), np.ones(2))
    )
    assert seen == ["Affine(weight=float64[1], bias=float64[2], name='affine')  # 3 parameters"]


def test_a_field_without_default_may_follow_if_init_is_written():
    class Longer(Affine):
        scale: float

        def __init__(self):
            super().__init__(1.0, 2.0)
            self.scale = 3.0

    assert fg.tree.leaves(Longer()) == [1.0, 2.0, 3.0]


def test_a_field_without_default_after_one_with_is_named():
    with pytest.raises(ArgumentError, match="a field of Longer without a default"):

        class Longer(Affine):
            scale: float


def test_post_init_runs_and_may_set_fields():
    class Doubled(fg.nn.Module):
        weight: float

        def __post_init__(self):
            self.weight = 2 * self.weight

    assert Doubled(3.0).weight == 6.0
    assert Doubled(3.0).replace(weight=1.0).weight == 1.0


def test_a_generic_module_is_subscripted():
    class Box(fg.nn.Module, Generic[T]):
        value: T

    assert Box[float](3.0) == Box(3.0)


@pytest.mark.parametrize("default", [[], {}, set()])
def test_a_default_that_all_would_share_is_refused(default):
    with pytest.raises(ArgumentError, match="all instances of Shared would share one"):
        type(fg.nn.Module)("Shared", (fg.nn.Module,), {"__annotations__": {"x": int}, "x": default})


def test_the_dataclass_decorator_is_refused():
    with pytest.raises(ArgumentError, match="Point is a Module, and no dataclass"):

        @dataclasses.dataclass
        class Point(fg.nn.Module):
            x: float


def test_fields_of_dataclasses_are_refused():
    with pytest.raises(ArgumentError, match=r"Point\.x is a dataclasses\.field"):

        class Point(fg.nn.Module):
            x: float = dataclasses.field(default=1.0)


def test_the_signature_is_that_of_init():
    assert list(inspect.signature(Affine).parameters) == ["weight", "bias", "name"]
    assert list(inspect.signature(fg.nn.Linear).parameters)[-1] == "key"
    assert list(inspect.signature(Affine(1.0, 2.0)).parameters) == ["x"]


def test_layers_that_look_alike_are_written_once():
    model = fg.nn.Sequential([Affine(np.ones((9, 9)), np.ones(9)) for _ in range(300)])
    assert repr(model) == (
        "Sequential(\n"
        "  layers=(\n"
        "    Affine(weight=float64[9,9], bias=float64[9], name='affine'),  # 90 parameters\n"
        "    # and 299 more like it\n"
        "  ),\n"
        ")  # 27,000 parameters"
    )
