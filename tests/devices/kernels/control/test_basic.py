"""Constants, pass-through ops, placeholders and assertions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

from partita.devices.kernels.registry import lookup
from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import check_shapes, construct, run, shapes
from tests.devices.kernels.random_arrays import arrays, same, texts

X = np.arange(6, dtype=np.float32).reshape(2, 3)
PASS_THROUGH = ("Identity", "StopGradient", "PreventGradient", "Snapshot", "DeepCopy")


@given(arrays())
def test_what_passes_through_is_unchanged(x: Array) -> None:
    for op in PASS_THROUGH:
        assert same(check_shapes(op, x), x)
    first, second = check_shapes("IdentityN", [x, X])
    assert same(first, x)
    assert same(second, X)
    assert same(run("IdentityN", [x]), x)


def test_a_constant_is_decoded_once_and_is_the_same_object_each_time() -> None:
    factory = lookup("Const")
    assert factory is not None
    for value in (X, np.asarray(np.float32(1)), texts(b"a")):
        kernel = factory(
            construct("Const", value=value, dtype=DataType.STRING if value.dtype == "O" else DataType.FLOAT)
        )
        assert kernel() is kernel()
        assert same(kernel(), value)


def test_a_constant_of_another_type_than_declared_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="Inconsistency"):
        run("Const", value=X, dtype=DataType.INT32)


@pytest.mark.parametrize(
    ("shape", "promise"),
    [((2, None), " and shape [2,?]"), ((0,), " and shape [0]"), ((), ""), (None, "")],
)
def test_a_placeholder_that_runs_says_what_to_feed(shape: Any, promise: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        run("Placeholder", name="x", dtype=DataType.FLOAT, shape=shape)
    assert caught.value.message == f"You must feed a value for placeholder tensor 'x' with dtype float{promise}"


def test_ops_without_outputs_return_nothing() -> None:
    assert run("NoOp") is None
    assert run("ControlTrigger") is None
    assert run("Assert", np.bool_(True), [X]) is None


@pytest.mark.parametrize("shape", [(2, 3), (None, 3), (None, None)])
def test_ensure_shape_lets_what_fits_through(shape: Any) -> None:
    assert check_shapes("EnsureShape", X, shape=shape) is X


def test_ensure_shape_without_a_rank_fits_all_when_it_runs() -> None:
    """TensorFlow's shape function refuses it where the input has a rank; its kernel does not mind."""
    assert run("EnsureShape", X, shape=None) is X
    with pytest.raises(InvalidArgumentError, match="Shape must be rank -1 but is rank 2"):
        check_shapes("EnsureShape", X, shape=None)


def test_ensure_shape_refuses_the_rest() -> None:
    with pytest.raises(InvalidArgumentError, match=r"\[2,3\] is not compatible with expected shape \[3,\?\]"):
        run("EnsureShape", X, shape=(3, None))
    with pytest.raises(InvalidArgumentError):
        run("EnsureShape", X, shape=(None,))


@pytest.mark.parametrize(
    ("most", "text"),
    [
        (3, "[[0 1 2]...] [[[0 1 2...]]...] [hi] [1] [0.1 2.5 1e+20] [0.333333343]"),
        (5, "[[0 1 2][3 4...]...] [[[0 1 2 3][4...]]...] [hi] [1] [0.1 2.5 1e+20] [0.333333343]"),
        (-1, "[[0 1 2][3 4 5]] [[[0 1 2 3][4 5 6 7]]] [hi] [1] [0.1 2.5 1e+20] [0.333333343]"),
    ],
)
def test_a_failed_assertion_shows_the_first_elements(most: int, text: str) -> None:
    data = [
        X,
        np.arange(8).reshape(1, 2, 4),
        np.array(b"hi", object),
        np.bool_(True),
        np.array([0.1, 2.5, 1e20]),
        np.float32(1 / 3),
    ]
    with pytest.raises(InvalidArgumentError) as caught:
        run("Assert", np.bool_(False), data, summarize=most)
    assert caught.value.message == f"assertion failed: {text}"


def test_shapes_of_control_flow_say_only_what_is_certain() -> None:
    assert shapes("Switch", (2, None), ()) == [(2, None), (2, None)]
    assert shapes("Merge", [(2, 3), (2, 4)]) == [(2, None), ()]
    assert shapes("Merge", [(2, 3), (2,)]) == [None, ()]
    assert shapes("Merge", [(2, 3), None]) == [None, ()]
    assert shapes("Enter", (2,), frame_name="f") == [None]
    assert shapes("Enter", (2,), frame_name="f", is_constant=True) == [(2,)]
    assert shapes("Exit", (2,)) == [(2,)]


def test_shapes_of_placeholders_are_those_promised() -> None:
    assert shapes("Placeholder", dtype=DataType.FLOAT, shape=(None, 2)) == [(None, 2)]
    assert shapes("PlaceholderWithDefault", (3, 2), shape=(None, 2)) == [(None, 2)]
    with pytest.raises(InvalidArgumentError):
        shapes("PlaceholderWithDefault", (3, 3), shape=(None, 2))


def test_truth_is_of_scalars_a_value_and_of_other_tensors_a_size() -> None:
    """As in TensorFlow, which has no truth of half, unsigned or complex scalars."""
    for value in (np.float32(-2), np.float64(np.nan), np.int8(1), np.uint8(1), np.True_, np.array(b"0", object)):
        assert check_shapes("ToBool", value) == np.True_
    for nothing in (np.float32(-0.0), np.int64(0), np.False_, np.array(b"", object), np.zeros((1, 0), np.float32)):
        assert check_shapes("ToBool", nothing) == np.False_
    assert check_shapes("ToBool", np.zeros((1, 1), np.float16)) == np.True_
    with pytest.raises(InvalidArgumentError, match="half cannot be converted to a boolean"):
        run("ToBool", np.float16(2))
