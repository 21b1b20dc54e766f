"""The names of the built-in passes, with what each does.

They stand apart from the passes, so that the help of commands lists them without importing any pass.

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
