"""Gradients have TensorFlow's values, and are None where TensorFlow's are.

Cases of family "gradients" have a forward graph, ys, xs and gradients of the ys. The gradients are added to the graph
and fetched in the session that runs the case.
"""

from __future__ import annotations

import numpy as np
import pytest

from partita.actors import BlockingSession
from partita.graph.gradients import gradients
from partita.graph.graphdef.importer import graph_def_to_graph
from tests.conformance.corpus import Case, cases
from tests.conformance.test_values import check_close


@pytest.mark.parametrize("case", cases("gradients"), ids=lambda case: case.path)
def test_gradients(case: Case) -> None:
    """The gradient of every x in every step, and the ys."""
    info = case.info
    graph = graph_def_to_graph(case.graph_def())
    gradient_names = gradients(graph, info["ys"], info["xs"], info["grad_ys"], info["stop_gradients"] or ())
    names = [name for name in gradient_names if name is not None]
    with BlockingSession(graph.to_graph_def(), f"cpu:{len(case.devices)}") as session:
        if info["init_targets"]:
            session.run([], {}, targets=info["init_targets"])
        for step in info["steps"]:
            assert [name is None for name in gradient_names] == [key is None for key in step["expected"]]
            feeds = {name: case.feeds[key] for name, key in step["feeds"].items()}
            values = session.run([*names, *info["ys"]], feeds)
            keys = [key for key in step["expected"] if key is not None] + step["expected_ys"]
            for name, key, value in zip([*names, *info["ys"]], keys, values, strict=True):
                check_close(case, name, np.asarray(value), case.expected[key])
