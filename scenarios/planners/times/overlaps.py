"""What computation hides of communication, by the `overlap` of a split; without it everything is exposed.

tp    rows go through products in up to `MOST_CHUNKS` chunks: all but one of them hides behind products
cp    a ring hides behind the attention of the blocks that have arrived
ep    all-to-all hides behind the products of experts that every token is sent to: half of a layer's products here
dp    reductions hide behind the backward pass of the last micro-batch, all but those of the first layer
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ....graph.arrays import Floats
from .terms import StepTerms

MOST_CHUNKS, ROWS_OF_CHUNK = 4, 8192
"""as the builders cut rows (`workloads.transformers.network`)"""


def exposed_in_layer(terms: StepTerms, parts: Mapping[str, Floats]) -> dict[str, Floats]:
    """The parts of a pass of a layer, its exchanges without what the split lets computation hide."""
    hides, shown = terms.runs.hides, dict(parts)
    chunks = np.clip(terms.runs.rows // ROWS_OF_CHUNK, 1, MOST_CHUNKS)
    behind = parts["products"] * (1 - 1 / chunks)
    for axis, room in (("tp", behind), ("cp", parts["attention"]), ("ep", parts["products"] / 2)):
        share = parts[axis] * (1 - 1 / chunks) if axis == "tp" else parts[axis]
        shown[axis] = parts[axis] - np.where(hides[axis], np.minimum(share, room), 0.0)
    return shown


def exposed_gradients(terms: StepTerms, reduced_ns: Floats, gathered_ns: Floats, backward_ns: Floats) -> Floats:
    """Collectives of gradients and parameters without what the backward pass of the last micro-batch hides.

    Parameters are gathered behind the update, where nothing hides them; with ZeRO 3 in front of each layer's passes.
    """
    counts = np.stack([*terms.stages.layers.values()]).sum(axis=0)
    hidden = 1 - np.maximum(1 / np.maximum(counts.max(axis=1), 1), terms.gradients.first)
    hides = terms.runs.hides["dp"]
    reductions = np.where(hides, np.minimum(reduced_ns, backward_ns) * hidden, 0.0)
    gathers = np.where(hides & terms.runs.gathers_layers, np.minimum(gathered_ns, 1.5 * backward_ns) * hidden, 0.0)
    return reduced_ns - reductions + gathered_ns - gathers
