"""Small requests with one mistake each: names, feeds, attrs, devices, types, and values that kernels refuse.

data/requests.json has one request a line, with the status code and the first line of the answer of TensorFlow 2.21's
session (TF_ExtendGraph, then TF_Run) on two CPUs; "OK" if it accepts the request.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

from partita.actors.sessions.local_session import open_session
from partita.errors import PartitaError
from partita.graph import GraphDef
from partita.graph.dtypes import Array
from partita.graph.ops.registry import PRODUCER
from tests.conformance.corpus import COMMITTED
from tests.runs import HARD_PLACEMENT, cpus

# Same code, another wording on purpose: ours says what is wrong with the tensor, TensorFlow prints the message whole.
_WORDED_OTHERWISE = ("Cannot parse tensor from proto", "dims must represent", "Cannot bitcast", "Container localhost")


def graph_of(case: dict[str, Any]) -> GraphDef:
    """The graph of a case."""
    graph = GraphDef()
    for text in case["nodes"]:
        text_format.Parse(text, graph.node.add())
    graph.versions.producer = PRODUCER
    return graph


CASES: list[dict[str, Any]] = json.loads((COMMITTED / "requests.json").read_text())  # Any: JSON


def feeds_of(case: dict[str, Any]) -> list[tuple[str, Array]]:
    """The feeds of a case; infinities and NaN are strings in JSON."""
    return [
        (
            feed["name"],
            np.array([float(v) if isinstance(v, str) else v for v in feed["values"]], feed["dtype"]).reshape(
                feed["shape"]
            ),
        )
        for feed in case["feeds"]
    ]


async def answer(case: dict[str, Any]) -> tuple[str, str, str]:
    """Stage, status code and message."""
    stage = "extend"
    try:
        async with open_session(graph_of(case), cpus(2), config=HARD_PLACEMENT) as session:
            stage = "run"
            await session.run(case["fetches"], feeds_of(case), case["targets"])
    except PartitaError as error:
        return stage, error.code, str(error)
    return stage, "OK", ""


_COUNTED = re.compile(r"'_\d+_")  # resources without a name are numbered as they are made in a process


@pytest.mark.parametrize("request_", CASES, ids=lambda case: str(case["name"]))
async def test_answers_as_tensorflow(request_: dict[str, Any]) -> None:
    """Stage, status code and beginning of the message are TensorFlow's."""
    stage, code, message = await answer(request_)
    assert (stage, code) == (request_["stage"], request_["code"]), message
    core, message = (_COUNTED.sub("'_N_", text) for text in (request_["core"], message))
    assert core[:24].lower() in message.lower() or core.startswith(_WORDED_OTHERWISE), f"{message!r} is not {core!r}"


def test_the_cases_are_all_there() -> None:
    """Some of them are accepted."""
    assert len(CASES) >= 270
    assert sum(case["code"] == "OK" for case in CASES) >= 35
