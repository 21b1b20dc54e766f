"""Reports: causes add up to the makespan, lines do not depend on last bits, columns align."""

from __future__ import annotations

import numpy as np

from partita.devices import cut, local_cluster
from partita.devices.timing import RooflineSource, simulate
from partita.scenarios import all_to_one, all_to_one_tree, mlp
from partita.scenarios.report import columns, limits, value_line

GPUS = [f"/device:GPU:{k}" for k in range(4)]


def test_causes_add_up_to_the_makespan() -> None:
    """The shares add up to the makespan and are sorted."""
    cluster = local_cluster("cpu:1,gpu:4")
    for graph_def, feeds, fetch in (
        (all_to_one(GPUS, 1 << 16), {}, "total"),
        (all_to_one_tree(GPUS, 1 << 16), {}, "total"),
        (mlp((64, 64, 64, 64, 8), GPUS), {"x": (32, 64)}, "y"),
    ):
        timeline = simulate(cut(graph_def, cluster, feeds=list(feeds), fetches=[fetch]), cluster, feeds=feeds)
        shares = limits(timeline, cluster)
        assert sum(ns for _, ns in shares) == timeline.makespan_ns
        assert [ns for _, ns in shares] == sorted((ns for _, ns in shares), reverse=True)


def test_a_larger_product_is_bound_by_arithmetic() -> None:
    """One dense layer: small ones are launch overhead, large ones arithmetic."""
    cluster = local_cluster("cpu:1,gpu:1")
    longest = {}
    for rows in (1, 1 << 17):
        parts = cut(mlp((2048, 2048), GPUS[:1]), cluster, feeds=["x"], targets=["layer1/product"])
        step = simulate(parts, cluster, feeds={"x": (rows, 2048)}, cost_source=RooflineSource())
        shares = limits(step, cluster)
        longest[rows] = next(what for what, _ in shares if "transfers" not in what)
    assert longest[1 << 17] == "arithmetic of gpu:0"
    assert longest[1] != longest[1 << 17]


def test_last_bits_do_not_show() -> None:
    """Two values that differ by rounding give the same line."""
    x = np.linspace(0.1, 0.7, 12, dtype=np.float32).reshape(3, 4)
    assert value_line("x", x) == value_line("x", np.nextafter(x, np.float32(1)))
    assert value_line("x", x) == "x: float [3,4] from 0.1 to 0.7, mean 0.4"
    assert value_line("n", np.asarray(np.int32(3))) == "n: int32 [] 3"


def test_columns_align() -> None:
    """Texts to the left, numbers to the right."""
    assert list(columns([("", "n"), ("one", "1"), ("three", "333")])) == [
        "           n",
        "  one      1",
        "  three  333",
    ]
