"""Helpers for tests of passes: an evaluator that records what it computed, and comparable forms of graphs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from partita.actors.running.evaluation import ConstantEvaluator
from partita.graph.dtypes import Array
from partita.graph.graph import Graph

_FOLD_NUMBER = re.compile(r"(__cf__)\d+")


class CountingEvaluator(ConstantEvaluator):
    """An evaluator that records which tensors it computed."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def run(self, graph: Graph, fetches: Sequence[str]) -> list[Array]:
        self.asked.append(list(fetches))
        return super().run(graph, fetches)


def without_number(name: str) -> str:
    """A name without the number that distinguishes folded constants of one process."""
    return _FOLD_NUMBER.sub(r"\1", name)


def text_of(graph: Graph) -> str:
    """The text of a graph, without the numbers of folded constants."""
    return without_number(str(graph))


def nodes_of(graph: Graph) -> dict[str, list[str]]:
    """Node name -> op, data inputs by port, control inputs by name: the form of TensorFlow's recorded answers."""
    nodes = {}
    for node in graph.to_graph_def().node:
        inputs = [without_number(text.removesuffix(":0")) for text in node.input]
        data = [text for text in inputs if not text.startswith("^")]
        control = sorted({text for text in inputs if text.startswith("^")})
        nodes[without_number(node.name)] = [node.op, *data, *control]
    return nodes
