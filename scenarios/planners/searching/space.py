"""What a search tries: the values of each axis, and in words what that leaves out.

    SearchSpace(model, 2048, global_batch=512, devices=64, per_host=8, asked=asked(None, None))
        values("tp")           (1, 2, 4, 8)
        values("microbatch")   (1, 2, 4, 8, 16)
        interleaves(pp=8)      (1, 2, 3, 4, 6)        of 96 layers
        assumptions            "tp divides the 8 GPUs of a host", ...

An axis that a caller fixed has the values given, whatever the rules here say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from attrs import frozen

from ...models.description import ModelDescription
from ..configurations import RECOMPUTATIONS
from .axes import CHOICES, DEFAULTS, AskedAxes, values_text

LEAST_TOKENS = 1024
"""of a sequence that a context-parallel rank has: of fewer the products are too small to be worth the exchange"""
MOST_TOKENS = 32768
"""of a micro-batch: larger products are no faster, and there are fewer micro-batches to fill a pipeline with"""
MOST_INTERLEAVE = 8
"""stages a rank: with so many, a bubble is an eighth of what it was"""


@frozen(slots=False, eq=False)
class SearchSpace:
    """A model, the tokens of a sequence, the sequences of a step, and `devices` GPUs of which a host has `per_host`."""

    model: ModelDescription
    sequence_length: int
    global_batch: int
    devices: int
    per_host: int
    asked: AskedAxes
    trains: bool = True

    @cached_property
    def rows(self) -> int | None:
        """The rows of a sequence; None for a model without sequences."""
        return self.model.rows_of(self.sequence_length)

    def values(self, axis: str) -> tuple[int, ...]:
        """What is tried of an axis, whatever the other axes have."""
        given = self.asked.values(axis)
        return self._searched[axis] if given is None else given

    def expert_ranks(self, dp: int) -> tuple[int, ...]:
        """What is tried of ep with so many dp ranks."""
        given = self.asked.values("ep")
        if given is not None:
            return given
        return _divisors(dp) if self.model.shared_by_expert_parallel else (1,)

    def interleaves(self, pp: int) -> tuple[int, ...]:
        """What is tried of interleave with so many pp ranks: stages of equal layers where there can be such."""
        given = self.asked.values("interleave")
        if given is not None:
            return given
        layers = self.model.layers
        most = min(MOST_INTERLEAVE, layers // pp) if pp > 1 else 1
        if layers % pp:
            return (1, *(size for size in (2, 4, 8) if size <= most))
        return (1, *(size for size in range(2, most + 1) if layers % (pp * size) == 0))

    def shard_groups(self, dp: int, ranks_of_host: int) -> tuple[int, ...]:
        """What is tried of zero_group: dp, and the dp ranks of a host where that are several, but not all."""
        given = self.asked.given.get("zero_group")
        if given is not None:
            return given
        inside = ranks_of_host if self.asked.is_searched("zero_group") else dp
        return (dp, inside) if 1 < inside < dp and dp % inside == 0 else (dp,)

    def idle(self, axis: str, value: int) -> tuple[int, ...]:
        """The one value of an axis that changes nothing: `value`, or the first that was given."""
        return self.asked.given.get(axis, (value,))[:1]

    @property
    def uses_all_devices(self) -> bool:
        """Whether configurations of fewer devices are none; not where a caller fixed how many there are."""
        return "dp" not in self.asked.given or any(map(self.asked.is_searched, ("tp", "pp", "cp")))

    @cached_property
    def _searched(self) -> Mapping[str, tuple[int, ...]]:
        """What is tried of axes that are searched, by axis."""
        rows, several = self.rows, _divisors(self.devices)
        sizes = {
            "tp": _divisors(self.per_host) if self.model.cut_by_tensor_parallel else (1,),
            "pp": several,
            "cp": tuple(cp for cp in several if cp == 1 or (rows is not None and rows // cp >= LEAST_TOKENS)),
            "microbatch": tuple(
                size
                for size in _divisors(self.global_batch)
                if size == 1 or size * (rows or self.sequence_length) <= MOST_TOKENS
            ),
        }
        choices = {axis: tuple(range(len(values))) for axis, values in CHOICES.items()}
        if rows is None:
            choices["sequence_parallel"] = (0,)
        if not self.trains:
            choices |= {"recompute": (RECOMPUTATIONS.index("none"),), "zero": (0,)}
        return sizes | choices

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is left out and what is the same in all configurations, as sentences."""
        return (*self._rules(), *self._same(), *self.model.left_out)

    def _rules(self) -> Iterator[str]:
        is_searched = self.asked.is_searched
        if is_searched("tp") and self.devices > self.per_host:
            yield f"tp over hosts is left out: it divides the {self.per_host} GPUs of a host"
        if is_searched("cp") and self.rows is not None:
            yield f"cp leaves a rank {LEAST_TOKENS} tokens of a sequence or more"
        if is_searched("microbatch"):
            yield f"a micro-batch divides the global batch and has at most {MOST_TOKENS} tokens, or is one sequence"
        if is_searched("interleave"):
            yield (
                f"interleave is at most {MOST_INTERLEAVE}, and pp * interleave divides the layers; where pp alone does "
                "not, it is a power of two"
            )
        if is_searched("schedule"):
            yield "gpipe has one stage a rank; with several the schedule is interleaved"
        if is_searched("zero_group") and is_searched("zero"):
            yield "a zero_group is all of dp, or the dp ranks of a host"
        if not self.trains:
            yield "a forward pass keeps nothing: recompute and zero are not searched"

    def _same(self) -> Iterator[str]:
        asked = self.asked
        left = {axis: values for axis, values in DEFAULTS.items() if axis not in {*asked.searched, *asked.given}}
        if asked.given:
            yield f"fixed: {values_text(asked.given)}"
        if left:
            yield f"not searched: {values_text(left)}"
        hidden = "+".join(asked.same.get("overlap", ()))
        yield f"communication of {hidden or 'no axis'} may hide behind computation (overlap)"
        stages = asked.same.get("stages")
        if stages is None:
            yield "layers that stages do not share out equally are cut as even as can be, more in the middle"
        else:
            yield f"the layers of the stages are {'+'.join(map(str, stages))}"


def _divisors(of: int) -> tuple[int, ...]:
    """All divisors, ascending."""
    low = [size for size in range(1, int(of**0.5) + 1) if of % size == 0]
    return tuple(dict.fromkeys([*low, *(of // size for size in reversed(low))]))
