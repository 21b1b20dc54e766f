"""Renames nodes of a GraphDef, in place: their names, the frames of their loops, and the groups that they belong to.

Inputs are left alone. An Enter `e` of the frame `f`, colocated with `x`:

    add_prefix_and_suffix(node, "a/", "/b")        a/e/b, of the frame a/f/b
    add_prefix_to_groups(node, {"x"}, "a/")        colocated with a/x
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping

from ...errors import NotFoundError
from ..ops.record import NodeClass, record_of
from ..protos import NodeDef

_FRAME, _CLASS, _LOC = "frame_name", "_class", b"loc:@"


def add_prefix_and_suffix(node: NodeDef, prefix: str, suffix: str = "", *, uniquify_frame_name: bool = True) -> None:
    """Renames a node, and the frame that it enters, so that the loops of two copies of a graph stay apart.

    Raises NotFoundError for an Enter without a frame name.
    """
    if uniquify_frame_name and record_of(node.op).node_class is NodeClass.ENTER:
        if _FRAME not in node.attr:
            raise NotFoundError(f"No attr named '{_FRAME}' in NodeDef:", node=node.name, op=node.op)
        node.attr[_FRAME].s = prefix.encode() + node.attr[_FRAME].s + suffix.encode()
    node.name = f"{prefix}{node.name}{suffix}"


def add_prefix_to_groups(node: NodeDef, names: Container[str], prefix: str) -> None:
    """Puts the prefix before the names of nodes that the node is colocated with, as far as they are among `names`."""
    _rename_groups(node, lambda name: prefix + name if name in names else name)


def rename_groups(node: NodeDef, names: Mapping[str, str]) -> None:
    """Replaces the names of nodes that the node is colocated with, as far as they are keys of `names`."""
    _rename_groups(node, lambda name: names.get(name, name))


def _rename_groups(node: NodeDef, renamed: Callable[[str], str]) -> None:
    if _CLASS not in node.attr:
        return
    constraints = node.attr[_CLASS].list.s
    for i, constraint in enumerate(constraints):
        if constraint.startswith(_LOC):
            constraints[i] = _LOC + renamed(constraint.removeprefix(_LOC).decode()).encode()
