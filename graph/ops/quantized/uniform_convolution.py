"""What the attrs of a convolution of uniformly quantised tensors say: axes, strides, dilations and padding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....errors import InvalidArgumentError
from ..xla.dimension_numbers import ConvNumbers, uniform_conv_numbers


@dataclass(frozen=True, slots=True)
class Layout:
    """One number per spatial axis of each kind; `explicit` has the padding (low, high) of all axes in turn."""

    numbers: ConvNumbers
    strides: Sequence[int]
    spreads: Sequence[int]
    """distances of the cells of the image"""
    dilations: Sequence[int]
    """distances of the cells of the window"""
    padding: str
    explicit: Sequence[int]

    @classmethod
    def of(cls, attrs: Mapping[str, Any], rank: int) -> Layout:
        """Reads the attrs for tensors of that rank; InvalidArgumentError for lists of another length."""
        ones = (1,) * (rank - 2)
        names = ("window_strides", "lhs_dilation", "rhs_dilation")
        kinds = [tuple(attrs[name]) or ones for name in names]
        for name, kind in zip(names, kinds, strict=True):
            if len(kind) != len(ones) or any(size < 1 for size in kind):
                raise InvalidArgumentError(f"{name} must be {len(ones)} positive numbers, got {list(kind)}")
        padding, explicit = attrs["padding"].decode(), tuple(attrs["explicit_padding"])
        if padding not in ("SAME", "VALID", "EXPLICIT"):
            raise InvalidArgumentError(f"padding must be one of SAME, VALID, EXPLICIT, got {padding}")
        if padding == "EXPLICIT" and len(explicit) != 2 * len(ones):
            raise InvalidArgumentError(f"explicit_padding must have {2 * len(ones)} numbers, got {len(explicit)}")
        strides, spreads, dilations = kinds
        numbers = uniform_conv_numbers(attrs["dimension_numbers"], rank)
        return cls(numbers, strides, spreads, dilations, padding, explicit)

    def widths(self, image: Sequence[int], window: Sequence[int]) -> list[tuple[int, int]]:
        """The padding of each spatial axis; the sizes are those of the spatial axes."""
        if self.padding == "EXPLICIT":
            return list(zip(self.explicit[::2], self.explicit[1::2], strict=True))
        if self.padding == "VALID":
            return [(0, 0)] * len(image)
        totals = []
        for axis, stride in enumerate(self.strides):
            size, reach = self._spread(axis, image), self._reach(axis, window)
            totals.append(max((-(-size // stride) - 1) * stride + reach - size, 0))
        return [(total // 2, total - total // 2) for total in totals]

    def counts(self, image: Sequence[int], window: Sequence[int]) -> list[int]:
        """The number of windows along each spatial axis."""
        result = []
        for axis, (low, high) in enumerate(self.widths(image, window)):
            room = self._spread(axis, image) + low + high - self._reach(axis, window)
            result.append(room // self.strides[axis] + 1 if room >= 0 else 0)
        return result

    def _spread(self, axis: int, image: Sequence[int]) -> int:
        return max(image[axis] - 1, 0) * self.spreads[axis] + (image[axis] > 0)

    def _reach(self, axis: int, window: Sequence[int]) -> int:
        return (window[axis] - 1) * self.dilations[axis] + 1
