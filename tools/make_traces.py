"""Writes the traces of TensorFlow that tests read: some graphs, and the RunMetadata of a step of each.

    python tools/make_traces.py tests/devices/timing/tracing/data        (in an environment with TensorFlow)

Each graph has a batch of unknown size, is fed `x` of shape [2, 3], and fetches `y`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

X = np.ones((2, 3), np.float32)


Built = dict[str, tuple[Callable[[], dict[str, Any]], bool, bool]]
"""By name: what builds the graph and gives its feeds; if with control flow of version 2; if with calls inlined."""


def graphs(tf: Any) -> Built:  # Any: TensorFlow has no types
    """All graphs that are traced."""
    return {**loops(tf), **nested_loops(tf), **conditionals(tf), **functions(tf)}


def fed(tf: Any, *names: str) -> list[Any]:
    """The placeholders `x`, a batch; `n`, a number of turns; `p`, a predicate."""
    kinds = {"x": (tf.float32, [None, 3]), "n": (tf.int32, []), "p": (tf.bool, [])}
    return [tf.compat.v1.placeholder(*kinds[name], name=name) for name in names]


def product(tf: Any, a: Any, name: str = "mm") -> Any:
    """What loops and functions compute."""
    return tf.matmul(a, tf.ones([3, 3]), name=name)


def loops(tf: Any) -> Built:
    """A loop of either version, and the gradient of one, which has stacks."""
    while_loop = tf.compat.v1.while_loop

    def loop() -> dict[str, Any]:
        x, n = fed(tf, "x", "n")
        _, y = while_loop(lambda i, a: i < n, lambda i, a: [i + 1, product(tf, a)], [0, x], name="w")
        tf.identity(y, name="y")
        return {"x:0": X, "n:0": 5}

    def stacks() -> dict[str, Any]:
        x, n = fed(tf, "x", "n")
        weights = tf.fill([3, 3], 0.5, name="weights")
        step = lambda i, a: [i + 1, tf.tanh(tf.matmul(a, weights, name="mm"), name="th")]  # noqa: E731 - as a loop is written
        _, y = while_loop(lambda i, a: i < n, step, [0, x], name="w")
        tf.identity(tf.gradients(y, weights)[0], name="y")
        return {"x:0": X, "n:0": 5}

    return {"loop": (loop, False, True), "stacks": (stacks, False, True), "loop_v2": (loop, True, True)}


def nested_loops(tf: Any) -> Built:
    """A loop whose inner loop runs more often from turn to turn."""
    while_loop = tf.compat.v1.while_loop
    one_by_one = {"parallel_iterations": 1}

    def outer(i: Any, a: Any) -> list[Any]:
        step = lambda j, b: [j + 1, product(tf, b)]  # noqa: E731 - as the loop around is written
        _, b = while_loop(lambda j, b: j < i + 1, step, [0, a], name="inner", **one_by_one)
        return [i + 1, b]

    def nested() -> dict[str, Any]:
        x, n = fed(tf, "x", "n")
        _, y = while_loop(lambda i, a: i < n, outer, [0, x], name="outer", **one_by_one)
        tf.identity(y, name="y")
        return {"x:0": X, "n:0": 3}

    return {"nested": (nested, False, True)}


def conditionals(tf: Any) -> Built:
    """A conditional of either version."""

    def conditional() -> dict[str, Any]:
        p, x = fed(tf, "p", "x")
        tf.identity(tf.cond(p, lambda: product(tf, x), lambda: tf.exp(x, name="ex"), name="c"), name="y")
        return {"x:0": X, "p:0": True}

    return {"conditional": (conditional, False, True), "conditional_v2": (conditional, True, True)}


def functions(tf: Any) -> Built:
    """A function that is inlined or called, and one with a loop and a conditional inside."""

    @tf.function
    def function(a: Any) -> Any:
        return product(tf, a, "inner")

    def calling() -> dict[str, Any]:
        (x,) = fed(tf, "x")
        tf.identity(function(x) + 1.0, name="y")
        return {"x:0": X}

    @tf.function
    def deciding(a: Any, n: Any) -> Any:
        _, b = tf.while_loop(lambda i, _: i < n, lambda i, b: [i + 1, product(tf, b)], [0, a], name="w")
        return tf.cond(n > 2, lambda: product(tf, b), lambda: tf.exp(b), name="c")

    def control_in_function() -> dict[str, Any]:
        x, n = fed(tf, "x", "n")
        tf.identity(deciding(x, n), name="y")
        return {"x:0": X, "n:0": 3}

    return {
        "control_in_function": (control_in_function, True, True),
        "function": (calling, True, True),
        "function_called": (calling, True, False),
    }


def write(tf: Any, folder: Path, name: str, build: Any, is_v2: bool, is_inlined: bool) -> None:
    """Writes the graph and the trace of its second step; the first has prepared it."""
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph:
        (v1.enable_control_flow_v2 if is_v2 else v1.disable_control_flow_v2)()
        feeds = build()
        config = v1.ConfigProto(device_count={"CPU": 1})
        config.graph_options.rewrite_options.disable_meta_optimizer = not is_inlined
        config.graph_options.optimizer_options.opt_level = -1
        config.graph_options.optimizer_options.do_function_inlining = is_inlined
        metadata = v1.RunMetadata()
        with v1.Session(config=config) as session:
            session.run("y:0", feeds)
            session.run("y:0", feeds, options=v1.RunOptions(trace_level=3), run_metadata=metadata)
    (folder / f"{name}.graph.pb").write_bytes(graph.as_graph_def().SerializeToString(deterministic=True))
    (folder / f"{name}.trace.pb").write_bytes(metadata.SerializeToString(deterministic=True))


if __name__ == "__main__":
    import tensorflow as tf  # not needed unless traces are written

    for each, how in graphs(tf).items():
        write(tf, Path(sys.argv[1]), each, *how)
