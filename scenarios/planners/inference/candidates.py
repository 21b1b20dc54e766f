"""Which layouts and batches a search looks at, and which of them a model and a cluster do not allow, by reason.

Rules(llama 8B, machine of 8 GPUs, prompt=2048)
    candidates({}, (1, 8))         tp 1, 2, 4, 8; pp and ep divide the other devices; each with both batches
    candidates({"tp": (8, 3)}, None)      impossible {"tp does not divide heads": 20}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from attrs import frozen

from ....errors import InvalidArgumentError
from ....graph.suggestions import suggestion
from ...models.nearest import nearest_where, or_text
from ..machine import Machine
from .passages import ReplicaLayout
from .rank import ServedModel

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
"""sequences of a replica that are tried where nobody says how many"""
AXES = ("tp", "pp", "ep")
LayoutValues: TypeAlias = "Mapping[str, int | Sequence[int]]"
"""values by axis, of those that are fixed: {"tp": 8, "pp": (1, 2)}"""


@frozen
class Candidates:
    """Rows of a search, and how many others there are by reason."""

    rows: tuple[tuple[ReplicaLayout, int], ...]
    impossible: Mapping[str, int]


@frozen
class Rules:
    """What a model with prompts of so many tokens allows on a machine."""

    model: ServedModel
    machine: Machine
    prompt: int

    def candidates(self, fixed: LayoutValues, batches: Sequence[int] | None) -> Candidates:
        """All rows; InvalidArgumentError, with the nearest that works, where none is possible."""
        given = {name: _numbers(name, values) for name, values in fixed.items()}
        for name in given:
            if name not in AXES:
                raise InvalidArgumentError(
                    f"split: inference has no axis {name!r}{suggestion(name, AXES)}; replicas fill the cluster"
                )
        sizes = BATCHES if batches is None else _numbers("batch", batches)
        every = [(layout, batch) for layout in dict.fromkeys(self._layouts(given)) for batch in sizes]
        reasons = [self.broken(*row) for row in every]
        rows = tuple(row for row, reason in zip(every, reasons, strict=True) if reason is None)
        if not rows:
            raise self._nothing_possible(*every[0])
        return Candidates(rows, Counter(reason for reason in reasons if reason is not None))

    def broken(self, layout: ReplicaLayout, batch: int) -> str | None:
        """The first rule that a row breaks; None where it is possible."""
        return next((reason for reason, is_broken in self._rules(layout, batch) if is_broken), None)

    def _rules(self, layout: ReplicaLayout, batch: int) -> Iterator[tuple[str, bool]]:
        tp, pp, ep = layout
        yield "tp * pp * ep is more than the devices", layout.devices > self.machine.devices
        yield "there are more stages than layers", pp > self.model.layers
        for name, size in self.model.cut_by_tensor_parallel.items():
            yield f"tp does not divide {name}", size % tp != 0
        shared = self.model.shared_heads or 1
        yield "tp is neither a divisor nor a multiple of kv_heads", shared % tp != 0 and tp % shared != 0
        experts = self.model.shared_by_expert_parallel
        yield "the model has no experts for ep", ep > 1 and not experts
        for name, size in experts.items():
            yield f"ep does not divide {name}", size % ep != 0
        yield "tp does not divide the batch, which the way to experts parts", bool(experts) and batch % tp != 0
        yield "tp does not divide the prompt, which the way to experts parts", bool(experts) and self.prompt % tp != 0

    def _layouts(self, given: Mapping[str, Sequence[int]]) -> Iterator[ReplicaLayout]:
        """Layouts whose replicas fill the cluster, but for axes that are given."""
        devices, experts = self.machine.devices, next(iter(self.model.shared_by_expert_parallel.values()), 1)
        for tp in given.get("tp") or _divisors(self.machine.per_host):
            for pp in given.get("pp") or _divisors(devices // tp):
                for ep in given.get("ep") or _divisors(devices // (tp * pp), experts):
                    yield ReplicaLayout(tp, pp, ep)

    def _nothing_possible(self, layout: ReplicaLayout, batch: int) -> InvalidArgumentError:
        """Why a row is impossible, with the nearest number of an axis, or the nearest batch, that makes it possible."""
        reason, devices = self.broken(layout, batch), self.machine.devices
        for axis in AXES:
            near = nearest_where(getattr(layout, axis), range(1, devices + 1), self._works(layout, batch, axis))
            if near:
                return InvalidArgumentError(f"{axis}={getattr(layout, axis)}: {reason}; give {axis}={or_text(near)}")
        return InvalidArgumentError(f"{layout.text} with batch={batch}: {reason}; fix fewer axes")

    def _works(self, layout: ReplicaLayout, batch: int, axis: str) -> Callable[[int], bool]:
        """Whether a row is possible with another number along an axis."""
        return lambda size: self.broken(layout._replace(**{axis: size}), batch) is None


def _divisors(of: int, most: int | None = None) -> list[int]:
    """Ascending, up to a number; 1 alone of 0."""
    return [1, *(size for size in range(2, min(of, most or of) + 1) if of % size == 0)]


def _numbers(name: str, values: int | Sequence[int]) -> tuple[int, ...]:
    numbers = (values,) if isinstance(values, int) else tuple(dict.fromkeys(values))
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise InvalidArgumentError(f"{name}={number!r} is no positive number; give 1 or more")
    if not numbers:
        raise InvalidArgumentError(f"{name} has no values; give one or more, or leave it out")
    return numbers
