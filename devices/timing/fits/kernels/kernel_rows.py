"""Runs of one family of kernels in columns: what was run, and what its time may depend on.

A family is a subclass, and all that a fit, a file, a validation and a cost need to know of it:

    texts    {"dtype": ("bf16", "bf16", "fp8")}            one of `TEXTS["dtype"]` each
    counts   {"m": [8, 64, 8], "n": [4096, ...], ...}      whole numbers
    group    ("bf16", "bf16", "fp8")                       rows of one group share numbers and a surface
    formula  floor + soft maximum of operations by rate and bytes by bandwidth, numbers as shares of the datasheet
    features log2 sizes, idle SMs, ...                     what the formula's error may depend on

Numbers are dimensionless or in ns, so that they mean the same on another GPU: 0.8 of its peak rate, 2,000 ns.

Formula and surface are of the kernel alone. Where a measurement holds more, such as a host's launch, a family says how
(`timed_ns`, `shown_ns`; see `launched.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from .....errors import InvalidArgumentError
from .....graph.arrays import Floats, Numbers
from ....spec import DeviceSpec
from ..layers import counts as counted, one_of
from ..sourced import Unit

T = TypeVar("T")
LEAST_SPREAD = 0.04
"""half of the 80 % interval, in log time, between two devices of one datasheet: about what B200 and GB200 show"""
KernelTexts = Mapping[str, Sequence[str]]
KernelCounts = Mapping[str, Sequence[int] | NDArray[Any]]  # Any: integers of every width


class FitNumber(NamedTuple):
    """A number that is fitted for each device and group: its name and unit ("" for a share), where the search begins
    and between what it stays; all above 0."""

    name: str
    unit: Unit
    start: float
    least: float
    most: float


class KernelRows(ABC):
    """Columns of runs of one family.

    `PART` is the name of its table in `[fits]`, `WHAT` says in errors what the rows are, `FORMULA` in explanations what
    the time is made of. `SPREAD` is half of the 80 % interval, in log time, that a time transferred from other devices
    has at least: from leaving each device out. Where the nearest of them is nearer than `NEAR` (natural logs of the
    datasheets' ratio) it is less (`spread_at`). A donor counts 1/e of one that is nearer by `DECAY`. `LAUNCH_SPREAD` is
    the least half of the interval of a transferred measurement that shows only the launch. Numbers are fitted to at
    most `NUMBER_ROWS` rows, with errors of more than `ROBUST_BEYOND`, in log time, counting less than their squares;
    with `HAS_RELATIVE_ERRORS` an error is said / measured - 1 instead of its log, so that the lower ones of times that
    scatter much are met.
    """

    PART: ClassVar[str]
    WHAT: ClassVar[str]
    FORMULA: ClassVar[str] = "the formula of the kernel"
    TEXTS: ClassVar[Mapping[str, Sequence[str]]] = {}
    COUNTS: ClassVar[Sequence[str]]
    NUMBERS: ClassVar[Sequence[FitNumber]]
    SPREAD: ClassVar[float] = 0.35
    NEAR: ClassVar[float] = 0.0
    DECAY: ClassVar[float] = 1.0
    KEPT_ROWS: ClassVar[int] = 110
    """rows of the surface of a group, which a file holds"""
    LIKELIHOOD_ROWS: ClassVar[int] = 200
    """rows of a group that the lengths of its surface are the likeliest of"""
    ROBUST_BEYOND: ClassVar[float] = 0.1
    HAS_RELATIVE_ERRORS: ClassVar[bool] = False
    NUMBER_ROWS: ClassVar[int] = 200
    LAUNCH_SPREAD: ClassVar[float] = 0.0

    def __init__(self, texts: KernelTexts, counts: KernelCounts) -> None:
        """InvalidArgumentError for a text that is not known, a count below 1, and columns of unequal length."""
        self._made: dict[Hashable, object] = {}
        rows = len(next(iter({**texts, **counts}.values())))
        self.texts = {name: one_of(texts[name], known, name) for name, known in self.TEXTS.items()}
        self.counts: dict[str, Numbers] = {name: counted(counts[name], name, rows) for name in self.COUNTS}
        for name, column in self.texts.items():
            if len(column) != rows:
                raise InvalidArgumentError(f"{name} has {len(column)} rows, others have {rows}; give one each")

    def __len__(self) -> int:
        return len(next(iter(self.counts.values())))

    def take(self, rows: NDArray[Any]) -> Self:  # Any: numbers or a mask
        """Some of the rows, by number or by a mask."""
        texts = {name: tuple(np.array(column, dtype=object)[rows]) for name, column in self.texts.items()}
        return type(self)(texts, {name: column[rows] for name, column in self.counts.items()})

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """The rows of all parts, one after another."""
        texts = {name: tuple(text for part in parts for text in part.texts[name]) for name in cls.TEXTS}
        return cls(texts, {name: np.concatenate([part.counts[name] for part in parts]) for name in cls.COUNTS})

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` returns, made once for these rows under that key: a fit asks a thousand times about the same."""
        if key not in self._made:
            self._made[key] = make()
        return cast(T, self._made[key])

    @classmethod
    def spread_at(cls, distance: float) -> float:
        """Half of the interval that a transfer adds, from a device whose datasheet is that far away."""
        if cls.NEAR == 0:
            return cls.SPREAD
        return float(np.hypot(LEAST_SPREAD, cls.SPREAD * -np.expm1(-((distance / cls.NEAR) ** 2))))

    def of_type(self, name: str, value: str) -> NDArray[np.bool_]:
        """Which rows have that text."""
        return np.array([text == value for text in self.texts[name]], dtype=np.bool_)

    def size(self, name: str) -> Floats:
        """A column of counts as floats."""
        return self.counts[name].astype(np.float64)

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The group of each row: its texts, unless a family says otherwise."""
        return tuple("/".join(texts) for texts in zip(*self.texts.values(), strict=True)) or ("all",) * len(self)

    @property
    def ranged(self) -> Mapping[str, Numbers]:
        """The sizes of which a fit keeps the range; beyond it the surface fades and the interval widens."""
        return self.counts

    @property
    @abstractmethod
    def flops(self) -> Floats:
        """Operations by row, a multiply-add as two."""

    @property
    @abstractmethod
    def bytes(self) -> Floats:
        """Bytes that have to be read and written, by row."""

    @abstractmethod
    def datasheet_ns(self, spec: DeviceSpec) -> Floats:
        """What a datasheet alone says: the longer of operations by peak rate and bytes by bandwidth, by row."""

    @abstractmethod
    def formula_ns(self, numbers: Sequence[float], spec: DeviceSpec) -> Floats:
        """The kernel's time by row, all rows being of one group; `numbers` are those of `NUMBERS`, in their order."""

    def timed_ns(self, kernel_ns: Floats, numbers: Sequence[float], spec: DeviceSpec) -> Floats:
        """What a measurement says of kernels that take `kernel_ns`: that time, unless it holds more than the kernel."""
        return kernel_ns

    def shown_ns(self, time_ns: Floats, formula_ns: Floats, numbers: Sequence[float], spec: DeviceSpec) -> Floats:
        """The kernel's time in a measured one, NaN where the measurement does not show it; the inverse of `timed_ns`.

        `formula_ns` is what the formula says of the kernel.
        """
        return time_ns

    def launch_share(self, kernel_ns: Floats, numbers: Sequence[float], spec: DeviceSpec) -> Floats:
        """By row the share of what is measured that has nothing to do with the kernel: all where it is hidden."""
        is_hidden = self.timed_ns(0.99 * kernel_ns, numbers, spec) == self.timed_ns(kernel_ns, numbers, spec)
        return np.where(is_hidden, 1.0, 0.0)

    @classmethod
    def floor_ns(cls, spec: DeviceSpec) -> float:
        """The least time of a kernel on the device; 0 where the formula knows it from measurements."""
        return 0.0

    @classmethod
    def has_surface(cls, group: str) -> bool:
        """Whether the formula leaves something for a surface to learn in that group."""
        return True

    @abstractmethod
    def features(self, spec: DeviceSpec) -> dict[str, Floats]:
        """What the formula's error may depend on, by name a column; rows of all groups have the same names."""
