"""The page of plans: the cells of the table as numbers, time and memory that add up, and the simulated timelines."""

from __future__ import annotations

from math import inf

from partita.devices import machines_of
from partita.devices.timing import Timeline, TimelineEvent
from partita.scenarios import LlamaModel, Split
from partita.scenarios.planners.inference.search import search_inference
from partita.scenarios.report.page.html import page_bytes
from partita.scenarios.report.page.page_data import Document
from partita.scenarios.report.page.plan_page import (
    SERVING,
    TRAINING,
    plan_page,
    plans_record,
    serving_headline,
    training_headline,
)
from tests.scenarios.commands.planning.plans import made
from tests.scenarios.report.page.pages import read_page

MODEL = LlamaModel(layers=2, hidden=64, heads=4, intermediate=128, vocabulary=256)
PLANS = [
    made(1, Split(tp=2, dp=4, microbatch=2, precision="bfloat16"), simulated_step_ms=95.0),
    made(2, Split(tp=2, pp=2, dp=2, microbatches=4, zero=1, precision="bfloat16"), days=inf),
]
TIMELINE = Timeline([TimelineEvent("/device:GPU:0", "compute", "a", "Neg", "compute", 0, 4000)])


def written(record: Document) -> Document:
    """A record after the way through the file."""
    page = plan_page("plans", record, timelines=[TIMELINE], headline=training_headline(PLANS[0], 8), subtitle="a model")
    return read_page(page_bytes(page)).document


def test_a_page_has_the_plans_and_their_timelines() -> None:
    """A row has the number of its run; the page of others has none."""
    document = written(plans_record(TRAINING, PLANS, limit_gib=40.0, explanation=["why"], simulated=1))
    assert (document["kind"], document["title"], document["subtitle"]) == ("plan", "plans", "a model")
    assert [(run["name"], run["makespan_ns"]) for run in document["runs"]] == [("plan 1", 4000)]
    plans = document["plans"]
    assert [row["run"] for row in plans["rows"]] == [0, None]
    assert (plans["limit_gib"], plans["explanation"]) == (40.0, ["why"])
    assert document["headline"][0] == {
        "label": "step time of plan 1",
        "text": "100.0 ms",
        "note": "80 % of steps: 90 to 112 ms",
        "state": "",
    }


def test_cells_are_numbers_to_sort_by() -> None:
    """Of the columns that the printed table has, but for the rank; what is infinite is no number of JSON."""
    plans = written(plans_record(TRAINING, PLANS, limit_gib=40.0))["plans"]
    titles = {column["key"]: (column["title"], column["unit"], column["numeric"]) for column in plans["columns"]}
    assert titles["step ms"] == ("step ms", "", True)
    assert titles["MFU"] == ("MFU", "%", True)
    assert titles["80 % of steps"] == ("80 % of steps", "", False)
    assert "#" not in titles
    assert "cp" not in titles
    first, second = (row["cells"] for row in plans["rows"])
    assert {key: first[key] for key in ("tp", "pp", "zero", "step ms", "MFU", "GiB", "simulated", "days")} == {
        "tp": 2,
        "pp": 1,
        "zero": "0",
        "step ms": 100.0,
        "MFU": 40.0,
        "GiB": 20.0,
        "simulated": 95.0,
        "days": None,
    }
    assert (second["simulated"], second["days"]) == (None, None)
    assert set(first) == set(titles)


def test_time_and_memory_are_parts_of_the_whole() -> None:
    """In the words of the explanation; parts that are nothing are left out."""
    for row, plan in zip(plans_record(TRAINING, PLANS, limit_gib=40.0)["rows"], PLANS, strict=True):
        assert [part["name"] for part in row["time"]] == [
            "matrix products",
            "attention",
            "data-parallel communication",
        ]
        assert sum(part["ms"] for part in row["time"]) == plan.step_ms
        assert sum(part["gib"] for part in row["memory"]) == plan.reserved_gib


def test_plans_of_serving_have_their_memory() -> None:
    """The cache beside the rest; times are columns, as they do not add up."""
    found = search_inference(MODEL, machines_of("H100-SXM:8"), prompt=64, output=16, batches=[1, 4], top=2)
    record = plans_record(SERVING, found.plans, limit_gib=found.plans[0].memory_limit_gib)
    for row, plan in zip(record["rows"], found.plans, strict=True):
        assert row["time"] == []
        assert abs(sum(part["gib"] for part in row["memory"]) - plan.allocated_gib) < 1e-9
        assert (row["cells"]["token ms"], row["cells"]["batch"]) == (plan.decode_ms, plan.batch)
    assert serving_headline(found.plans[0])[1]["text"] == f"{found.plans[0].decode_ms:,.2f} ms"
