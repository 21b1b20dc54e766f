"""A plugin of pytest that writes the calls of kernels in a run of tests as small graphs, one per line of a file.

    PARTITA_RECORD=calls.txt python -m pytest -p tests.devices.kernels.sweep.recording tests/devices/kernels

Each graph has the call as the node "target". Its tensors of numbers and strings are constants named "input_0", ...;
handles, variables and variants come from the nodes that made them in the test, which run before it in the same order.
"""

from __future__ import annotations

import base64
import os
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.devices.kernels.registry import Construction, Factory, Kernel, KernelsByKind, is_deferred, table
from partita.devices.state import ResourceHandle, Variable
from partita.graph import NameAttrList
from partita.graph.attrs import encode
from partita.graph.dtypes import DataType, base_type, is_ref
from partita.graph.ops.registry import lookup_op
from partita.graph.protos import GraphDef, NodeDef
from partita.graph.tensor import numpy_to_tensor, shape_to_proto

PER_OP = 40  # calls of one op that are kept, in one process
ELEMENTS = 600  # of all inputs
BEFORE = 12  # calls that one call may need
OBJECTS = (DataType.RESOURCE, DataType.VARIANT)
OWN_FOLDER = re.compile(re.escape(tempfile.gettempdir().encode()) + rb"/pytest-of-[^/]+/pytest-\d+/[^/]+/?")
"""what calls find in the folder of a test they find in the working folder later"""


@dataclass
class Call:
    """One call: what it got and gave, and the keys of the objects among them."""

    node: Construction
    inputs: list[Any]  # Any: what kernels take
    taken: list[list[object]]
    made: list[list[object]] = field(default_factory=list)
    shared: set[object] = field(default_factory=set)


_calls: list[Call] = []
_kept: list[object] = []
_seen: Counter[str] = Counter()
_lines: dict[str, set[str]] = defaultdict(set)


def _keys(value: Any, dtype: DataType) -> list[object]:
    if isinstance(value, Variable):
        _kept.append(value)
        if value.dtype == DataType.STRING and value.value is not None and value.value.shape == (2,):
            return [("ref", *value.value.tolist())]
        return [id(value)]
    if base_type(dtype) == DataType.STRING:
        folders = [OWN_FOLDER.match(item) for item in np.asarray(value, object).reshape(-1).tolist()]
        return [folder[0] for folder in folders if folder]
    if base_type(dtype) not in OBJECTS:
        return []
    keys: list[object] = []
    for item in np.asarray(value, object).reshape(-1).tolist():
        _kept.append(item)
        keys.append(item.key if isinstance(item, ResourceHandle) else id(item))
    return keys


