"""The names of the built-in passes, with what each does; apart from the passes, as help lists them without loading any.

Their order is that of the rounds of TensorFlow's optimiser.
"""

from __future__ import annotations

GROUP = "partita.passes"
"""the entry points by which installed packages add passes"""

INLINE = "inline"
CONVERTERS = "converters"
DEAD = "dead"
IDENTITIES = "identities"
FOLD = "fold"
COMMON = "common"

SUMMARIES = {
    INLINE: "calls of functions are replaced by their nodes",
    CONVERTERS: "a list of tensors goes on without its converter",
    DEAD: "nodes that nothing needs are removed",
    IDENTITIES: "Identity nodes are removed",
    FOLD: "nodes with constant inputs are computed once",
    COMMON: "equal nodes are merged",
}
