"""The check of attrs before shapes are inferred: the rules of ops rely on it. Nodes of one kind are checked once."""

from __future__ import annotations

import numpy as np

from ..analysis.joined import JoinedGraph
from ..validate import check_given_attrs


def check_attrs_of(graph: JoinedGraph) -> None:
    """Raises InvalidArgumentError for an attr that does not fit its op's declaration."""
    first = np.full(len(graph.kinds), -1, np.int64)  # by kind its first node
    first[graph.kind_of[::-1]] = np.arange(len(graph))[::-1]
    for kind, n in zip(graph.kinds, first.tolist(), strict=True):
        if n >= 0:
            check_given_attrs(graph.names[n], kind.op_def, kind.attrs)
