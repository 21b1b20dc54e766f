"""Rotary positions: how fast each pair of elements turns, with the scalings that stretch a context.

    Rope(theta=500000.0).frequencies(128)      64 angles per position, in radians: theta ** (-2 k / 128)
    Rope(kind="linear", factor=4.0)            all of them divided by 4
    Rope(kind="llama3", ...)                   slow ones divided, fast ones kept, a ramp between
    Rope(kind="yarn", ...)                     the same by the number of turns in the original context

Formulas: Su et al.: RoFormer, 2021; Chen et al.: Extending Context Window by Positional Interpolation, 2023 (linear);
Grattafiori et al.: The Llama 3 Herd of Models, 2024, and its published code (llama3); Peng et al.: YaRN, 2023, and
DeepSeek-V2's code for `mscale` (yarn).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log, pi
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidArgumentError, UnimplementedError
from ...graph.suggestions import suggestion

RopeKind: TypeAlias = Literal["default", "linear", "llama3", "yarn"]
"""how the angles of a longer context follow from those of the original one"""

_RUN_TIME_KINDS = {
    "dynamic": "its angles depend on the length of the sequence at run time",
    "longrope": "its angles depend on the length of the sequence at run time",
}


@dataclass(frozen=True, slots=True)
class Rope:
    """Rotary positions of a model.

    theta                  base of the angles
    kind                   "default", "linear", "llama3" or "yarn"
    factor                 how many times longer than the original the context is
    low_frequency_factor, high_frequency_factor    llama3: turns in the original context below which angles are divided,
                           and above which they are kept
    original_positions     llama3, yarn: length of the original context
    beta_fast, beta_slow   yarn: turns in the original context above which angles are kept, below which they are divided
    mscale, mscale_all_dim yarn: weights of ln(factor) in `attention_scale` and in `softmax_factor`; 0 is not given
    attention_factor       yarn: `attention_scale`, in place of what follows from the factor
    truncate               yarn: the ramp begins and ends at whole elements

    Raises InvalidArgumentError for a kind that does not exist and numbers that make no angles, UnimplementedError for
    kinds whose angles depend on the length at run time ("dynamic", "longrope").
    """

    theta: float = 10000.0
    kind: RopeKind = "default"
    factor: float = 1.0
    low_frequency_factor: float = 1.0
    high_frequency_factor: float = 4.0
    original_positions: int = 0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    mscale: float = 0.0
    mscale_all_dim: float = 0.0
    attention_factor: float | None = None
    truncate: bool = True

    def __post_init__(self) -> None:
        kinds = get_args(RopeKind)
        if self.kind in _RUN_TIME_KINDS:
            raise UnimplementedError(f"rope kind {self.kind!r}: {_RUN_TIME_KINDS[self.kind]}; use {', '.join(kinds)}")
        if self.kind not in kinds:
            raise InvalidArgumentError(f"rope kind {self.kind!r} does not exist{suggestion(self.kind, kinds)}")
        if self.theta <= 1 or self.factor <= 0:
            raise InvalidArgumentError(f"rope theta={self.theta} must be above 1 and factor={self.factor} above 0")
        if self.kind in ("llama3", "yarn") and self.original_positions < 1:
            raise InvalidArgumentError(
                f"rope kind {self.kind!r} needs original_positions, the length it was trained with"
            )
        if self.kind == "llama3" and self.high_frequency_factor <= self.low_frequency_factor:
            raise InvalidArgumentError(
                f"rope: high_frequency_factor={self.high_frequency_factor} must be above "
                f"low_frequency_factor={self.low_frequency_factor}"
            )

    def frequencies(self, size: int) -> NDArray[np.float64]:
        """Radians per position for each pair of `size` rotated elements: float64 [size / 2], falling.

        Raises InvalidArgumentError for an odd size.
        """
        if size < 2 or size % 2:
            raise InvalidArgumentError(f"rotary size {size} is no even number; give one")
        plain: NDArray[np.float64] = self.theta ** (-np.arange(0, size, 2, dtype=np.float64) / size)
        match self.kind:
            case "default":
                return plain
            case "linear":
                return plain / self.factor
            case "llama3":
                return self._mixed(plain, self._llama3_kept(plain))
            case "yarn":
                return self._mixed(plain, self._yarn_kept(size))

    @property
    def attention_scale(self) -> float:
        """What cosines and sines are multiplied with; 1 but for yarn."""
        if self.kind != "yarn":
            return 1.0
        if self.attention_factor is not None:
            return self.attention_factor
        if self.mscale and self.mscale_all_dim:
            return self._growth(self.mscale) / self._growth(self.mscale_all_dim)
        return self._growth(1.0)

    @property
    def softmax_factor(self) -> float:
        """What latent attention multiplies its scale with: growth(mscale_all_dim) squared; 1 but for yarn."""
        return self._growth(self.mscale_all_dim) ** 2 if self.kind == "yarn" and self.mscale_all_dim else 1.0

    def _growth(self, weight: float) -> float:
        return 0.1 * weight * log(self.factor) + 1.0 if self.factor > 1 else 1.0

    def _mixed(self, plain: NDArray[np.float64], kept: NDArray[np.float64]) -> NDArray[np.float64]:
        """`kept` of each angle as it is, the rest of it divided by the factor."""
        mixed: NDArray[np.float64] = plain * (kept + (1 - kept) / self.factor)
        return mixed

    def _llama3_kept(self, plain: NDArray[np.float64]) -> NDArray[np.float64]:
        turns = self.original_positions * plain / (2 * pi)
        width = self.high_frequency_factor - self.low_frequency_factor
        kept: NDArray[np.float64] = np.clip((turns - self.low_frequency_factor) / width, 0.0, 1.0)
        return kept

    def _yarn_kept(self, size: int) -> NDArray[np.float64]:
        """1 up to the pair that makes `beta_fast` turns, 0 from the one that makes `beta_slow`, a ramp between."""
        low, high = self._pair_of_turns(self.beta_fast, size), self._pair_of_turns(self.beta_slow, size)
        if self.truncate:
            low, high = floor(low), ceil(high)
        low, high = max(low, 0), min(high, size - 1)
        width = high - low or 0.001  # a step, not a division by 0
        kept: NDArray[np.float64] = 1 - np.clip((np.arange(size // 2) - low) / width, 0.0, 1.0)
        return kept

    def _pair_of_turns(self, turns: float, size: int) -> float:
        """The index of the pair that turns so often in the original context."""
        return size * log(self.original_positions / (turns * 2 * pi)) / (2 * log(self.theta))


DEFAULT_ROPE = Rope()
"""base 10,000, no scaling"""
