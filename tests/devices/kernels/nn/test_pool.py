"""Poolings agree with the definition, one window at a time, and their gradients with the definition's derivative."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from partita.errors import InvalidArgumentError, PartitaError, UnimplementedError
from partita.graph.ops.nn.windows import walk
from tests.devices.kernels.harness import check_shapes, run, shapes


@dataclass(frozen=True)
class Case:
    """A random pooling over whole numbers, so that maxima are shared by several cells."""

    x: np.ndarray
    attrs: dict[str, Any]

    def windows(self) -> Iterator[tuple[tuple[int, ...], list[tuple[int, ...]]]]:
        """Each output position with the real cells that its window covers, in row-major order."""
        sizes, ksize = self.x.shape[1:-1], self.attrs["ksize"][1:-1]
        strides = self.attrs["strides"][1:-1]
        walks = [walk(n, k, s, 1, self.attrs["padding"]) for n, k, s in zip(sizes, ksize, strides, strict=True)]
        for position in product(*(range(w.output) for w in walks)):
            starts = [p * s - w.before for p, s, w in zip(position, strides, walks, strict=True)]
            ranges = [range(max(a, 0), min(a + k, n)) for a, k, n in zip(starts, ksize, sizes, strict=True)]
            yield position, list(product(*ranges))


def everywhere(cell: tuple[int, ...]) -> tuple[slice | int, ...]:
    """The index of that cell in every image and channel."""
    return (slice(None), *cell)


@st.composite
def cases(draw: st.DrawFn, spatial: int = 2) -> Case:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    window = [draw(st.integers(1, 3)) for _ in range(spatial)]
    sizes = [k + draw(st.integers(0, 3)) for k in window]
    x = rng.integers(-3, 4, (draw(st.integers(1, 2)), *sizes, draw(st.integers(1, 2)))).astype(np.float64)
    strides = [draw(st.integers(1, 3)) for _ in range(spatial)]
    padding = draw(st.sampled_from(["SAME", "VALID"]))
    return Case(x, {"ksize": [1, *window, 1], "strides": [1, *strides, 1], "padding": padding})


def pooled_like(case: Case, op: str, x: np.ndarray | None = None) -> np.ndarray:
    return np.asarray(run(op, case.x if x is None else x, **case.attrs))


@settings(max_examples=40)
@given(cases())
def test_max_pool_is_the_maximum_of_the_real_cells(case: Case) -> None:
    """Padding is never the maximum, not even of negative numbers."""
    got = check_shapes("MaxPool", case.x, **case.attrs)
    for position, cells in case.windows():
        expected = np.max([case.x[everywhere(cell)] for cell in cells], axis=0)
        np.testing.assert_array_equal(got[everywhere(position)], expected)


@settings(max_examples=40)
@given(cases())
def test_average_pool_counts_real_cells_only(case: Case) -> None:
    """The mean is over the cells inside the image, not over the window's size."""
    got = check_shapes("AvgPool", case.x, **case.attrs)
    for position, cells in case.windows():
        expected = np.mean([case.x[everywhere(cell)] for cell in cells], axis=0)
        np.testing.assert_allclose(got[everywhere(position)], expected, atol=1e-12)


@settings(max_examples=40)
@given(cases())
def test_the_first_of_equal_maxima_gets_the_gradient(case: Case) -> None:
    """The first is in row-major order, as in argmax."""
    pooled = pooled_like(case, "MaxPool")
    grad = np.random.default_rng(0).standard_normal(pooled.shape)
    expected, where = np.zeros(case.x.shape), np.zeros(pooled.shape, np.int64)
    for position, cells in case.windows():
        for image, channel in product(range(case.x.shape[0]), range(case.x.shape[-1])):
            values = [case.x[(image, *cell, channel)] for cell in cells]
            winner = (image, *cells[int(np.argmax(values))], channel)
            expected[winner] += grad[(image, *position, channel)]
            where[(image, *position, channel)] = np.ravel_multi_index(winner, case.x.shape)
    np.testing.assert_allclose(check_shapes("MaxPoolGrad", case.x, pooled, grad, **case.attrs), expected, atol=1e-12)
    values, argmax = check_shapes("MaxPoolWithArgmax", case.x, include_batch_in_index=True, **case.attrs)
    np.testing.assert_array_equal(values, pooled)
    np.testing.assert_array_equal(argmax, where)
    again = run("MaxPoolGradWithArgmax", case.x, grad, argmax, include_batch_in_index=True, **case.attrs)
    np.testing.assert_allclose(again, expected, atol=1e-12)


