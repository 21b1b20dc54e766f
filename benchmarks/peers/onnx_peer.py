"""onnx.reference, ONNX's evaluator, on a chain of nodes: each adds the value before and the fed scalar array."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.peers.serving import Seconds, serve, timed

# Imported by name, as type checkers may have no ONNX to look into.
helper: Any = import_module("onnx.helper")
reference: Any = import_module("onnx.reference")

_FLOAT = 1  # TensorProto.FLOAT
_started: list[Any] = []


def start(nodes: int) -> None:
    """Builds the chain and runs it once."""
    names = ["x", *(f"n{index}" for index in range(nodes))]
    made = [helper.make_node("Add", [before, "x"], [name]) for before, name in pairwise(names)]
    ends = [helper.make_tensor_value_info(name, _FLOAT, []) for name in (names[0], names[-1])]
    evaluator = reference.ReferenceEvaluator(helper.make_model(helper.make_graph(made, "chain", ends[:1], ends[1:])))
    _started[:] = [partial(evaluator.run, None, {"x": np.array(0.5, np.float32)})]
    _started[0]()


def steps(count: int) -> Seconds:
    """Time of some steps."""
    return timed(_started[0], count)


if __name__ == "__main__":
    serve({"start": start, "steps": steps})
