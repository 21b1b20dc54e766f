"""Events as tables of pandas and Arrow: the same rows, with types that keep nanoseconds."""

from __future__ import annotations

import sys

import pytest

from partita.devices.timing import Timeline, TimelineEvent
from partita.devices.timing.events import KINDS
from partita.errors import InvalidArgumentError, UnimplementedError
from tests.devices.timing.test_timeline import EVENTS, TIMELINE, A

NEEDED = "the table is made by a package that is no dependency"
TEXTS = ["device", "stream", "node", "op", "kind", "provenance", "iteration"]
SURE = Timeline([EVENTS[1]._replace(low_ns=3000, high_ns=2**60, node="\ud800", cause=-1), EVENTS[2]._replace(cause=0)])


@pytest.mark.parametrize("timeline", [TIMELINE, SURE], ids=["unknown bounds", "some known"])
def test_pandas_has_every_field(timeline: Timeline) -> None:
    """Rows are the events; texts are categories, bounds nullable, all other numbers int64."""
    pandas = pytest.importorskip("pandas", reason=NEEDED)
    table = timeline.to_pandas()
    assert tuple(table.columns) == TimelineEvent._fields
    rows = [tuple(None if cell is pandas.NA else cell for cell in row) for row in table.itertuples(index=False)]
    assert rows == list(map(tuple, timeline.events))
    types = table.dtypes.astype(str)
    assert {name: types[name] for name in TEXTS} == dict.fromkeys(TEXTS, "category")
    assert types["start_ns"] == types["runs"] == types["step"] == "int64"
    assert types["low_ns"] == types["high_ns"] == "Int64"
    assert list(table["kind"].cat.categories) == list(KINDS)


@pytest.mark.parametrize("timeline", [TIMELINE, SURE], ids=["unknown bounds", "some known"])
def test_arrow_has_every_field(timeline: Timeline) -> None:
    """The same with dictionaries; half a surrogate pair, which is no text of Arrow, is a question mark."""
    pytest.importorskip("pyarrow", reason=NEEDED)
    table = timeline.to_arrow()
    rows = [TimelineEvent(**row) for row in table.to_pylist()]
    assert rows == [event._replace(node=event.node.replace("\ud800", "?")) for event in timeline.events]
    assert str(table.schema.field("start_ns").type) == "int64"
    assert str(table.schema.field("device").type).startswith("dictionary")


@pytest.mark.parametrize(("name", "ask"), [("pandas", Timeline.to_pandas), ("pyarrow", Timeline.to_arrow)])
def test_a_missing_package_is_named(name: str, ask: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that installs it."""
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UnimplementedError, match=f"pip install {name}"):
        ask(TIMELINE)  # type: ignore[operator]  # a method


def test_numbers_beyond_64_bits_have_no_table() -> None:
    """Rather than one that rounds them."""
    pytest.importorskip("pandas", reason=NEEDED)
    large = Timeline([TimelineEvent(A, "compute", "a", "Neg", "compute", 0, 9, flops=2**70)])
    with pytest.raises(InvalidArgumentError, match="'flops' has numbers beyond 64 bits"):
        large.to_pandas()
