# mypy: ignore-errors
# It runs only where TensorFlow is, which has no types.
"""Asks TensorFlow which contradicting `_output_shapes` it accepts; run in an environment that has TensorFlow.

python -m tests.graph.shape_inference.sweep.tensorflow_answers graphs.gz
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}

import tensorflow as tf

from tests.devices.kernels.sweep.cases import TARGET, read_graphs
from tests.devices.kernels.sweep.forking import CRASH, ENDLESS, ask
from tests.graph.shape_inference.sweep.probes import DIED, answer, write_answers

MEMORY = 6 << 30
v1 = tf.compat.v1


def imports(graph_def) -> tf.Graph | None:
    """The imported graph, or None if TensorFlow refuses it."""
    try:
        with tf.Graph().as_default() as graph:
            tf.import_graph_def(graph_def, name="")
    except (ValueError, tf.errors.OpError):
        return None
    return graph


def target_of(graph_def):
    return next(node for node in graph_def.node if node.name == TARGET)


def row(graph_def) -> list[str]:
    node = target_of(graph_def)
    imported = imports(graph_def)
    num_outputs = 0 if imported is None else len(imported.get_operation_by_name(TARGET).outputs)

    def accepts(shapes) -> bool:
        node.attr.pop("_output_shapes", None)
        if shapes is not None:
            shapes = [tf.TensorShape(shape).as_proto() for shape in shapes]
            node.attr["_output_shapes"].list.shape.extend(shapes)
        return imports(graph_def) is not None

    return [node.op, *answer(num_outputs, accepts)]


def main() -> None:
    cases = [v1.GraphDef.FromString(data) for data in read_graphs(Path(sys.argv[1]))]
    lines = ask([(case, 0) for case in cases], lambda case, _, report: report(json.dumps(row(case))), MEMORY)
    write_answers(
        [target_of(case).op, DIED] if line in (CRASH, ENDLESS) else json.loads(line)
        for case, line in zip(cases, lines, strict=True)
    )


if __name__ == "__main__":
    main()
