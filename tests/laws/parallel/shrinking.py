"""Makes a case that fails smaller, one argument at a time, as long as it fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import fields, replace
from typing import Any

from tests.laws.parallel.cases import ParallelCase

KEPT = ("dtype", "scales")  # float64 has no kernels on GPUs, and float16 needs scaling
Fails = Callable[[ParallelCase], Awaitable[bool]]


async def shrunk(case: ParallelCase, fails: Fails) -> ParallelCase:
    """A case of which no part can be left out, or have its default, without that it stops failing."""
    while True:
        for simpler in simpler_cases(case):
            if simpler.rows % simpler.divisor == 0 and await fails(simpler):
                case = simpler
                break
        else:
            return case


def simpler_cases(case: ParallelCase) -> Iterator[ParallelCase]:
    """The case without one of its passes, or with the default of one argument."""
    for name in ("recomputed", "pipelined", "replicated"):
        if getattr(case, name) is not None:
            without: Any = {name: None}
            yield replace(case, **without)
    if case.is_virtual:
        yield replace(case, is_virtual=False)
    for part in ("step", "recomputed", "pipelined", "replicated"):
        whole: Any = getattr(case, part)
        for field in fields(whole) if whole is not None else ():
            if field.name not in KEPT and getattr(whole, field.name) != field.default:
                yield replace(case, **{part: replace(whole, **{field.name: field.default})})
    if case.rows > case.divisor:
        yield replace(case, rows=case.divisor)
