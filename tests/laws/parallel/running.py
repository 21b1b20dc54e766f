"""Runs a drawn case and compares it with one device."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from partita.actors import Session, open_session
from partita.devices import cut, simulate
from partita.errors import InvalidArgumentError, UnimplementedError
from partita.graph import Graph
from partita.graph.dtypes import Array
from tests.graph.parallel.running import LIMITS, STEPS, Trained, by_replica
from tests.graph.parallel.training_models import TrainingModel
from tests.laws.outcomes import DIFFERENT, EQUAL, REFUSED, Outcome
from tests.laws.parallel.cases import ModelCase, ParallelCase
from tests.laws.test_law4_timelines import without_numbers


async def outcome(case: ParallelCase) -> Outcome:
    """Runs the case; refused is what a pass refuses by a typed error."""
    model, graph = _built(case.step, case.rows if case.step.is_sized else None)
    try:
        rewritten = case.rewritten(graph)
    except (InvalidArgumentError, UnimplementedError) as error:
        return Outcome(REFUSED, error.message)
    key = case.step, case.rows
    if key not in _ONE:
        _ONE[key] = await _trained(graph, model, case.rows, 1, "cpu:1")
    settings = {"clock": "virtual"} if case.is_virtual else {}
    several = await _trained(rewritten, model, case.rows, case.parts, case.cluster, **settings)
    found = [*_differences(_ONE[key], several, model, case.step.dtype)]
    return Outcome(DIFFERENT, "; ".join(found)) if found else Outcome(EQUAL)


_ONE: dict[tuple[ModelCase, int], Trained] = {}  # what one device learns, of the cases so far


@cache
def _built(step: ModelCase, rows: int | None) -> tuple[TrainingModel, Graph]:
    model = ParallelCase(step, rows or 0).model()
    return model, model.graph()


async def _trained(graph: Graph, model: TrainingModel, rows: int, parts: int, cluster: str, **settings: Any) -> Trained:
    """Runs the steps; on a virtual clock the last of them must take the time that is simulated."""
    async with open_session(graph, cluster, **settings) as session:
        await session.run([], targets="init")
        losses = []
        for step in range(STEPS):
            feeds = by_replica(model.feeds(rows, step), parts)
            losses.append(float((await session.run("loss", feeds, targets="train"))[0]))
        if settings:
            _check_timeline(graph, session, feeds, cluster)
        values = await session.run([f"{name}/read" for name in model.names])
    return Trained(losses, dict(zip(model.names, values, strict=True)))


def _check_timeline(graph: Graph, session: Session, feeds: dict[str, Array], cluster: str) -> None:
    """The last step has the timeline that is simulated from shapes alone."""
    partitions = cut(graph, cluster, feeds=list(feeds), fetches="loss", targets="train")
    theirs = simulate(partitions, cluster, feeds={name: value.shape for name, value in feeds.items()})
    ours = session.timeline()
    assert without_numbers(ours) == without_numbers(theirs), "other events than simulated"
    assert (ours.makespan_ns, ours.peak_bytes) == (theirs.makespan_ns, theirs.peak_bytes)
    assert ours.dependency_bound_ns == theirs.dependency_bound_ns
    for link in {event.provenance for event in theirs.events if event.kind in ("copy", "collective")}:
        assert ours.link_loads(link) == theirs.link_loads(link), f"other load of {link}"


def _differences(one: Trained, several: Trained, model: TrainingModel, dtype: str) -> Iterator[str]:
    """What is further off than the law allows, losses first.

    Parameters are compared in float64 only: by the larger of their size and the learning rate.
    """
    limit = LIMITS[dtype]
    for step, (ours, theirs) in enumerate(zip(several.losses, one.losses, strict=True)):
        if not abs(ours - theirs) <= limit * abs(theirs):
            yield f"loss {step} is {ours}, not {theirs}"
    for name, value in one.variables.items() if dtype == "float64" else ():
        scale = max(model.rate, float(np.max(np.abs(value))))
        difference = float(np.max(np.abs(several.variables[name] - value)))
        if not difference <= limit * scale:
            yield f"{name} is off by {difference} of {scale}"