@settings(max_examples=30)
@given(cases())
def test_second_gradient_of_max_pool_is_adjoint_to_the_first(case: Case) -> None:
    """<grad(y), z> == <y, grad of grad(z)>."""
    pooled = pooled_like(case, "MaxPool")
    rng = np.random.default_rng(0)
    y, z = rng.standard_normal(pooled.shape), rng.standard_normal(case.x.shape)
    first = run("MaxPoolGrad", case.x, pooled, y, **case.attrs)
    second = check_shapes("MaxPoolGradGrad", case.x, pooled, z, **case.attrs)
    np.testing.assert_allclose(np.vdot(first, z), np.vdot(y, second), atol=1e-9)


@pytest.mark.parametrize("spatial", [2, 3])
@settings(max_examples=30)
@given(st.data())
def test_average_pool_gradient_is_adjoint(spatial: int, data: st.DataObject) -> None:
    """<pool(x), y> == <x, grad(y)>, for two and three spatial axes."""
    case = data.draw(cases(spatial=spatial))
    name, dtype = ("AvgPool", np.float64) if spatial == 2 else ("AvgPool3D", np.float32)
    x = case.x.astype(dtype)
    pooled = check_shapes(name, x, **case.attrs)
    y = np.random.default_rng(0).standard_normal(pooled.shape).astype(dtype)
    dx = check_shapes(f"{name}Grad", np.array(x.shape, np.int32), y, **case.attrs)
    np.testing.assert_allclose(np.vdot(pooled, y), np.vdot(x, dx), rtol=1e-3, atol=1e-3)


@settings(max_examples=20)
@given(cases(spatial=3))
def test_three_dimensional_gradient_goes_to_every_maximum(case: Case) -> None:
    """TensorFlow compares all cells with the maximum, unlike in two dimensions."""
    x = case.x.astype(np.float32)
    pooled = check_shapes("MaxPool3D", x, **case.attrs)
    got = check_shapes("MaxPool3DGrad", x, pooled, np.ones_like(pooled), **case.attrs)
    expected = np.zeros_like(x)
    for position, cells in case.windows():
        for cell in cells:
            expected[everywhere(cell)] += x[everywhere(cell)] == pooled[everywhere(position)]
    np.testing.assert_array_equal(got, expected)


@given(cases())
@settings(max_examples=15)
def test_window_as_tensors_is_window_as_attrs(case: Case) -> None:
    """MaxPoolV2 and its gradient read window and strides from inputs."""
    window, strides = np.int32(case.attrs["ksize"]), np.int32(case.attrs["strides"])
    padding = case.attrs["padding"]
    pooled = pooled_like(case, "MaxPool")
    np.testing.assert_array_equal(check_shapes("MaxPoolV2", case.x, window, strides, padding=padding), pooled)
    got = run("MaxPoolGradV2", case.x, pooled, pooled, window, strides, padding=padding)
    np.testing.assert_array_equal(got, run("MaxPoolGrad", case.x, pooled, pooled, **case.attrs))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "int64", "float16"])
