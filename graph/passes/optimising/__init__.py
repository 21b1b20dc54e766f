"""The passes that make a partition cheaper to run, and the rounds in which they run.

Each pass is imported when it first runs: commands and sessions that only inline calls need none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....lazy import load_lazily

if TYPE_CHECKING:
    from .constant_folding import fold_constants as fold_constants
    from .cse import merge_common_subexpressions as merge_common_subexpressions
    from .dead_nodes import remove_dead_nodes as remove_dead_nodes
    from .identities import remove_identity_nodes as remove_identity_nodes
    from .list_converters import remove_list_converters as remove_list_converters

load_lazily(__name__)
