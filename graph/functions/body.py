"""The body of a function for one call: a graph, made from the FunctionDef and the attrs of the call.

The nodes come in the order arguments, nodes of the definition, results, as far as inputs allow. An argument or result
that stands for several tensors has one node for each. All attrs have values. Equal calls share one `FunctionBody`, so
its graph must not be changed.

The errors are those of TensorFlow's `InstantiateFunction`; cycles and bad names are reported by the importer, as there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from ...errors import InternalError, InvalidArgumentError, NotFoundError, PartitaError
from ..attrs import encode
from ..dtypes import DataType, base_type, dtype_name
from ..graph import Graph
from ..graphdef.default_attrs import add_defaults
from ..graphdef.importer import graph_def_to_graph
from ..library.function_library import FunctionLibrary
from ..node import Node
from ..ops.attr_checks import check_type
from ..ops.registry import ArgDef
from ..ops.summaries import arguments_text, node_for_error, summarize_attr, summarize_op
from ..ops.type_inference import PortTypes, arg_types
from ..protos import AttrValue, FunctionDef, GraphDef, NameAttrList, NodeDef

AttrValues = Mapping[str, AttrValue]


@dataclass(frozen=True, slots=True, eq=False)
class FunctionBody:
    """One instantiated function: its graph, and the nodes of its arguments and results.

    `arguments` and `results` are in order of position; `control_results` are nodes that must have run when the call
    ends, by ascending id. As in TensorFlow, control results that name no node are ignored.
    """

    name: str
    graph: Graph
    arguments: tuple[Node, ...]
    results: tuple[Node, ...]
    control_results: tuple[Node, ...]
    attrs: AttrValues
    """attrs of the definition as a whole, such as `_noinline`"""
    kept: dict[Hashable, object] = field(default_factory=dict, repr=False)
    """what was found out about the body, by who did; bodies do not change"""

    @property
    def argument_types(self) -> PortTypes:
        """Element types of the arguments."""
        return tuple(base_type(node.output_types[0]) for node in self.arguments)

    @property
    def result_types(self) -> PortTypes:
        """Element types of the results."""
        return tuple(base_type(node.input_types[0]) for node in self.results)


def instantiate(library: FunctionLibrary, name: str, attrs: AttrValues | None = None) -> FunctionBody:
    """The body of a function for a call with `attrs`; attrs that the function does not use make no difference.

    Raises NotFoundError for an unknown function or op or an attr that the call lacks, InvalidArgumentError for a
    malformed definition, and import errors.
    """
    definition = library.find(name)
    if definition is None:
        raise NotFoundError(f"Function {name} is not defined.")
    used = library.attrs_used_by(name)
    used_attrs = {key: value for key, value in (attrs or {}).items() if key in used}
    return kept_body(library, name, used_attrs, lambda: _Instantiation(library, definition, used_attrs).run())


def kept_body(library: FunctionLibrary, name: str, attrs: AttrValues, make: Callable[[], FunctionBody]) -> FunctionBody:
    """The body that a library caches under a name and attrs; the first call makes it with `make`."""
    key = name, tuple((key, attrs[key].SerializeToString(deterministic=True)) for key in sorted(attrs))
    body = library.bodies.get(key)
    if body is None:
        body = library.bodies[key] = make()
    assert isinstance(body, FunctionBody)  # only this function writes there
    return body


def instantiate_call(library: FunctionLibrary, function: NameAttrList) -> FunctionBody:
    """The body for an attr of type func; raises as `instantiate`."""
    return instantiate(library, function.name, function.attr)


@dataclass(frozen=True, slots=True)
class _Value:
    """The tensors of a name inside the function: ports of one node, or one port each of several arguments."""

    node: int
    port: int
    types: PortTypes
    is_argument: bool

    def source(self, k: int) -> tuple[int, int]:
        """Node and port of tensor `k`."""
        return (self.node + k, 0) if self.is_argument else (self.node, self.port + k)


class _Instantiation:
    """One instantiation: the nodes in order, and the names that inputs and results may use."""

    def __init__(self, library: FunctionLibrary, definition: FunctionDef, attrs: AttrValues) -> None:
        self.library = library
        self.definition = definition
        self.signature = library.lookup(definition.signature.name)
        defaults = {name: AttrValue.FromString(value) for name, value in self.signature.defaults.items()}
        self.attrs = {**defaults, **attrs}
        self.nodes: list[NodeDef] = []
        self.values: dict[str, _Value] = {}
        self._num_results = 0
        self.numbers: dict[str, int] = {}  # node numbers of nodes and arguments, by the name that control inputs use

    def run(self) -> FunctionBody:
        self._check_attrs()
        for position, argument in enumerate(self.signature.input_args):
            with _named(arguments_text([argument])):
                self._add_arguments(position, argument)
        first = len(self.nodes)
        for step in (self._add_node, self._name_outputs, self._connect):
            for number, written in enumerate(self.definition.node_def, first):
                place = "" if step == self._add_node else node_for_error(written.name)
                with _named(place, node=written.name, op=written.op):
                    step(number, written)
        last = len(self.nodes)
        for result in self.signature.output_args:
            with _named(f"function output {arguments_text([result])}"):
                self._add_results(result)
        return self._body(first, last)

    def _check_attrs(self) -> None:
        for name, declared in self.signature.attrs.items():
            if name not in self.attrs:
                raise NotFoundError(f"Attr {name} is not found from {summarize_op(self.signature)}")
            try:
                check_type(self.attrs[name], declared.type)
            except InvalidArgumentError as error:
                raise InvalidArgumentError(f"{error.message}\n\tfor attr '{name}'") from None

    def _name(self, name: str, value: _Value) -> None:
        if name in self.values:
            raise InvalidArgumentError(f"Duplicated {'arg' if value.is_argument else 'ret'} name: {name}")
        self.values[name] = value
        self.numbers.setdefault(name.partition(":")[0], value.node)

    def _add_arguments(self, position: int, argument: ArgDef) -> None:
        types, first = _types(argument, self.attrs), len(self.nodes)
        if not types:
            raise InternalError("Expected a list of at least one dtype")
        self._name(argument.name, _Value(first, 0, types, is_argument=True))
        for k, dtype in enumerate(arg_types(argument, self.attrs)):
            self._name(f"{argument.name}:{k}", _Value(first + k, 0, types[k : k + 1], is_argument=True))
            node = self._add_end(argument.name, k, len(types), "_Arg", dtype, first + k)
            for name, value in self.definition.arg_attr[position].attr.items() if self._has_attrs(position) else ():
                node.attr[name].CopyFrom(value)

    def _has_attrs(self, position: int) -> bool:
        return position in self.definition.arg_attr  # reading a missing entry of a map would add it

    def _add_end(self, name: str, k: int, count: int, op: str, dtype: DataType, index: int) -> NodeDef:
        node = NodeDef(name=f"{name}_{k}" if count > 1 else name, op=op)
        node.attr["T"].CopyFrom(encode(dtype, "type"))
        node.attr["index"].i = index
        self.nodes.append(node)
        return node

    def _add_node(self, _number: int, written: NodeDef) -> None:
        """Adds a node of the definition with all attrs bound and no inputs yet."""
        node = NodeDef(name=written.name, op=written.op, device=written.device)
        for remark in ("experimental_debug_info", "experimental_type"):
            if written.HasField(remark):
                getattr(node, remark).CopyFrom(getattr(written, remark))
        for name, value in written.attr.items():
            node.attr[name].CopyFrom(value)
            if not _substitute(node.attr[name], self.attrs):
                raise InvalidArgumentError(f"Failed to bind all placeholders in {summarize_attr(value)}")
        add_defaults(node, self.library.lookup(written.op))
        self.nodes.append(node)

    def _name_outputs(self, number: int, _written: NodeDef) -> None:
        node = self.nodes[number]
        signature, port = self.library.lookup(node.op), 0
        if not signature.output_args:
            self._name(node.name, _Value(number, 0, (), is_argument=False))
        for output in signature.output_args:
            types = _types(output, node.attr)
            self._name(f"{node.name}:{output.name}", _Value(number, port, types, is_argument=False))
            for k in range(len(types)):
                value = _Value(number, port + k, types[k : k + 1], is_argument=False)
                self._name(f"{node.name}:{output.name}:{k}", value)
            port += len(types)

    def _connect(self, number: int, written: NodeDef) -> None:
        node, inputs = self.nodes[number], written.input
        used = 0
        for argument in self.library.lookup(node.op).input_args:
            used = self._connect_argument(node, argument, inputs, used)
        for i, text in enumerate(inputs[used:], used):
            if not text.startswith("^"):
                raise InvalidArgumentError(f"Expected input[{i}] == '{text}' to be a control input.")
            if text[1:] not in self.numbers:
                raise InvalidArgumentError(f"input[{i}] == '{text}', is not found.")
            node.input.append(f"^{self.nodes[self.numbers[text[1:]]].name}")

    def _connect_argument(self, node: NodeDef, argument: ArgDef, inputs: Sequence[str], used: int) -> int:
        """Connects the inputs of one argument, which may take several; returns how many inputs are used so far."""
        types = _types(argument, node.attr)
        done = 0
        while done < len(types):
            if used >= len(inputs):
                raise InvalidArgumentError(f"Attempt to access beyond input size: {used} >= {len(inputs)}")
            text = inputs[used]
            value = self.values.get(text)
            if value is None:
                raise InvalidArgumentError(f"input {text} is not found: {node_for_error(node.name)}")
            if len(value.types) > len(types) - done:
                raise InvalidArgumentError(f"Input {text} too long for {argument.name}")
            for k, dtype in enumerate(value.types):
                if dtype != types[done + k]:
                    raise InvalidArgumentError(
                        f"input {argument.name}[{done + k}] expected type {dtype_name(types[done + k])} != "
                        f"{dtype_name(dtype)}, the type of {text}[{k}]"
                    )
                node.input.append(self._text(value, k))
            done += len(value.types)
            used += 1
        return used

    def _text(self, value: _Value, k: int) -> str:
        number, port = value.source(k)
        return f"{self.nodes[number].name}:{port}" if port else self.nodes[number].name

    def _add_results(self, result: ArgDef) -> None:
        if result.name not in self.definition.ret:
            raise InvalidArgumentError(f"Return {result.name} missing.")
        text, types = self.definition.ret[result.name], _types(result, self.attrs)
        value = self.values.get(text)
        if value is None:
            raise InvalidArgumentError(f"Return {result.name} -> {text} is not found.")
        if types != value.types:
            listed = [", ".join(map(dtype_name, kinds)) for kinds in (types, value.types)]
            raise InvalidArgumentError(f"Invalid ret types {result.name} : {' vs. '.join(listed)}")
        for k, dtype in enumerate(arg_types(result, self.attrs)):
            source = self._text(value, k)
            node = self._add_end(f"{result.name}_RetVal", k, len(types), "_Retval", dtype, self._num_results)
            node.input.append(source)
            self._num_results += 1

    def _body(self, first: int, last: int) -> FunctionBody:
        graph = graph_def_to_graph(GraphDef(node=self.nodes), allow_internal_names=True, library=self.library)
        names = {node.name: node for node in graph.op_nodes()}
        ordered = [names[node.name] for node in self.nodes]
        control = set(self.definition.control_ret.values())
        return FunctionBody(
            self.definition.signature.name,
            graph,
            tuple(ordered[:first]),
            tuple(ordered[last:]),
            tuple(node for node in graph.op_nodes() if node.name in control),
            dict(self.definition.attr),
        )


@contextmanager
def _named(place: str, node: str | None = None, op: str | None = None) -> Iterator[None]:
    """Adds to errors, as TensorFlow does, what part of the function they are in."""
    try:
        yield
    except PartitaError as error:
        message = f"{error.message}\n\tIn {place}" if place else error.message
        raise type(error)(message).located(node=node, op=op).because(error.reason) from None


def _types(argument: ArgDef, attrs: AttrValues) -> PortTypes:
    """Element types of the tensors of an argument, without references; NotFoundError for an attr that is missing."""
    for kind, name in (
        ("number", argument.number_attr),
        ("type list", argument.type_list_attr),
        ("type", argument.type_attr),
    ):
        if name and name not in attrs:  # reading a missing entry of a map would add it
            raise NotFoundError(f"{kind} attr not found: {name}")
    return tuple(map(base_type, arg_types(argument, attrs)))


def _substitute(value: AttrValue, attrs: AttrValues) -> bool:
    """Replaces placeholders in `value` by attrs of the call; returns whether all of them had a value."""
    if value.HasField("placeholder"):
        if value.placeholder not in attrs:
            return False
        value.CopyFrom(attrs[value.placeholder])
        return True
    functions = (value.func,) if value.HasField("func") else value.list.func
    return all(_substitute(inner, attrs) for function in functions for inner in function.attr.values())
