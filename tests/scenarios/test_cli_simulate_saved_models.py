"""SavedModels of the corpus take the time of the same graph with all calls inlined."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from partita.graph import load_saved_model
from tests.conformance.corpus import COMMITTED
from tests.scenarios.command_line import CommandLine

MODELS = sorted({path.parent for path in (COMMITTED / "saved_model").rglob("saved_model.pb")})


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.parent.name)
def test_a_saved_model_has_the_operations_of_its_inlined_graph(model: Path, partita: CommandLine) -> None:
    """By every signature; sizes that nobody knows are taken as 3."""
    for signature in load_saved_model(model).signatures:
        words = ["simulate", model, "--signature", signature, "--devices", "cpu:1", "--assume-size", "3", "--json"]
        called, inlined = (partita(*words, *more) for more in (["--no-inline"], []))
        assert called.code == inlined.code, called.err
        if not called.code:
            first, second = json.loads(called.out), json.loads(inlined.out)
            assert (first["flops"], first["makespan_ns"]) == (second["flops"], second["makespan_ns"])
