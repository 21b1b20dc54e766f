"""The nodes of a GraphDef cut into texts: the name and the inputs of each, and the rest of its bytes.

Nodes are many, and few differ in more than names and inputs. To make a message of each and read its fields takes longer
than all other work of an import, so nodes stay bytes that are cut where fields begin and end:

    0a 01 61    12 03 41 64 64    1a 01 78    1a 01 79    2a 07 ...
    name "a"    op "Add"          input "x"   input "y"   attr

    names a    inputs x, y    rest 12 03 41 64 64 2a 07 ...

The rest is a serialised node without name and inputs, equal for all nodes that differ in nothing else. The fields of a
node stand in the order of their numbers, as protobuf writes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays import Integers, Numbers
from ..protos import GraphNodes, LazyGraphDef
from ..varint import read_varint

_NAME, _OP, _INPUT = 0x0A, 0x12, 0x1A  # tags of fields 1 to 3, all texts
_MORE = 0x80  # a byte of a varint which is not the last one
_FEW = 8  # so few nodes are looked at one by one: a call of numpy takes as long as one of them


class NodeTexts(NamedTuple):
    """Texts of consecutive nodes; `inputs` has those of all nodes, `counts` how many each has.

    `rests` can be read once: large tensors are in them, so one is in memory at a time.
    """

    names: list[str]
    inputs: list[str]
    counts: list[int]
    rests: Iterator[bytes]


class NodeBytes:
    """The nodes of a GraphDef as they are serialised."""

    def __init__(self, graph_def: LazyGraphDef, data: bytes) -> None:
        """`graph_def` has been parsed from `data`, so these are whole and their texts are UTF-8; it is not kept."""
        in_order = graph_def.SerializeToString()  # also the nodes before the other fields of the graph
        self._data = data if data == in_order else in_order  # the former as a rule, and then there is no second copy
        del in_order
        self._bytes: npt.NDArray[np.uint8] = np.frombuffer(self._data, np.uint8)
        sizes = np.fromiter(map(len, GraphNodes.FromString(self._data).node), np.int64)
        headers = 2 + sum(((sizes >> bits) > 0).astype(np.int64) for bits in (7, 14, 21, 28))  # a tag and a varint
        self._ends: Numbers = np.cumsum(headers + sizes)
        self._starts: Numbers = self._ends - sizes

    def __len__(self) -> int:
        return len(self._ends)

    def texts(self, first: int, last: int) -> NodeTexts:
        """The texts of the nodes from number `first` to before `last`."""
        data, starts, ends = self._data, self._starts[first:last], self._ends[first:last]
        name, name_end = self._cut(starts, ends, _NAME)
        _, op_end = self._cut(name_end, ends, _OP)
        node, begin, end, inputs_end = self._inputs(op_end, ends)
        rests = zip(name_end.tolist(), op_end.tolist(), inputs_end.tolist(), ends.tolist(), strict=True)
        return NodeTexts(
            [data[a:b].decode() for a, b in zip(name.tolist(), name_end.tolist(), strict=True)],
            [data[a:b].decode() for a, b in zip(begin.tolist(), end.tolist(), strict=True)],
            np.bincount(node, minlength=len(ends)).tolist(),
            (data[a:b] + data[c:d] for a, b, c, d in rests),
        )

    def _cut(self, at: Numbers, ends: Numbers, tag: int) -> tuple[Numbers, Numbers]:
        """From where to where the text of the field at `at` reaches; nowhere if that field has another tag."""
        begin, end = at.copy(), at.copy()
        has = np.flatnonzero(self._has(at, ends, tag))
        begin[has], end[has] = self._text(at[has])
        return begin, end

    def _inputs(self, at: Numbers, ends: Numbers) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """Of all inputs the node, and from where to where the text reaches; and by node where its inputs end.

        The first inputs of all nodes are cut together, then the second ones, while there are many.
        """
        at, node = at.copy(), np.arange(len(at))
        rounds: list[tuple[Numbers, Numbers, Numbers]] = []
        while len(node := node[self._has(at[node], ends[node], _INPUT)]) > _FEW:
            begin, end = self._text(at[node])
            rounds.append((node, begin, end))
            at[node] = end
        rounds += [self._inputs_of(n, at, int(ends[n])) for n in node.tolist()]
        nodes, begins, texts_end = (np.concatenate([np.zeros(0, np.int64), *column]) for column in _columns(rounds))
        order = np.argsort(nodes, kind="stable")
        return nodes[order], begins[order], texts_end[order], at

    def _inputs_of(self, n: int, at: Numbers, end: int) -> tuple[Numbers, Numbers, Numbers]:
        """The inputs of one node from `at[n]` on, which is moved to their end."""
        position, begins, ends = int(at[n]), list[int](), list[int]()
        while position < end and self._data[position] == _INPUT:
            size, begin = read_varint(self._data, position + 1)
            position = begin + size
            begins.append(begin)
            ends.append(position)
        at[n] = position
        return np.full(len(begins), n), np.array(begins, np.int64), np.array(ends, np.int64)

    def _has(self, at: Numbers, ends: Numbers, tag: int) -> npt.NDArray[np.bool_]:
        is_inside: npt.NDArray[np.bool_] = (at < ends) & (self._bytes.take(at, mode="clip") == tag)
        return is_inside

    def _text(self, at: Numbers) -> tuple[Numbers, Numbers]:
        """From where to where the texts of the fields at `at` reach: behind a tag and their size as a varint."""
        begin = at + 2
        byte: Integers = self._bytes[at + 1].astype(np.int64)
        size: Numbers = byte & (_MORE - 1)
        more, shift = np.flatnonzero(byte >= _MORE), 7
        while len(more):
            byte = self._bytes[begin[more]].astype(np.int64)
            begin[more] += 1
            size[more] |= (byte & (_MORE - 1)) << shift
            more, shift = more[byte >= _MORE], shift + 7
        return begin, begin + size


def _columns(rounds: list[tuple[Numbers, Numbers, Numbers]]) -> list[tuple[Numbers, ...]]:
    return list(zip(*rounds, strict=True)) or [(), (), ()]
