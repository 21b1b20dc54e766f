"""Windows that slide over images, as convolutions and pools see them: the sizes that their rules need.

Sizes are computed from the image and the window alone. What TensorFlow's estimator does not know stays unknown here:
dilations count as 1, and explicit padding as "SAME".
"""

from __future__ import annotations

from typing import NamedTuple

from .....graph.dtypes import Dims
from ....kernels.op_cost import CostContext
from .count import text


class Windows(NamedTuple):
    """An image of `batch` x `height` x `width` x `depth`, its windows, and how many of them fit each way."""

    batch: int
    height: int
    width: int
    depth: int
    window_height: int
    window_width: int
    stride_height: int
    stride_width: int
    out_height: int
    out_width: int

    @property
    def positions(self) -> int:
        """Windows of all images."""
        return self.batch * self.out_height * self.out_width

    @property
    def pixels(self) -> int:
        """Pixels of all images."""
        return self.batch * self.height * self.width

    @property
    def window(self) -> int:
        """Pixels of a window."""
        return self.window_height * self.window_width

    @property
    def overlap(self) -> bool:
        """Whether neighbouring windows share pixels."""
        return self.window_height > self.stride_height or self.window_width > self.stride_width


def axes(c: CostContext) -> tuple[int, int, int]:
    """The axes of height, width and depth; ValueError for layouts other than NHWC and NCHW."""
    layout = text(c, "data_format", "NHWC")
    if layout not in ("NHWC", "NCHW"):
        raise ValueError(f"layout {layout!r} has no rule")
    return layout.index("H"), layout.index("W"), layout.index("C")


def windows(c: CostContext, image: Dims, window: tuple[int, int]) -> Windows:
    """Windows of a height and width over an image, by the op's strides and padding."""
    height, width, depth = axes(c)
    strides = c.attrs["strides"]
    out_height, out_width = (
        _outputs(image[axis], size, strides[axis], text(c, "padding"))
        for axis, size in zip((height, width), window, strict=True)
    )
    sides = image[0], image[height], image[width], image[depth]
    return Windows(*sides, *window, strides[height], strides[width], out_height, out_width)


def _outputs(size: int, window: int, stride: int, padding: str) -> int:
    """Positions of a window along one axis."""
    return (size - window) // stride + 1 if padding == "VALID" else -(-size // stride)
