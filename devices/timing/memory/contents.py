"""The contents of variables that are assigned to during a step.

An assignment to the handle of a variable makes the buffer of its value the content, until the next assignment or the
end of the step; nothing is copied. For v = VarHandleOp, r = ReadVariableOp(v), s = Add(r, g), AssignVariableOp(v, s),
and then t = ReadVariableOp(v):

    content   from                    to
    v         the start of the step   the end of the assignment, or of the last op that reads r
    s         the start of the Add    the end of the step; t is a view of s

The content from before the step is counted if something reads or changes it. A variable to which a step only assigns,
as an initialiser does, is counted once, as the value: it need not have had a content before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from typing import NamedTuple

import numpy as np

from ....graph.arrays import Flags, Numbers
from .tensors import Tensors
from .times import Times


class Contents(NamedTuple):
    """What reads and assignments of variables mean for buffers."""

    shares: Numbers
    """by output: whose buffer it has, with every read of a variable a view of the content it finds"""
    is_assigned: Flags
    """by output: a variable that gets a new content in this step"""
    had_content: Flags
    """by output: a variable whose content from before the step is counted"""
    values: Numbers
    """outputs that become contents"""
    used_until: list[tuple[int, int]]
    """(output, time in ns until which it is a content or in use)"""


def contents_of(tensors: Tensors, times: Times, shares: Numbers) -> Contents:
    """What reads and assignments mean; in `shares`, which is resolved, a read of a variable has a buffer of its own."""
    node, handle, value = tensors.assignments
    ran = times.ran()[node]
    is_assigned = np.zeros(len(shares), np.bool_)
    contents = Contents(shares.copy(), is_assigned, tensors.is_variable.copy(), values=value[ran], used_until=[])
    reads = tensors.variable_reads
    contents.shares[reads.this] = shares[reads.that]
    if not ran.any():
        return contents
    assigned = shares[handle[ran]]
    contents.is_assigned[assigned] = True
    contents.had_content[assigned] = False
    by_variable: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    rows = zip(assigned.tolist(), *_instants(times.end_ns, times, node[ran]), value[ran].tolist(), strict=True)
    for variable, end, order, output in rows:
        by_variable[variable].append((end, order, output))
    _keep_values(by_variable, times.makespan_ns(), contents)
    _find_contents(tensors, times, shares, by_variable, contents)
    return contents


def _instants(column: Numbers, times: Times, nodes: Numbers) -> tuple[list[int], list[int]]:
    """Times of nodes in a column, and their order in an instant."""
    return column[nodes].tolist(), times.order[nodes].tolist()


def _keep_values(by_variable: dict[int, list[tuple[int, int, int]]], makespan_ns: int, contents: Contents) -> None:
    """A value is a content until the next assignment ends."""
    for assignments in by_variable.values():
        assignments.sort()
        ends = [end for end, _, _ in assignments[1:]] + [makespan_ns]
        contents.used_until.extend((value, end) for (_, _, value), end in zip(assignments, ends, strict=True))


def _find_contents(
    tensors: Tensors,
    times: Times,
    shares: Numbers,
    by_variable: dict[int, list[tuple[int, int, int]]],
    contents: Contents,
) -> None:
    """Which content each op that reads or changes an assigned variable finds."""
    handle, node = tensors.reads
    uses = contents.is_assigned[shares[handle]] & tensors.uses_content[node] & times.ran()[node]
    users = node[uses]
    read_by = dict(
        zip(tensors.node[tensors.variable_reads.this].tolist(), tensors.variable_reads.this.tolist(), strict=True)
    )
    ends = times.end_ns[users].tolist()
    rows = zip(
        shares[handle[uses]].tolist(), *_instants(times.start_ns, times, users), ends, users.tolist(), strict=True
    )
    for variable, start, order, end, user in rows:
        assignments = by_variable[variable]
        before = bisect_right(assignments, (start, order, len(shares)))
        if before:
            if user in read_by:
                contents.shares[read_by[user]] = assignments[before - 1][2]
        else:
            contents.had_content[variable] = True
            contents.used_until.append((variable, max(end, assignments[0][0])))