def _copied(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype == object:
        copy = np.empty(value.shape, object)
        copy.reshape(-1)[:] = [
            OWN_FOLDER.sub(b"", x) if isinstance(x, bytes) else x for x in value.reshape(-1).tolist()
        ]
        return copy
    return np.array(value) if isinstance(value, (np.ndarray, np.generic)) else value


def _watched(node: Construction, kernel: Kernel) -> Kernel:
    deferred = is_deferred(node.op)

    def call(*given: Any) -> Any:
        inputs = given[1:] if deferred else given
        elements = sum(np.size(x) for x in inputs if isinstance(x, (np.ndarray, np.generic)))
        if elements > 20 * ELEMENTS or len(_calls) > 500 or len(inputs) != len(node.input_types):
            return kernel(*given)
        taken = [_keys(value, dtype) for value, dtype in zip(inputs, node.input_types, strict=True)]
        record = Call(node, [_copied(x) for x in inputs], taken)
        record.shared = {node.attrs[a] for a in ("shared_name",) if node.attrs.get(a)}
        if deferred:
            _calls.append(record)
            return kernel(*given)
        result = kernel(*given)
        results = result if isinstance(result, tuple) else (result,) if node.output_types else ()
        if len(results) == len(node.output_types):
            record.made = [_keys(value, dtype) for value, dtype in zip(results, node.output_types, strict=True)]
            _calls.append(record)
        return result

    return call


def _needed(target: int) -> list[int] | None:
    """The calls that made, or changed, what a call takes, in order; None if they are too many."""
    wanted = {key for keys in _calls[target].taken for key in keys}
    stage = _calls[target].node.op.removeprefix("Ordered").removeprefix("Map").startswith(("Stage", "Unstage"))
    before: list[int] = []
    for i in range(target - 1, -1, -1):
        call = _calls[i]
        touched = {key for keys in (*call.taken, *call.made) for key in keys}
        if touched & wanted or (stage and "tage" in call.node.op and call.node.state is _calls[target].node.state):
            before.append(i)
            wanted |= {key for keys in call.taken for key in keys}
    return before[::-1] if len(before) <= BEFORE else None


class _Writer:
    """A graph that is being written."""

    def __init__(self) -> None:
        self.graph = GraphDef()
        self.graph.versions.producer = 2474
        self.made: dict[object, str] = {}
        self.last = ""

    def constant(self, name: str, value: Any, dtype: DataType) -> str:
        node = self.graph.node.add(name=name, op="Const")
        node.attr["dtype"].type = dtype  # type: ignore[assignment]  # two classes of one enum
        node.attr["value"].tensor.CopyFrom(numpy_to_tensor(np.asarray(value), dtype))
        return name

    def variable(self, name: str, value: Variable) -> str:
        """A reference variable that a test made by hand."""
        node = self.graph.node.add(name=name, op="VariableV2")
        node.attr["dtype"].type = value.dtype  # type: ignore[assignment]  # two classes of one enum
        node.attr["shape"].shape.CopyFrom(shape_to_proto(value.shape if value.value is None else value.value.shape))
        if value.value is not None:
            self.constant(f"{name}/value", value.value, value.dtype)
            assign = self.graph.node.add(name=f"{name}/assign", op="Assign", input=[name, f"{name}/value"])
            assign.attr["T"].type = value.dtype  # type: ignore[assignment]  # two classes of one enum
            assign.attr["validate_shape"].b = False
            self.last = assign.name
        return name

    def call(self, call: Call, name: str) -> None:
        """A node for a call, after all earlier ones. Raises LookupError for an object of unknown origin."""
        sources = [self._source(call, port, name) for port in range(len(call.inputs))]
        signature = lookup_op(call.node.op)
        node = NodeDef(name=name, op=call.node.op, input=sources)
        for attr, value in call.node.attrs.items():
            definition = signature.attrs.get(attr)
            if definition is not None:
                node.attr[attr].CopyFrom(encode(value, definition.type))
        if self.last:
            node.input.append(f"^{self.last}")
        self.graph.node.append(node)
        self.last = name
        for port, keys in enumerate(call.made):
            for key in keys:
                self.made.setdefault(key, f"{name}:{port}")
        self._functions(call)

    def _source(self, call: Call, port: int, name: str) -> str:
        value, dtype, keys = call.inputs[port], call.node.input_types[port], call.taken[port]
        known = [key for key in keys if key in self.made]
        if is_ref(dtype) and not known and isinstance(value, Variable):
            made = self.variable(f"variable_{len(self.made)}", value)
            self.made.update(dict.fromkeys(keys, made))
            return made
        if base_type(dtype) in OBJECTS or is_ref(dtype):
            if len(keys) != 1 or not known:
                raise LookupError(name)
            return self.made[keys[0]]
        prefix = "input_" if name == "target" else f"{name}/"
        return self.constant(f"{prefix}{port}", value, base_type(dtype))

    def _functions(self, call: Call) -> None:
        names = [v.name for v in call.node.attrs.values() if isinstance(v, NameAttrList) and v.name]
        names += [
            f.name for v in call.node.attrs.values() if isinstance(v, tuple) for f in v if isinstance(f, NameAttrList)
        ]
        if not names:
            return
        if call.node.functions is None:
            raise LookupError(names[0])
        message = call.node.functions.library.reachable(names).message
        present = {function.signature.name for function in self.graph.library.function}
        self.graph.library.function.extend([f for f in message.function if f.signature.name not in present])


def _write(target: int) -> str | None:
    before = _needed(target)
    if before is None:
        return None
    writer = _Writer()
    try:
        for i in before:
            writer.call(_calls[i], f"before_{i}")
        writer.call(_calls[target], "target")
    except Exception:  # noqa: BLE001 - no graph can hold this call
        return None
    data = writer.graph.SerializeToString()
    return None if len(data) > 20_000 or OWN_FOLDER.search(data) else base64.b64encode(data).decode()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Writes the calls of one test."""
    _calls.clear()
    _kept.clear()
    yield
    for i, call in enumerate(_calls):
        op = call.node.op
        if _seen[op] < 6 * PER_OP and len(_lines[op]) < PER_OP:
            _seen[op] += 1
            line = _write(i)
            if line is not None:
                _lines[op].add(line)


def pytest_sessionfinish() -> None:
    """Writes the file."""
    with Path(os.environ["PARTITA_RECORD"] + f".{os.getpid()}").open("w") as file:
        file.writelines(f"{op} {line}\n" for op in sorted(_lines) for line in sorted(_lines[op]))


def _watching(factory: Factory, node: Construction) -> Kernel:
    return _watched(node, factory(node))


def _watch() -> None:
    factories = table()
    factories.load_all()
    entries, origins = factories._entries, factories._origins  # the table has no door for this
    for op, factory in list(entries.items()):
        if not isinstance(factory, KernelsByKind):
            entries[op] = partial(_watching, factory)
            origins[op] = entries[op], origins[op][1]  # built in: others get another call


_watch()
