"""Convolutions agree with a direct float64 loop, and their gradients are their adjoints."""

from __future__ import annotations

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
    """A random convolution; arrays are channels last and hold float64."""

    x: np.ndarray
    w: np.ndarray
    attrs: dict[str, Any]


@st.composite
def cases(draw: st.DrawFn, spatial: int = 2, depthwise: bool = False, dilated: bool = True) -> Case:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    window = [draw(st.integers(1, 3)) for _ in range(spatial)]
    stride = draw(st.integers(1, 3))
    strides = [stride if depthwise else draw(st.integers(1, 3)) for _ in range(spatial)]
    dilations = [draw(st.integers(1, 2)) if dilated else 1 for _ in range(spatial)]
    sizes = [(k - 1) * d + draw(st.integers(1, 4)) for k, d in zip(window, dilations, strict=True)]
    groups, depth = (1 if depthwise else draw(st.integers(1, 2))), draw(st.integers(1, 3))
    features = draw(st.integers(1, 2)) * groups
    x = rng.standard_normal((draw(st.integers(1, 2)), *sizes, depth * groups))
    w = rng.standard_normal((*window, depth, features))
    attrs = {
        "strides": [1, *strides, 1],
        "dilations": [1, *dilations, 1],
        "padding": draw(st.sampled_from(["SAME", "VALID"])),
    }
    return Case(x, w, attrs)


def direct(case: Case, depthwise: bool = False) -> np.ndarray:
    """The definition, one output number at a time."""
    x, w = case.x, case.w
    strides, dilations = case.attrs["strides"][1:-1], case.attrs["dilations"][1:-1]
    walks = [
        walk(n, k, s, d, case.attrs["padding"])
        for n, k, s, d in zip(x.shape[1:-1], w.shape[:-2], strides, dilations, strict=True)
    ]
    depth, features = w.shape[-2:]
    groups = x.shape[-1] // depth
    channels = depth * features if depthwise else features
    y = np.zeros((x.shape[0], *(a.output for a in walks), channels))
    for image, feature in product(range(x.shape[0]), range(channels)):
        for position in product(*(range(a.output) for a in walks)):
            for tap in product(*map(range, w.shape[:-2])):
                parts = zip(position, strides, tap, dilations, walks, strict=True)
                cell = tuple(p * s + t * d - a.before for p, s, t, d, a in parts)
                if any(not 0 <= c < n for c, n in zip(cell, x.shape[1:-1], strict=True)):
                    continue
                if depthwise:
                    channel = feature // features
                    y[(image, *position, feature)] += (
                        x[(image, *cell, channel)] * w[(*tap, channel, feature % features)]
                    )
                else:
                    first = feature // (features // groups) * depth
                    y[(image, *position, feature)] += x[(image, *cell)][first : first + depth] @ w[tap][:, feature]
    return y


@settings(max_examples=40)
@given(cases())
def test_conv2d_is_the_direct_sum(case: Case) -> None:
    """Any window, stride, dilation, padding and number of groups."""
    np.testing.assert_allclose(check_shapes("Conv2D", case.x, case.w, **case.attrs), direct(case), atol=1e-9)


@settings(max_examples=25)
@given(cases(spatial=3))
def test_conv3d_is_the_direct_sum(case: Case) -> None:
    """The same arithmetic on three spatial axes."""
    np.testing.assert_allclose(check_shapes("Conv3D", case.x, case.w, **case.attrs), direct(case), atol=1e-9)


@settings(max_examples=30)
@given(cases(depthwise=True))
def test_depthwise_conv_is_the_direct_sum(case: Case) -> None:
    """Each channel is combined with its own filters only."""
    got = check_shapes("DepthwiseConv2dNative", case.x, case.w, **case.attrs)
    np.testing.assert_allclose(got, direct(case, depthwise=True), atol=1e-9)


def assert_adjoint(case: Case, op: str, input_op: str, filter_op: str) -> None:
    """<conv(x, w), y> == <x, input gradient of y> == <w, filter gradient of y> for any y."""
    out = run(op, case.x, case.w, **case.attrs)
    y = np.random.default_rng(0).standard_normal(out.shape)
    dx = check_shapes(input_op, np.array(case.x.shape, np.int32), case.w, y, **case.attrs)
    dw = check_shapes(filter_op, case.x, np.array(case.w.shape, np.int32), y, **case.attrs)
    assert dx.shape == case.x.shape
    assert dw.shape == case.w.shape
    np.testing.assert_allclose(np.vdot(case.x, dx), np.vdot(out, y), atol=1e-8)
    np.testing.assert_allclose(np.vdot(case.w, dw), np.vdot(out, y), atol=1e-8)


