"""One graph for all commands: what a session ran is what the pipeline gives for the same passes, to print and to time.

Over the corpus, with and without passes over whole graphs and over partitions.
"""

from __future__ import annotations

import pytest

from partita.actors import open_session
from partita.actors.running.make_evaluator import make_evaluator
from partita.devices import local_cluster
from partita.devices.pipeline import Pipeline
from partita.graph import GraphDef
from partita.graph.passes.selection import Passes
from tests.conformance.corpus import Case, cases
from tests.runs import HARD_PLACEMENT

FAMILIES = ("elementary", "random", "models", "control_flow", "ops", "stateful", "functions")
CASES = [case for family in FAMILIES for case in cases(family)]
PASSES = ("", "inline", "inline,converters,dead,identities,fold,common")


def timed(case: Case, passes: str) -> dict[str, GraphDef]:
    """The partitions of the first step that commands print and time."""
    step = case.steps()[0]
    pipeline = Pipeline(local_cluster(f"cpu:{len(case.devices)}"), Passes.parse(passes))
    placed = pipeline.read(case.graph_def()).lower().place()
    cut = placed.prune(list(step.feeds), step.fetches, step.targets, with_shapes=True).cut()
    return {name: part.to_graph_def() for name, part in cut.optimise(make_evaluator).in_order().items()}


@pytest.mark.parametrize("passes", PASSES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path)
async def test_what_is_timed_is_what_ran(case: Case, passes: str) -> None:
    """Of loops that no plan can be made of the cut graph is timed, and what runs is the graph before it is cut."""
    step = case.steps()[0]
    cluster = local_cluster(f"cpu:{len(case.devices)}")
    async with open_session(case.graph_def(), cluster, config=HARD_PLACEMENT, passes=passes) as session:
        prepared = session.prepare(list(step.feeds), step.fetches, step.targets)
        assert prepared.alone is None or prepared.whole is None
        if prepared.whole is None:
            ran = {name: part.to_graph_def() for name, part in prepared.partitions.items()}
            assert ran == timed(case, passes)


def test_all_cases_are_there() -> None:
    assert len(CASES) >= sum(len(cases(family)) for family in FAMILIES) >= 34
