"""Shapes of all tensors of a graph, from the shapes of what is fed.

Names are imported when they are first used: most sessions infer no shapes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import load_lazily

if TYPE_CHECKING:
    from .annotated import to_annotated_graph_def as to_annotated_graph_def
    from .infer import infer_shapes as infer_shapes

load_lazily(__name__)
