"""Where the time and the memory of a plan go, as bars, and how sure that is.

where the time goes: 812.4 ms
  matrix products   561.0 ms  69.1 %  #################
  ...
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..models.split_text import split_text
from .estimates import Estimate
from .machine import Machine

_J_PER_KWH = 3.6e6
_NAMED = 3  # categories that a sentence names
_BAR = 24  # characters of the whole
TIME_WORDS = {
    "products": "matrix products",
    "attention": "attention",
    "memory_bound": "norms and other traffic",
    "launches": "waiting for launches",
    "tp": "tensor-parallel communication",
    "cp": "context-parallel communication",
    "ep": "experts' all-to-all",
    "dp": "data-parallel communication",
    "pp": "transfers between stages",
    "bubble": "pipeline bubble",
    "optimizer": "optimizer",
}
MEMORY_WORDS = {
    "parameters": "parameters",
    "gradients": "gradients",
    "optimizer": "optimizer state",
    "activations": "activations kept for backward",
    "temporaries": "temporaries",
    "communication": "communication buffers",
    "fragmentation": "rounding and fragmentation",
}
"""what the categories of time and memory are called"""
_RESTS = {
    "fitted": "fitted: training steps on {gpu} were measured",
    "transferred": "transferred: no training steps on {gpu} were measured; efficiencies of other GPUs, on its kernels",
}


def explained(plan: Estimate, machine: Machine) -> Iterator[str]:
    """The lines on a plan; those of communication are what computation does not hide."""
    yield f"plan {plan.rank}: {split_text(plan.split)}"
    yield f"where the time goes: {plan.step_ms:,.1f} ms"
    yield from _bars(plan.time_by_category_ms, TIME_WORDS, "ms")
    rank = f", pipeline rank {plan.fullest_stage} of 0 to {plan.pp - 1}" if plan.pp > 1 else ""
    yield f"memory of the fullest GPU{rank}: {plan.reserved_gib:.1f} of {plan.memory_limit_gib:.1f} GiB reserved"
    yield from _bars(plan.memory_by_category_gib, MEMORY_WORDS, "GiB")
    yield from how_sure(plan, machine)
    if plan.simulated_step_ms is not None:
        yield compared(plan)
    yield from money(plan)


def in_sentences(plan: Estimate, machine: Machine) -> Iterator[str]:
    """The same without bars, for what shows them itself."""
    yield f"plan {plan.rank}: {split_text(plan.split)}"
    largest = sorted(plan.time_by_category_ms.items(), key=lambda part: -part[1])[:_NAMED]
    shares = (f"{TIME_WORDS[name]} {100 * ms / plan.step_ms:.1f} %" for name, ms in largest if ms)
    yield f"its step takes {plan.step_ms:,.1f} ms: {', '.join(shares)}"
    yield from (line.strip() for line in list(how_sure(plan, machine))[1:])
    yield from money(plan)


def _bars(parts: Mapping[str, float], words: Mapping[str, str], unit: str) -> Iterator[str]:
    """A line for each part that is not nothing, the largest first."""
    whole = sum(parts.values())
    shown = {name: amount for name, amount in parts.items() if whole and amount / whole >= 0.0005}
    width = max((len(words[name]) for name in shown), default=0)
    for name, amount in sorted(shown.items(), key=lambda part: -part[1]):
        share = amount / whole
        figures = f"{amount:>10,.2f} {unit} {100 * share:>5.1f} %"
        yield f"  {words[name]:<{width}}  {figures}  {'#' * round(_BAR * share)}".rstrip()


def how_sure(plan: Estimate, machine: Machine) -> Iterator[str]:
    """The intervals of time and memory, and what the time rests on."""
    yield "how sure"
    yield (
        f"  80 % of steps take {plan.step_ms_low:,.0f} to {plan.step_ms_high:,.0f} ms; allocated are "
        f"{plan.allocated_gib:.1f} GiB, {plan.allocated_gib_low:.1f} to {plan.allocated_gib_high:.1f}"
    )
    yield f"  {_RESTS[plan.provenance].format(gpu=machine.spec.name)}"


def compared(plan: Estimate) -> str:
    """The closed form beside the simulation of the built graph."""
    simulated = plan.simulated_step_ms or 0.0
    inside = "inside" if plan.step_ms_low <= simulated <= plan.step_ms_high else "outside"
    return (
        f"plan {plan.rank} simulated: {simulated:,.1f} ms; the closed form says {plan.step_ms:,.1f} ms, "
        f"{100 * (plan.step_ms / simulated - 1):+.1f} %; the simulation is {inside} its interval"
    )


def money(plan: Estimate) -> Iterator[str]:
    """What a step and the run cost, as far as prices, watts and tokens are known; nothing where none is."""
    known = (
        (plan.usd_per_step, "${:,.3f} a step"),
        (None if plan.joules_per_step is None else plan.joules_per_step / _J_PER_KWH, "{:,.3f} kWh a step"),
        (plan.days, "{:,.2f} days for the run"),
        (plan.usd_per_run, "${:,.0f} for the run"),
        (None if plan.goodput is None else 100 * plan.goodput, "{:.1f} % of its time is not lost to failures"),
    )
    parts = [words.format(amount) for amount, words in known if amount is not None]
    if parts:
        yield f"cost: {', '.join(parts)}"
