"""Nodes that call functions and do not fit them answer as TensorFlow does: with its code, or with its values."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from partita.actors import open_session
from partita.errors import PartitaError
from partita.graph.protos import GraphDef
from tests.actors.running.answers.functional_cases import Case, cases

ANSWERS = json.loads((Path(__file__).parent / "data" / "functional_answers.json").read_text())
REFUSED = {
    "While less none": "INVALID_ARGUMENT",  # TensorFlow gives a tensor that nothing has written
    **{
        f"XlaLaunch int of 1, {n} constant": "INVALID_ARGUMENT" for n in (0, 1)
    },  # it takes the bits of an int for a float
}
CASES = [case for case in cases() if case[0] in ANSWERS]


def test_every_answer_is_compared() -> None:
    """Cases without an answer are those for which TensorFlow crashes or does not end."""
    assert {name for name, _, _ in CASES} == ANSWERS.keys()
    assert len(CASES) == len(list(cases())) - 3 == 330


@pytest.mark.parametrize("case", CASES, ids=[name for name, _, _ in CASES])
async def test_what_does_not_fit_has_the_answer_of_tensorflow(case: Case) -> None:
    """No error of Python comes out: these would have the code UNKNOWN."""
    name, graph_def, fetches = case
    expected = REFUSED.get(name, ANSWERS[name])
    assert await answer(graph_def, fetches) == expected


async def answer(graph_def: GraphDef, fetches: list[str]) -> object:
    """The code of the error, or the values."""
    try:
        async with open_session(graph_def, "cpu:1") as session:
            return [np.asarray(value).tolist() for value in await session.run(fetches)]
    except PartitaError as error:
        return error.code
