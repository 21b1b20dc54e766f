"""Law 2: feeding a tensor with the value it would have does not change any other value."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given, strategies as st

from partita.graph.attrs import encode
from partita.graph.dtypes import DataType
from tests.runs import assert_same_values, values
from tests.strategies import GraphCase, placed_cases


@given(placed_cases(), st.data())
async def test_feeding_what_is_there_changes_nothing(
    placed: tuple[GraphCase, dict[str, str]], data: st.DataObject
) -> None:
    """Feeding back the values of some tensors leaves all other fetches unchanged."""
    case, placement = placed
    free = sorted(case.shapes.keys() - case.feeds.keys() - set(case.fetches))
    assume(free and case.fetches)
    cuts = data.draw(st.lists(st.sampled_from(free), min_size=1, max_size=3, unique=True))
    everything = await values(case.on(placement), replace(case, fetches=(*case.fetches, *cuts), targets=()))
    whole, at_cuts = everything[: len(case.fetches)], everything[len(case.fetches) :]
    cut = replace(case, feeds={**case.feeds, **dict(zip(cuts, at_cuts, strict=True))}, targets=())
    assert_same_values(await values(case.on(placement), cut), whole)


@given(placed_cases(), st.data())
async def test_nodes_before_a_feed_do_not_run(placed: tuple[GraphCase, dict[str, str]], data: st.DataObject) -> None:
    """A placeholder that leads only to fed tensors needs no feed."""
    case, placement = placed
    assume(case.fetches)
    cut = replace(case, fetches=case.fetches[:1], targets=())
    whole = await values(case.on(placement), cut)
    graph_def = case.on(placement)
    for name, op, inputs in (
        ("free", "Placeholder", []),
        ("through", "Identity", ["free"]),
        ("last", "Neg", ["through"]),
    ):
        node = graph_def.node.add(name=name, op=op, input=inputs, device=next(iter(placement.values())))
        node.attr["T" if inputs else "dtype"].CopyFrom(encode(DataType.FLOAT, "type"))
    fetched = replace(cut, feeds={**cut.feeds, "through:0": whole[0]}, fetches=(*cut.fetches, "last:0"))
    again = await values(graph_def, fetched)
    assert_same_values(again, [*whole, -whole[0]])
