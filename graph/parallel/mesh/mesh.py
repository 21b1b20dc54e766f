"""The grid of devices of a parallel run: pipeline, data, context and tensor parallelism, in the order of ranks.

    mesh = Mesh(pp=2, dp=2, cp=1, tp=4)             rank = ((pp * DP + dp) * CP + cp) * TP + tp
    mesh.group("tp", 5)      (4, 5, 6, 7)           ranks that share the layers of stage 0 and the batch of dp 1
    mesh.group("dp", 5)      (1, 5)                 ranks with the same weights and another part of the batch
    mesh.position("tp", 5)   1
    mesh.text                "pp:2,dp:2,cp:1,tp:4"

Expert parallelism is no axis of its own: experts are shared out over `ep` neighbours of dp. "ep" are these neighbours,
"edp" the ranks of dp that have the same experts; "ep" and "edp" together are "dp". Axes are joined by "+": the group of
"dp+cp" has all ranks that differ in dp or cp alone. "dp:2" are groups of 2 neighbours along dp, "dp/2" the ranks that
have the same place in such groups; "edp" can be cut so too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import NamedTuple

from ....errors import InvalidArgumentError

_BITS = {"tp": 1, "cp": 2, "edp": 4, "ep": 8, "dp": 12, "pp": 16}
"""the parts of the rank that an axis varies; "dp" has those of "edp" and "ep" """


class _Axes(NamedTuple):
    """What the group of joined axes varies: bits of whole axes, and the part of an axis ("dp", ":" or "/", 2)."""

    bits: int
    part: tuple[str, str, int] | None

    @property
    def number(self) -> int:
        """A number that no other axes have."""
        if self.part is None:
            return self.bits
        name, mark, size = self.part
        return self.bits + 32 * (4 * size + 2 * (name == "edp") + (mark == "/"))


def axis_names(axes: str) -> frozenset[str]:
    """The axes that joined ones vary: "dp" for "edp" and for parts of it too."""
    names = (axis.partition(mark)[0] for axis in axes.split("+") for mark in (":" if ":" in axis else "/",))
    return frozenset("dp" if name == "edp" else name for name in names)


class Coordinates(NamedTuple):
    """The place of a rank along each axis."""

    pp: int
    dp: int
    cp: int
    tp: int


@dataclass(frozen=True, slots=True)
class Mesh:
    """Sizes of the axes; `ep` divides `dp`. Raises InvalidArgumentError for others."""

    pp: int = 1
    dp: int = 1
    cp: int = 1
    tp: int = 1
    ep: int = 1

    def __post_init__(self) -> None:
        for name in ("pp", "dp", "cp", "tp", "ep"):
            size = getattr(self, name)
            if not isinstance(size, int) or isinstance(size, bool) or size < 1:
                raise InvalidArgumentError(f"{name}={size!r} is no size of an axis; give a number of at least 1")
        if self.dp % self.ep:
            fitting = ", ".join(str(n) for n in range(1, self.dp + 1) if self.dp % n == 0)
            raise InvalidArgumentError(f"ep={self.ep} does not divide dp={self.dp}; choose one of {fitting}")

    @classmethod
    def parse(cls, text: str) -> Mesh:
        """The mesh of a text such as "pp:2,dp:4,cp:1,tp:8"; InvalidArgumentError for anything else."""
        sizes: dict[str, int] = {}
        for part in text.split(","):
            name, _, size = part.strip().partition(":")
            if name not in ("pp", "dp", "cp", "tp", "ep") or name in sizes or not size.isdecimal():
                raise InvalidArgumentError(f"{text!r} is no mesh; write pp:2,dp:4,cp:1,tp:8 (and ,ep:2 for experts)")
            sizes[name] = int(size)
        return cls(**sizes)

    @property
    def text(self) -> str:
        """The sizes as text, which `parse` reads."""
        experts = f",ep:{self.ep}" if self.ep > 1 else ""
        return f"pp:{self.pp},dp:{self.dp},cp:{self.cp},tp:{self.tp}{experts}"

    @property
    def devices(self) -> int:
        """The number of ranks."""
        return self.pp * self.per_stage

    @property
    def per_stage(self) -> int:
        """The number of ranks of one stage of the pipeline, whose programs are alike."""
        return self.dp * self.cp * self.tp

    def rank(self, place: Coordinates) -> int:
        """The rank at some coordinates."""
        return ((place.pp * self.dp + place.dp) * self.cp + place.cp) * self.tp + place.tp

    def coordinates(self, rank: int) -> Coordinates:
        """Where a rank is; InvalidArgumentError for one that there is not."""
        if not 0 <= rank < self.devices:
            raise InvalidArgumentError(f"mesh {self.text} has no rank {rank}; its ranks are 0 to {self.devices - 1}")
        rest, tp = divmod(rank, self.tp)
        rest, cp = divmod(rest, self.cp)
        pp, dp = divmod(rest, self.dp)
        return Coordinates(pp, dp, cp, tp)

    def size(self, axes: str) -> int:
        """How many ranks a group along some axes has."""
        return prod(len(values) for values in self._along(self._axes(axes), Coordinates(0, 0, 0, 0)))

    def group(self, axes: str, rank: int) -> tuple[int, ...]:
        """The ranks that differ from a rank along these axes alone, itself included, in order."""
        return tuple(self._members(self._axes(axes), rank))

    def position(self, axes: str, rank: int) -> int:
        """The place of a rank in its group, from 0."""
        return self.group(axes, rank).index(rank)

    def key(self, axes: str, rank: int) -> int:
        """A number from 1 on for the group of a rank, which no other group along other axes has either."""
        own = self._axes(axes)
        return 1 + own.number * self.devices + next(self._members(own, rank))

    def _members(self, axes: _Axes, rank: int) -> Iterator[int]:
        along = self._along(axes, self.coordinates(rank))
        return (self.rank(Coordinates(*place)) for place in product(*along))

    def _along(self, axes: _Axes, at: Coordinates) -> tuple[range, range, range, range]:
        """What each coordinate runs over in the group of a place."""
        bits = axes.bits
        over_dp = self._over_dp(bits & _BITS["dp"], at.dp)
        if axes.part is not None:
            name, mark, size = axes.part
            whole = self._over_dp(_BITS[name], at.dp)
            place = whole.index(at.dp)
            over_dp = whole[place - place % size :][:size] if mark == ":" else whole[place % size :: size]
        return (
            range(self.pp) if bits & _BITS["pp"] else range(at.pp, at.pp + 1),
            over_dp,
            range(self.cp) if bits & _BITS["cp"] else range(at.cp, at.cp + 1),
            range(self.tp) if bits & _BITS["tp"] else range(at.tp, at.tp + 1),
        )

    def _over_dp(self, bits: int, dp: int) -> range:
        """What dp runs over in a group along "edp", "ep", both or neither."""
        experts = dp - dp % self.ep
        return {
            0: range(dp, dp + 1),
            _BITS["edp"]: range(dp % self.ep, self.dp, self.ep),
            _BITS["ep"]: range(experts, experts + self.ep),
            _BITS["dp"]: range(self.dp),
        }[bits]

    def _axes(self, axes: str) -> _Axes:
        """What axes are joined; InvalidArgumentError for text that names none."""
        bits, part = 0, None
        for axis in axes.split("+"):
            mark = next((mark for mark in ":/" if mark in axis), "")
            name, _, size = axis.partition(mark) if mark else (axis, "", "")
            if name not in _BITS or (mark and (name not in ("dp", "edp") or not size.isdecimal() or part is not None)):
                raise InvalidArgumentError(f"{axes!r} are no axes; join some of {', '.join(_BITS)} by +, or dp:2, dp/2")
            if not mark:
                bits |= _BITS[name]
                continue
            whole = len(self._over_dp(_BITS[name], 0))
            if not int(size) or whole % int(size):
                raise InvalidArgumentError(f"{axis!r}: {whole} ranks of {name} have no groups of {size}")
            part = name, mark, int(size)
        if part is not None and bits & _BITS["dp"]:
            raise InvalidArgumentError(f"{axes!r}: part of an axis and all of it; join it with other axes")
        return _Axes(bits, part)
