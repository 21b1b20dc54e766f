"""The names of lowered nodes in a trace of TensorFlow: of functions that it has inlined, a trace has nothing but names.

    f/c/switch_pred/_9        the Switch on the predicate of If "c" in function call "f"
    f/w/LoopCond/_12          the condition of While "w"
    f/w/i_switch/_14          one of its Switches

What this package has lowered itself stands in `Graph.lowered`, so that only nodes that the graph lacks are asked for.
"""

from __future__ import annotations

import re

_OF_CONDITIONAL = re.compile(r"(.+)/(?:switch_pred|branch_index)/_\d+")
_CONDITION = re.compile(r"(.+)/LoopCond/_\d+")
_SWITCH = re.compile(r"_switch/_\d+$")


def conditional_of(node: str) -> str | None:
    """The If or Case whose predicate or index this Switch asks for; None for other nodes."""
    match = _OF_CONDITIONAL.fullmatch(node)
    return None if match is None else match[1]


def loop_of(condition: str) -> str | None:
    """The While whose LoopCond this is; None for other nodes."""
    match = _CONDITION.fullmatch(condition)
    return None if match is None else match[1]


def is_switch_of(node: str, loop: str) -> bool:
    """Whether a node is a Switch of a While."""
    return node.startswith(f"{loop}/") and _SWITCH.search(node) is not None