@settings(max_examples=40)
@given(cases())
def test_conv2d_gradients_are_adjoint(case: Case) -> None:
    """Linear maps have one adjoint, so the identity pins both gradients."""
    assert_adjoint(case, "Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter")


@settings(max_examples=25)
@given(cases(spatial=3))
def test_conv3d_gradients_are_adjoint(case: Case) -> None:
    """Also on three spatial axes."""
    assert_adjoint(case, "Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2")


@settings(max_examples=30)
@given(cases(depthwise=True))
def test_depthwise_gradients_are_adjoint(case: Case) -> None:
    """Also channel by channel."""
    name = "DepthwiseConv2dNative"
    assert_adjoint(case, name, f"{name}BackpropInput", f"{name}BackpropFilter")


@settings(max_examples=20)
@given(cases())
def test_channels_first_is_the_same_convolution(case: Case) -> None:
    """NCHW permutes axes of input and output and nothing else."""
    attrs: dict[str, Any] = {
        key: [v[0], v[3], v[1], v[2]] if isinstance(v, list) else v for key, v in case.attrs.items()
    }
    moved = run("Conv2D", np.moveaxis(case.x, -1, 1), case.w, data_format="NCHW", **attrs)
    np.testing.assert_allclose(np.moveaxis(moved, 1, -1), run("Conv2D", case.x, case.w, **case.attrs))


def test_explicit_padding_is_padding_by_hand() -> None:
    """Two numbers per axis, before and after."""
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((1, 4, 5, 2)), rng.standard_normal((3, 2, 2, 3))
    padded = np.pad(x, [(0, 0), (1, 2), (0, 3), (0, 0)])
    got = check_shapes(
        "Conv2D", x, w, strides=[1, 2, 1, 1], padding="EXPLICIT", explicit_paddings=[0, 0, 1, 2, 0, 3, 0, 0]
    )
    np.testing.assert_allclose(got, run("Conv2D", padded, w, strides=[1, 2, 1, 1], padding="VALID"))


def test_patches_of_many_images_are_made_in_batches() -> None:
    """More images than fit the patch budget give what each image gives alone."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((9, 64, 64, 4)).astype(np.float32)
    w = rng.standard_normal((5, 5, 4, 2)).astype(np.float32)
    whole = run("Conv2D", x, w, strides=[1, 1, 1, 1], padding="SAME")
    alone = run("Conv2D", x[8:], w, strides=[1, 1, 1, 1], padding="SAME")
    np.testing.assert_allclose(whole[8:], alone, rtol=1e-5, atol=1e-4)


def test_an_empty_batch_gives_an_empty_result() -> None:
    """Nothing in, nothing out, with the right shape."""
    x, w = np.ones((0, 3, 3, 4), np.float32), np.ones((2, 2, 4, 2), np.float32)
    got = check_shapes("Conv2D", x, w, strides=[1, 1, 1, 1], padding="VALID")
    assert got.shape == (0, 2, 2, 2)


@pytest.mark.parametrize("window", [(0, 2, 4, 2), (2, 2, 4, 0)])
def test_an_empty_filter_is_refused(window: tuple[int, int, int, int]) -> None:
    """TensorFlow refuses a zero in any of its sizes."""
    with pytest.raises(InvalidArgumentError, match="filter must not have zero elements"):
        run("Conv2D", np.ones((1, 3, 3, 4)), np.ones(window), strides=[1, 1, 1, 1], padding="VALID")


@pytest.mark.parametrize(
    ("x", "w", "attrs", "error", "message"),
    [
        ((2, 3), (1, 1, 3, 3), {}, InvalidArgumentError, "convolution input must be 4-dimensional: [2,3]"),
        ((1, 3, 3, 3), (1, 1, 3), {}, InvalidArgumentError, "convolution filter must be 4-dimensional: [1,1,3]"),
        (
            (1, 3, 3, 3),
            (1, 1, 2, 3),
            {},
            InvalidArgumentError,
            "input depth must be evenly divisible by filter depth: 3 vs 2",
        ),
        (
            (1, 3, 3, 4),
            (5, 5, 4, 4),
            {},
            InvalidArgumentError,
            "Computed output size would be negative: -1 [input_size: 3, effective_filter_size: 5, stride: 1]",
        ),
        (
            (1, 3, 3, 4),
            (1, 1, 4, 4),
            {"strides": [2, 1, 1, 1]},
            UnimplementedError,
            "Current implementation does not yet support strides in the batch and depth dimensions.",
        ),
        (
            (1, 3, 3, 4),
            (1, 1, 4, 4),
            {"strides": [1, 0, 1, 1]},
            InvalidArgumentError,
            "Row and column strides should be larger than 0.",
        ),
    ],
)
def test_what_does_not_fit_is_named(
    x: tuple[int, ...], w: tuple[int, ...], attrs: dict[str, Any], error: type[PartitaError], message: str
) -> None:
    """The message is TensorFlow's."""
    with pytest.raises(error) as caught:
        run(
            "Conv2D",
            np.ones(x, np.float32),
            np.ones(w, np.float32),
            **{"strides": [1, 1, 1, 1], "padding": "VALID"} | attrs,
        )
    assert caught.value.message == message


