"""Functions that saved datasets name: `halves` chooses a shard, `joined` interleaves the datasets of all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from partita.graph.builder import GraphBuilder
from tests.devices.kernels.datasets.pipelines import INT64, Pipeline
from tests.function_defs import func_attr, function_of

FORM: dict[str, Any] = {"output_types": [INT64], "output_shapes": [()]}


def with_functions() -> Pipeline:
    """`joined` interleaves the shards, `halves` tells even numbers from odd ones."""
    p = Pipeline()
    p.add_function("halves", lambda b, x: b.op("FloorMod", x[0], np.int64(2))[0])
    p.add_function("single", lambda b, x: b.op("Identity", x[0])[0])
    b = GraphBuilder()
    b.op("Identity", b.placeholder("d", "variant", ()), name="same")
    p.b.function(function_of("shard", b.graph_def(), ["d:0"], ["same:0"]))
    b = GraphBuilder()
    shards, one = b.placeholder("d", "variant", ()), np.int64(1)
    b.op(
        "InterleaveDataset",
        *(shards, [], np.int64(2), one),
        name="all",
        attrs={**FORM, "f": func_attr("shard"), "Targuments": []},
    )
    p.b.function(function_of("joined", b.graph_def(), ["d:0"], ["all:0"]))
    return p


def path_of(folder: Path) -> Any:  # a scalar of strings
    return np.array(str(folder).encode(), object)
