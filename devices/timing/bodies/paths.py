"""The path of calls to a graph, which begins the names of its nodes.

Calls may be nested by the ten thousand, and texts of all their paths would grow with the square of that: a path is a
chain, and a text only when somebody reads it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class CallPath:
    """The nodes that call, from the graph of the step inwards: its text is "call/inner/", "" for the step itself."""

    around: CallPath | None = None
    call: str = ""

    def into(self, call: str) -> CallPath:
        """The path of what a node of this graph calls."""
        return CallPath(self, call)

    def name(self, node: str) -> str:
        """The name of a node of this graph in the step."""
        return f"{self}{node}"

    def __str__(self) -> str:
        calls = []
        path = self
        while path.around is not None:
            calls.append(f"{path.call}/")
            path = path.around
        return "".join(reversed(calls))
