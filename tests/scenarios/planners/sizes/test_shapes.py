"""Families whose memory has no closed form are refused."""

from __future__ import annotations

import pytest

from partita.errors import UnimplementedError
from partita.scenarios import Split
from partita.scenarios.models.bert import BertModel
from partita.scenarios.models.description import ModelDescription
from partita.scenarios.models.vit import VitModel
from partita.scenarios.planners.step import PlannedStep
from tests.scenarios.planners.memory.examples import memory_of


@pytest.mark.parametrize(
    "model",
    [
        BertModel(layers=2, hidden=64, heads=4, intermediate=256),
        VitModel(layers=2, hidden=64, heads=4, intermediate=256),
    ],
    ids=lambda model: type(model).__name__,
)
def test_other_families_are_refused(model: ModelDescription) -> None:
    """By name, with what can be done."""
    with pytest.raises(UnimplementedError, match=f"{type(model).__name__}: .* simulate the graph"):
        memory_of(PlannedStep(model, 128), Split())