def test_every_number_type_pools(dtype: str) -> None:
    """The least value of the type stands for padding."""
    x = np.arange(9).reshape(1, 3, 3, 1).astype(dtype)
    got = check_shapes("MaxPool", x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
    np.testing.assert_array_equal(got.ravel(), np.array([4, 5, 7, 8], dtype))


def test_pooling_over_channels() -> None:
    """A window over neighbouring channels must tile them."""
    x = np.arange(8, dtype=np.float32).reshape(1, 1, 2, 4)
    got = check_shapes("MaxPool", x, ksize=[1, 1, 1, 2], strides=[1, 1, 1, 2], padding="VALID")
    np.testing.assert_array_equal(got.ravel(), [1, 3, 5, 7])
    with pytest.raises(UnimplementedError, match="depth window to evenly divide"):
        run("MaxPool", x, ksize=[1, 1, 1, 3], strides=[1, 1, 1, 3], padding="VALID")


@pytest.mark.parametrize(
    ("attrs", "error", "message"),
    [
        ({"ksize": [2, 1, 1, 1]}, UnimplementedError, "Pooling is not yet supported on the batch dimension."),
        ({"ksize": [1, 0, 1, 1]}, InvalidArgumentError, "The specified or inferred ksize is: 1,0,1,1"),
        (
            {"ksize": [1, 2, 1, 2]},
            UnimplementedError,
            "exactly one of pooling across depth or pooling across width/height",
        ),
        ({"ksize": [1, 2, 2]}, InvalidArgumentError, "Sliding window ksize field must specify 4 dimensions"),
    ],
)
def test_windows_that_make_no_sense_are_refused(attrs: dict[str, Any], error: type[PartitaError], message: str) -> None:
    """The error is raised when the kernel is made, before any data arrives."""
    with pytest.raises(error) as caught:
        run("MaxPool", np.ones((2, 2, 2, 4), np.float32), **{"strides": [1, 1, 1, 1], "padding": "VALID"} | attrs)
    assert message in caught.value.message


def test_gradients_of_the_wrong_shape_are_refused() -> None:
    """Both the pooled tensor and the gradient must have the pooled shape."""
    attrs: dict[str, Any] = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    x, wrong = np.ones((1, 4, 4, 1), np.float32), np.ones((1, 1, 1, 1), np.float32)
    with pytest.raises(InvalidArgumentError, match=r"Expected grad shape to be \[1,2,2,1\], but got \[1,1,1,1\]"):
        run("MaxPoolGrad", x, np.ones((1, 2, 2, 1), np.float32), wrong, **attrs)


def test_unknown_sizes_stay_unknown() -> None:
    """Strides are applied to the known sizes."""
    attrs: dict[str, Any] = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    assert shapes("MaxPool", (None, 5, None, 3), **attrs) == [(None, 2, None, 3)]
    assert shapes("AvgPoolGrad", (4,), (1, 2, 2, 3), **attrs) == [(None, None, None, None)]
    assert shapes("MaxPoolV2", (2, 5, 5, 3), (4,), (4,), padding="SAME") == [None]


@settings(max_examples=40)
@given(cases(), st.integers(0, 2**32 - 1))
def test_shares_are_added_in_the_order_of_windows(case: Case, seed: int) -> None:
    """Bit for bit, whether there are more windows or more cells in one."""
    grad = np.random.default_rng(seed).random(pooled_like(case, "AvgPool").shape)
    expected = np.zeros(case.x.shape)
    for position, cells in case.windows():
        for cell in cells:
            expected[everywhere(cell)] += grad[everywhere(position)] * (1 / len(cells))
    np.testing.assert_array_equal(run("AvgPoolGrad", np.array(case.x.shape), grad, **case.attrs), expected)


def test_the_gradient_of_a_huge_window_walks_over_its_few_places() -> None:
    """Cell by cell there would be nine million steps, in nine million cells of padding."""
    attrs: dict[str, Any] = {"ksize": [1, 3001, 3001, 1], "strides": [1, 3, 3, 1], "padding": "SAME"}
    grad = np.ones((1, 2, 2, 1))
    assert run("AvgPoolGrad", np.array([1, 5, 5, 1]), grad, **attrs).tolist() == np.full((1, 5, 5, 1), 4 / 25).tolist()
