"""How a sliding window moves over an axis: sizes and padding of convolutions, poolings and their gradients.

(output - 1) * stride + reach <= input + before + after, where reach is the extent of the dilated window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....errors import InvalidArgumentError

LAYOUTS_2D = ("NHWC", "NCHW")
LAYOUTS_3D = ("NDHWC", "NCDHW")


@dataclass(frozen=True, slots=True)
class WindowAxis:
    """One axis of a sliding window: `output` positions over an input padded by `before` and `after`."""

    output: int
    before: int
    after: int


def walk(
    size: int, window: int, stride: int, dilation: int, padding: str, explicit: tuple[int, int] = (0, 0)
) -> WindowAxis:
    """The positions of a window along one axis, by TensorFlow's rules (see the documentation of `tf.nn.convolution`).

    SAME pads so that the output has ceil(size / stride) positions, the odd cell after; VALID pads nothing; EXPLICIT
    pads as given. InvalidArgumentError when the window does not fit even once.
    """
    reach = (window - 1) * dilation + 1
    if padding == "SAME":
        output = -(-size // stride)
        total = max((output - 1) * stride + reach - size, 0)
        return WindowAxis(output, total // 2, total - total // 2)
    before, after = explicit if padding == "EXPLICIT" else (0, 0)
    output = (size + before + after - reach + stride) // stride
    if output < 0:
        raise InvalidArgumentError(
            f"Computed output size would be negative: {output} "
            f"[input_size: {size}, effective_filter_size: {reach}, stride: {stride}]"
        )
    return WindowAxis(output, before, after)


def output_size(
    size: int | None, window: int | None, stride: int, dilation: int, padding: str, explicit: tuple[int, int] = (0, 0)
) -> int | None:
    """`walk(...).output` where the sizes are known; SAME does not need the window.

    InvalidArgumentError when the window is larger than the padded input, also where a kernel would give an empty
    output.
    """
    if size is None or (window is None and padding != "SAME"):
        return None
    reach = ((window or 1) - 1) * dilation + 1
    padded = size + (sum(explicit) if padding == "EXPLICIT" else 0)
    if padding != "SAME" and reach > padded:
        raise InvalidArgumentError(f"Negative dimension size caused by subtracting {reach} from {padded}")
    return walk(size, window or 1, stride, dilation, padding, explicit).output


def joint_output_sizes(
    sizes: Sequence[int | None],
    window: Sequence[int | None],
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: str,
) -> tuple[int | None, ...]:
    """`walk(...).output` of each axis, for ops of which TensorFlow infers all sizes or none."""
    if None in (*sizes, *window):
        return (None,) * len(sizes)
    axes = zip(sizes, window, strides, dilations, strict=True)
    return tuple(walk(n or 0, k or 0, s, d, padding).output for n, k, s, d in axes)


@dataclass(frozen=True, slots=True)
class WindowAttrs:
    """The attrs that conv and pool ops share, per spatial axis; `layout` is a string such as "NHWC"."""

    layout: str
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    padding: str
    explicit: tuple[tuple[int, int], ...]
    raw_strides: tuple[int, ...]
    raw_dilations: tuple[int, ...]

    @property
    def rank(self) -> int:
        """Number of axes including batch and channels."""
        return len(self.layout)

    @property
    def channel_axis(self) -> int:
        """The axis of the channels."""
        return self.layout.index("C")

    @property
    def spatial_axes(self) -> tuple[int, ...]:
        """The spatial axes, in order."""
        return tuple(axis for axis, letter in enumerate(self.layout) if letter not in "NC")

    def spatial(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The entries of `values` (one per axis) that belong to spatial axes."""
        return tuple(values[axis] for axis in self.spatial_axes)

    def assemble(self, batch: Any, spatial: Sequence[Any], channels: Any) -> tuple[Any, ...]:
        """A shape in this layout."""
        inner = list(spatial)
        return tuple(batch if x == "N" else channels if x == "C" else inner.pop(0) for x in self.layout)


def window_attrs(attrs: Mapping[str, Any], default_layout: str = "NHWC") -> WindowAttrs:
    """Reads strides, dilations, padding, explicit_paddings and data_format; raises TensorFlow's errors about them."""
    layout = attrs.get("data_format", default_layout.encode()).decode()
    if layout not in LAYOUTS_2D + LAYOUTS_3D:
        raise InvalidArgumentError(f"Invalid data format: {layout}")
    rank = len(layout)
    strides = tuple(attrs["strides"])
    dilations = tuple(attrs.get("dilations") or (1,) * rank)
    if len(strides) != rank:
        raise InvalidArgumentError(f"Sliding window strides field must specify {rank} dimensions")
    if len(dilations) != rank:
        raise InvalidArgumentError(f"Sliding window dilations field must specify {rank} dimensions")
    axes = [axis for axis, letter in enumerate(layout) if letter not in "NC"]
    if any(strides[axis] <= 0 for axis in axes):
        raise InvalidArgumentError("Row and column strides should be larger than 0.")
    if any(dilations[axis] <= 0 for axis in axes):
        raise InvalidArgumentError("Dilated rates should be larger than 0.")
    padding = attrs["padding"].decode()
    pads = _explicit_paddings(padding, tuple(attrs.get("explicit_paddings", ())), rank)
    spatial_strides, spatial_dilations = (tuple(v[axis] for axis in axes) for v in (strides, dilations))
    return WindowAttrs(
        layout, spatial_strides, spatial_dilations, padding, tuple(pads[axis] for axis in axes), strides, dilations
    )


def _explicit_paddings(padding: str, values: tuple[int, ...], rank: int) -> list[tuple[int, int]]:
    if padding != "EXPLICIT":
        if values:
            raise InvalidArgumentError(
                "explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT"
            )
        return [(0, 0)] * rank
    if len(values) != 2 * rank:
        raise InvalidArgumentError(
            f"explicit_paddings attribute must contain {2 * rank} values, but got: {len(values)}"
        )
    if min(values) < 0:
        raise InvalidArgumentError("All elements of explicit_paddings must be nonnegative")
    return [(values[2 * axis], values[2 * axis + 1]) for axis in range(rank)]