def test_a_gradient_of_the_wrong_size_is_refused() -> None:
    """The gradient must have the size of the convolution's output."""
    with pytest.raises(
        InvalidArgumentError, match="Size of out_backprop doesn't match computed: actual = 3, computed = 2"
    ):
        run(
            "Conv2DBackpropInput",
            np.array([1, 3, 3, 2], np.int32),
            np.ones((2, 2, 2, 4), np.float32),
            np.ones((1, 3, 3, 4), np.float32),
            strides=[1, 1, 1, 1],
            padding="VALID",
        )


def test_unknown_sizes_stay_unknown() -> None:
    """SAME needs no window to tell a size; VALID does."""
    attrs = {"strides": [1, 2, 2, 1]}
    assert shapes("Conv2D", (None, 5, 5, 3), None, padding="SAME", **attrs) == [(None, 3, 3, None)]
    assert shapes("Conv2D", (None, 5, None, 3), (3, None, 3, 4), padding="VALID", **attrs) == [(None, 2, None, 4)]
    with pytest.raises(InvalidArgumentError, match="Negative dimension size caused by subtracting 5 from 3"):
        shapes("Conv2D", (1, 3, 3, 3), (5, 5, 3, 3), padding="VALID", **attrs)


def test_the_inferred_batch_of_an_input_gradient_is_that_of_what_flows_back() -> None:
    """In Conv2D it is the gradient's batch; in other ops it is the one in the sizes."""
    sizes = np.array([3, 7, 7, 2], np.int32)
    attrs: dict[str, Any] = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    y = (None, 7, 7, 4)
    assert shapes("Conv2DBackpropInput", sizes, (2, 2, 2, 4), y, **attrs) == [(None, 7, 7, 2)]
    assert shapes("DepthwiseConv2dNativeBackpropInput", sizes, (2, 2, 2, 2), y, **attrs) == [(3, 7, 7, 2)]


def test_convolutions_of_any_rank() -> None:
    """As Conv2D or Conv3D; all batch axes count as one."""
    rng = np.random.default_rng(0)
    x, w, cube = rng.normal(size=(2, 3, 6, 5, 2)), rng.normal(size=(3, 2, 2, 4)), rng.normal(size=(2, 3, 2, 2, 4))
    flat = run("Conv2D", x.reshape(6, 6, 5, 2), w, strides=[1, 2, 1, 1], padding="SAME")
    got = check_shapes("Conv", x, w, strides=[1, 2, 1, 1], padding="SAME", batch_dims=2)
    np.testing.assert_array_equal(got, flat.reshape(2, 3, *flat.shape[1:]))
    solid = check_shapes("Conv", x, cube, strides=[1] * 5, padding="VALID")
    np.testing.assert_array_equal(solid, run("Conv3D", x, cube, strides=[1] * 5, padding="VALID"))
    with pytest.raises(InvalidArgumentError, match="Grouped/Depthwise Convolutions are not supported yet"):
        run("Conv", x[0], w, strides=[1] * 4, padding="SAME", groups=2)


def test_convolutions_of_mirrored_images() -> None:
    """As MirrorPad, after ResizeBilinear where a size is given, and then Conv2D."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 6, 7, 3)).astype(np.float32), rng.normal(size=(2, 3, 3, 4)).astype(np.float32)
    border, size = np.array([[0, 0], [1, 2], [2, 1], [0, 0]], np.int32), np.array([9, 8], np.int32)
    attrs: dict[str, Any] = {"strides": [1, 2, 2, 1], "padding": "VALID"}
    got = check_shapes("FusedPadConv2D", x, border, w, mode="SYMMETRIC", **attrs)
    np.testing.assert_array_equal(got, run("Conv2D", run("MirrorPad", x, border, mode="SYMMETRIC"), w, **attrs))
    got = check_shapes("FusedResizeAndPadConv2D", x, size, border, w, mode="REFLECT", **attrs)
    resized = run("MirrorPad", run("ResizeBilinear", x, size), border, mode="REFLECT")
    np.testing.assert_array_equal(got, run("Conv2D", resized, w, **attrs))
