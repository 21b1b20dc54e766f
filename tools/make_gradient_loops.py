"""Writes graphs of the gradients of loops in loops, whose inner counts the backward loops take from stacks and lists.

    python tools/make_gradient_loops.py tests/graph/data/loops        (in an environment with TensorFlow)

The graphs `v1_...` have stacks, the graphs `v2_...` lists. They are fed `x` and give `y`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Build = Callable[[Any], Any]  # Any: TensorFlow has no types


def loop(tf: Any, count: Any, step: Build, y: Any) -> Any:
    """`for i in range(count): y = step(i)(y)`."""
    variables = [tf.constant(0), y]
    return tf.while_loop(lambda i, _: i < count, lambda i, z: (i + 1, step(i)(z)), variables)[1]


def cases(tf: Any) -> dict[str, Build]:
    """By name: what computes a number from a number."""

    def rectangle(x: Any) -> Any:
        return loop(tf, 4, lambda _: lambda y: loop(tf, 3, lambda _: lambda z: tf.tanh(z * x), y), x)

    def triangle(x: Any) -> Any:
        return loop(tf, 4, lambda i: lambda y: loop(tf, i, lambda _: lambda z: tf.tanh(z * x), y), x)

    def pyramid(x: Any) -> Any:
        inner = lambda j: lambda z: loop(tf, j + 1, lambda _: lambda a: tf.tanh(a * x), z)  # noqa: E731 - nests in one line
        return loop(tf, 3, lambda i: lambda y: loop(tf, 2 * i + 1, inner, y), x)

    return {"grad_rectangle": rectangle, "grad_triangle": triangle, "grad_pyramid": pyramid}


def emptied(tf: Any) -> Build:
    """A list that is filled, and emptied until it has no element."""
    raw, ends = tf.raw_ops, [tf.TensorShape(None), tf.TensorShape([])]

    def build(x: Any) -> Any:
        scalar = tf.constant([], tf.int32)
        start = raw.EmptyTensorList(element_shape=scalar, max_num_elements=tf.constant(-1), element_dtype=tf.float32)
        push = lambda items, y: (raw.TensorListPushBack(input_handle=items, tensor=y), y * x)  # noqa: E731 - as loops are
        is_short = lambda items, _: raw.TensorListLength(input_handle=items) < 7  # noqa: E731 - written
        items, _ = tf.while_loop(is_short, push, [start, x], shape_invariants=ends)

        def pop(items: Any, y: Any) -> Any:
            items, item = raw.TensorListPopBack(input_handle=items, element_shape=scalar, element_dtype=tf.float32)
            return items, y + item

        is_left = lambda items, _: raw.TensorListLength(input_handle=items) > 0  # noqa: E731 - as loops are written
        return tf.while_loop(is_left, pop, [items, x], shape_invariants=ends)[1]

    return build


def write(tf: Any, path: Path, build: Build) -> None:
    """Writes the graph of a case."""
    with tf.Graph().as_default() as graph:
        tf.identity(build(tf.compat.v1.placeholder(tf.float32, [], name="x")), name="y")
        path.write_bytes(graph.as_graph_def().SerializeToString(deterministic=True))


def main() -> None:
    """Writes all cases into the folder that is named."""
    import tensorflow as tf  # in the environment of the reference only

    folder, v1 = Path(sys.argv[1]), tf.compat.v1
    for version, switch in ((1, v1.disable_control_flow_v2), (2, v1.enable_control_flow_v2)):
        switch()
        for name, of in cases(tf).items():
            write(tf, folder / f"v{version}_{name}.pb", lambda x, of=of: v1.gradients(of(x), x)[0])
    write(tf, folder / "v2_emptied.pb", emptied(tf))


if __name__ == "__main__":
    main()
