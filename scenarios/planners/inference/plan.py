"""The answer of a search for inference: estimates of layouts and batches, and what became of the others."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import asdict, frozen

from ....graph.display.html import details, lines, notebook_output, table
from ..machine import Machine
from .plan_table import serving_rows
from .rank import ServedModel

_RECORD = (
    *("rank", "tp", "pp", "ep", "batch", "prefill_ms", "prefill_ms_low", "prefill_ms_high"),
    *("decode_ms", "decode_ms_low", "decode_ms_high", "tokens_per_s", "kv_cache_gib", "allocated_gib"),
    *("memory_limit_gib", "usd_per_million_tokens"),
)


@frozen
class InferenceEstimate:
    """A replica and its batch: times in ms with the bounds of 80 % of them, memory in GiB of the fullest device.

    tp, pp, ep        a model is on tp * pp devices; ep such replicas share out its experts
    batch             sequences whose next tokens a replica computes at once; with pp stages so many such batches are
                      under way, one on each
    most_batch        the largest that fits in memory
    prefill_ms        the prompt of one sequence, alone on a replica: the time to the first token of an idle one
    decode_ms         one token of all sequences of a batch, at the mean context of prompt + output / 2
    tokens_per_s      of answers, by all replicas of the cluster together: while batch sequences get `output` tokens
                      each, as many prompts are computed in between
    kv_cache_gib      of sequences that are at their end, on a device
    usd_per_million_tokens  of answers; None where a price is missing
    """

    rank: int
    tp: int
    pp: int
    ep: int
    batch: int
    most_batch: int
    replicas: int
    prefill_ms: float
    prefill_ms_low: float
    prefill_ms_high: float
    decode_ms: float
    decode_ms_low: float
    decode_ms_high: float
    tokens_per_s: float
    kv_cache_gib: float
    allocated_gib: float
    memory_limit_gib: float
    usd_per_million_tokens: float | None = None

    @property
    def record(self) -> dict[str, object]:
        """The plan of a JSON document."""
        fields = asdict(self)
        return {name: fields[name] for name in _RECORD}


@frozen(eq=False, repr=False)
class InferencePlan:
    """What a search says of a model that a machine serves, with prompts and answers of so many tokens.

    configurations   all that were looked at
    impossible       of these by reason: what model and cluster do not allow, what does not fit, what is too slow
    assumptions      what the figures rest on, and which batches fit nowhere, as sentences
    plans            those that fit, the most tokens per second first, as many as were asked for
    """

    model: ServedModel
    machine: Machine
    prompt: int
    output: int
    configurations: int
    impossible: Mapping[str, int]
    assumptions: tuple[str, ...]
    plans: tuple[InferenceEstimate, ...]

    def __repr__(self) -> str:
        return f"<InferencePlan on {self.machine.devices} devices: {len(self.plans)} plans>"

    def _repr_html_(self) -> str:
        headings, rows = serving_rows(self.plans)
        impossible = [[reason, f"{many:,}"] for reason, many in self.impossible.items()]
        return notebook_output(
            f"{len(self.plans)} plans for prompts of {self.prompt:,} tokens and answers of {self.output:,}",
            table(headings, rows, left=0),
            details(f"{self.configurations:,} configurations", table(["impossible", "configurations"], impossible)),
            details("left out, and assumed", lines(self.assumptions)),
        )
