"""What nodes of functions keep from call to call is theirs alone, shared or apart as in TensorFlow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.actors.running.answers.kept_cases import questions
from tests.questions import Question

ANSWERS = json.loads((Path(__file__).parent / "data" / "kept_answers.json").read_text())


def test_every_answer_is_compared() -> None:
    """Five kinds, called and inlined, by three pairs of callers."""
    assert [question.name for question in questions()] == list(ANSWERS)
    assert len(ANSWERS) == 5 * 2 * 3


@pytest.mark.parametrize("question", questions(), ids=list(ANSWERS))
async def test_nodes_keep_what_tensorflow_keeps(question: Question) -> None:
    """A resource without a name belongs to a function's node on a device, whoever calls."""
    assert await question.answer() == ANSWERS[question.name]
