"""Chooses few small calls per kernel from what was recorded, and writes them as the file of the sweep.

python -m tests.devices.kernels.sweep.choosing candidates calls.txt.* candidates.gz
python -m tests.devices.kernels.sweep.tensorflow_answers --unchanged candidates.gz unchanged.json
python -m tests.devices.kernels.sweep.choosing final candidates.gz unchanged.json data/calls.gz
"""

from __future__ import annotations

import base64
import sys
from collections import defaultdict
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from partita.devices.kernels.registry import registered_ops
from partita.graph.attrs import decode, encode
from partita.graph.ops.registry import ArgDef, lookup_op
from partita.graph.protos import GraphDef
from tests.devices.kernels.sweep.cases import TARGET, read_graphs, write_graphs
from tests.devices.kernels.sweep.sweeping import Case, load
from tests.devices.kernels.sweep.verdicts import LETTERS, read_verdicts

CANDIDATES = 3  # per kernel and kinds of its inputs
CHOSEN = 2  # calls per kernel, whose inputs are of different kinds
TYPICAL = 6  # elements of an input


def _kinds(case: Case) -> str:
    """What decides which changes there are: the sorts of elements."""
    return "".join(value.dtype.kind for value in case.inputs.values())


def _price(case: Case) -> tuple[int, int]:
    """Best first: no empty inputs, few calls before, inputs of a typical size."""
    sizes = [value.size for value in case.inputs.values()]
    return (
        50 * sizes.count(0) + 3 * len(case.graph.node) + sum(abs(size - TYPICAL) for size in sizes),
        len(case.inputs),
    )


def _as(op: str, data: bytes) -> bytes | None:
    """The same call of another op, for one that no test calls; None if its inputs or attrs are others."""
    graph = GraphDef.FromString(data)
    node = next(node for node in graph.node if node.name == TARGET)
    mine, theirs = lookup_op(op), lookup_op(node.op)
    if [_sort(arg) for arg in mine.input_args] != [_sort(arg) for arg in theirs.input_args]:
        return None
    for name in set(node.attr) - set(mine.attrs):
        del node.attr[name]
    for name in set(mine.attrs) - set(node.attr):
        if name not in mine.defaults:
            return None
        node.attr[name].CopyFrom(encode(decode(mine.defaults[name]), mine.attrs[name].type))
    node.op = op
    return graph.SerializeToString(deterministic=True)


def _sort(arg: ArgDef) -> tuple[object, ...]:
    return arg.type, arg.type_attr, arg.number_attr, arg.type_list_attr, arg.is_ref


def candidates(files: Sequence[str]) -> list[bytes]:
    """The best recorded calls of each kernel and each of its kinds of inputs."""
    recorded: dict[tuple[str, str], dict[bytes, Case]] = defaultdict(dict)
    for line in {line for file in files for line in Path(file).read_text().splitlines()}:
        op, _, text = line.partition(" ")
        data = base64.b64decode(text)
        try:
            case = load(data)
        except Exception as error:  # noqa: BLE001 - no graph can hold it; it is named
            print(op, repr(error)[:200])
            continue
        recorded[op, _kinds(case)][data] = case
    for op in sorted(registered_ops() - {op for op, _ in recorded}):
        for sibling in get_close_matches(op, sorted({op for op, _ in recorded}), 6, 0.5):
            for kinds in [kinds for other, kinds in list(recorded) if other == sibling]:
                for data in list(recorded[sibling, kinds])[:CANDIDATES]:
                    renamed = _as(op, data)
                    if renamed is not None:
                        recorded[op, kinds][renamed] = load(renamed)
    chosen: list[bytes] = []
    for key in sorted(recorded):
        chosen += sorted(recorded[key], key=lambda data: (*_price(recorded[key][data]), data))[:CANDIDATES]
    return chosen


def final(file: str, answers: str) -> list[bytes]:
    """Of each kernel the best calls with different kinds of inputs, before all those that TensorFlow runs."""
    ranked: dict[str, list[tuple[bool, tuple[int, int], bytes, str]]] = defaultdict(list)
    for data, answer in zip(read_graphs(Path(file)), read_verdicts(Path(answers)), strict=True):
        case = load(data)
        ranked[case.op].append((answer.theirs != LETTERS["OK"], _price(case), data, _kinds(case)))
    chosen: list[bytes] = []
    for op in sorted(ranked):
        kinds: set[str] = set()
        for is_refused, _, data, kind in sorted(ranked[op]):
            if kind not in kinds and len(kinds) < CHOSEN and not (is_refused and kinds):
                kinds.add(kind)
                chosen.append(data)
    return chosen


def main(how: str, *files: str) -> None:
    """One of the two steps."""
    graphs = candidates(files[:-1]) if how == "candidates" else final(*files[:-1])
    write_graphs(Path(files[-1]), graphs)
    print(f"{len(graphs)} calls of {len({load(data).op for data in graphs})} kernels")


if __name__ == "__main__":
    main(*sys.argv[1:])
