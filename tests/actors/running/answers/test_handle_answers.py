"""Handles that functions give are used on other devices: with the values, or the codes of errors, of TensorFlow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.actors.running.answers.handle_cases import COUNT, questions
from tests.questions import Question

ANSWERS = json.loads((Path(__file__).parent / "data" / "handle_answers.json").read_text())
ANSWERED = [question for question in questions() if question.name in ANSWERS]


def test_every_answer_is_compared() -> None:
    """Questions without an answer are those whose queue TensorFlow waits for."""
    assert len(ANSWERED) == len(ANSWERS) == COUNT - 7 == 233


@pytest.mark.parametrize("question", ANSWERED, ids=[question.name for question in ANSWERED])
async def test_a_handle_has_the_device_that_tensorflow_gives_it(question: Question) -> None:
    """Made in the function or passed through, called or inlined, with hard or soft placement."""
    assert await question.answer() == ANSWERS[question.name]
