"""The graph of a pipeline: every stage is called once per micro-batch and direction, and gradients are added up.

    x -> Split -> forward_s0_m0 -> forward_s1_m0 -> backward_s1_m0 -> backward_s0_m0
              `-> forward_s0_m1 -> forward_s1_m1 -> backward_s1_m1 -> backward_s0_m1 -> sum of gradients -> update

A call reads the outputs of other calls for the same micro-batch, and on the way back the sums of gradients that the
call before it gave; a control edge leads to it from the call before it on its device. What does not depend on the
batch, such as the value of a variable, is computed once, outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from ...builder.extension import Extension
from ...builder.handles import Operation, Tensor
from ...dtypes import DataType, base_type
from ...edge_ends import Output
from ...graph import Graph
from ...node import Node
from ...ops.properties import properties_of
from ...protos import FunctionDefLibrary
from ..batch_shapes import COUNTS_PARTS
from ..devices_of_nodes import host_of
from .accumulation import SummingFunction, with_sums
from .functions import stage_function
from .region import Joining, MicroBatchRegion
from .schedules import CallOrder, PipelineShape, StageCall, started

_SCOPE = "pipeline"


class StageDirection(NamedTuple):
    """A stage in one direction."""

    is_forward: bool
    stage: int


@dataclass
class StagedStep:
    """A region cut into stages: what is called where, and in which order."""

    region: MicroBatchRegion
    stage_of: Mapping[int, int]
    outside: Mapping[int, int]
    """the stages of nodes outside the region, as far as they have one"""
    devices: Sequence[str]
    """by stage"""
    shape: PipelineShape
    order: CallOrder = ()
    is_mean: bool = False
    in_float32: bool = False
    """whether gradients of half precision are added up in float32"""

    def place(self, node: int) -> StageDirection:
        """Where a node of the region runs."""
        return StageDirection(node in self.region.forward_nodes, self.stage_of[node])

    def functions(self) -> dict[StageDirection, SummingFunction]:
        """The functions of all stages; a stage without gradients has none for the way back."""
        nodes: dict[StageDirection, list[int]] = {}
        for node in (*self.region.forward, *self.region.backward):
            nodes.setdefault(self.place(node), []).append(node)
        results, sums = self._results(), self._sums()
        library = self.region.graph.functions
        found = {}
        for place, members in sorted(nodes.items(), reverse=True):
            wanted = name = f"{'forward' if place.is_forward else 'backward'}_s{place.stage}"
            number = 1
            while name in library or f"{name}_adding" in library:
                name, number = f"{wanted}_{number}", number + 1
            function = stage_function(
                self.region, name, members, results.get(place, ()), partial(self._is_repeated, place.stage)
            )
            found[place] = with_sums(
                self.region.graph,
                function,
                sums.get(place, ()),
                is_repeated=self.shape.microbatches > 1,
                in_float32=self.in_float32,
            )
        return found

    def is_summed(self, source: Output) -> bool:
        """Whether calls add up a tensor: a gradient of the way back."""
        return self.region.gradients.get(source) is Joining.SUMMED and source[0] not in self.region.forward_nodes

    def _sums(self) -> dict[StageDirection, list[Output]]:
        """By place the tensors that its calls add up, in the order of the nodes."""
        found: dict[StageDirection, list[Output]] = {}
        for source in sorted(filter(self.is_summed, self.region.gradients)):
            found.setdefault(self.place(source[0]), []).append(source)
        return found

    def _is_repeated(self, stage: int, node: int) -> bool:
        """Whether a stage finds itself what another one finds of shapes on its way back: of tensors that it has too."""
        region = self.region
        if node not in region.nodes or node in region.forward_nodes:
            return False
        op_def, sources = region.graph.node_properties(node).op_def, [source for source, _ in region.sources(node)]
        if op_def.record.reads_shape:
            return all(stage in self._stages_with(source) for source in sources)
        is_known = bool(sources) and not op_def.is_stateful
        return is_known and all(region.is_copied(source) or self._is_repeated(stage, source) for source in sources)

    def _stages_with(self, node: int) -> set[int]:
        """The stages that compute or read a forward node's tensors on their way forward."""
        forward = self.region.forward_nodes
        return {self.stage_of[other] for other in (node, *self.region.readers(node)) if other in forward}

    def _results(self) -> dict[StageDirection, list[Output]]:
        """The outputs of each place that other places, the loss or updates need, in the order of the nodes."""
        gradients = [source for source in self.region.gradients if not self.is_summed(source)]
        needed = {self.region.step.loss, *gradients, *self.region.observed}
        for node in self.region.nodes:
            here = self.place(node)
            needed.update(
                s for s in self.region.sources(node) if s[0] in self.region.nodes and self.place(s[0]) != here
            )
        results: dict[StageDirection, list[Output]] = {}
        for source in sorted(needed):
            results.setdefault(self.place(source[0]), []).append(source)
        return results


def pipelined_graph(staged: StagedStep) -> Graph:
    """The graph of the pipeline: that of the region, with its nodes replaced by calls."""
    return _Construction(staged).run()


def last_calls(staged: StagedStep) -> list[str]:
    """The names of the last call of each stage on its way back, as far as there is one."""
    last = {call.stage: call for ordered in staged.order for call in ordered if not call.is_forward}
    return [f"{_SCOPE}/{call.name}" for call in last.values()]


@dataclass
class _Construction:
    """The graph being made."""

    staged: StagedStep
    functions: dict[StageDirection, SummingFunction] = field(init=False)
    graph: Graph = field(init=False)
    e: Extension = field(init=False)
    pieces: dict[int, list[Tensor]] = field(init=False)
    received: dict[tuple[str, str], Tensor] = field(default_factory=dict)
    """tensors on the device of a stage, by their name where they come from and the device"""
    shared: dict[tuple[Output, int], Tensor] = field(default_factory=dict)
    """what calls of a stage read from outside of the region"""
    calls: dict[StageCall, Operation] = field(default_factory=dict)
    latest: dict[StageDirection, Operation] = field(default_factory=dict)
    """the last call of each function so far"""
    wide: dict[Output, Tensor] = field(default_factory=dict)
    """sums in float32 of tensors of half precision"""
    numbers: dict[tuple[int, str], Tensor] = field(default_factory=dict)
    """the numbers of micro-batches, on the devices of stages"""

    def run(self) -> Graph:
        region = self.staged.region
        self.functions = self.staged.functions()
        self.graph = region.whole.clone()
        keep = region.whole.flags(lambda _: True)
        keep[[node for node in region.nodes | region.dropped if node < len(keep)]] = False
        self.graph.keep_only(keep)
        made = {f.name: f.definition for both in self.functions.values() for f in (both.first, both.later)}
        library = FunctionDefLibrary(function=made.values())
        self.graph.functions = self.graph.functions.merged(library)
        self.graph.versions = self.graph.versions.with_functions()
        self.e = Extension(self.graph)
        self.pieces = {node: self._split(node) for node in region.batch}
        self._add_calls()
        joinings = {region.step.loss: Joining.SUMMED, **region.gradients, **region.observed}
        replaced = {source: self._joined(source, joining) for source, joining in joinings.items()}
        self.e.flush()
        self._connect(replaced)
        self.graph.fix_source_and_sink_edges()
        return self.graph

    def _tensor(self, source: Output) -> Tensor:
        """A tensor that is computed outside the region."""
        node = self.staged.region.graph.node(source[0])
        return Tensor(self.e, node.name, source[1], base_type(node.output_types[source[1]]))

    def _split(self, placeholder: int) -> list[Tensor]:
        """The micro-batches of a placeholder, on the host, where they are fed: GPUs have no Split of integers."""
        region, count = self.staged.region, self.staged.shape.microbatches
        whole = self._tensor((placeholder, 0))
        if count == 1 or not any(node in region.nodes for node in region.readers(placeholder)):
            return [whole] * count
        with self.e.within(None, self._fed_on(placeholder)):
            return list(self.e.op("Split", 0, whole, num_split=count, name=f"{_SCOPE}/{whole.node}"))

    def _fed_on(self, placeholder: int) -> str:
        """The host that gets what is fed to a placeholder."""
        return host_of(self.staged.region.graph.requested_device(placeholder) or self.staged.devices[0])

    # Calls

    def _add_calls(self) -> None:
        before = {
            call: earlier
            for ordered in (self._made(calls) for calls in self.staged.order)
            for earlier, call in pairwise(ordered)
        }
        for call in self._made(started(self.staged.order, self.staged.shape.stages)[0]):
            self.calls[call] = self._call(call, before.get(call))

    def _made(self, calls: Iterable[StageCall]) -> list[StageCall]:
        """Those of some calls that there are functions for."""
        return [call for call in calls if (call.is_forward, call.stage) in self.functions]

    def _call(self, call: StageCall, before: StageCall | None) -> Operation:
        place = StageDirection(call.is_forward, call.stage)
        both, earlier = self.functions[place], self.latest.get(place)
        function = both.first if earlier is None else both.later
        waits_for = [name for source in function.waits_for for name in self._held(source, call.microbatch)]
        if before is not None:
            waits_for.append(self.calls[before].name)
        sums = [] if earlier is None else list(earlier)[both.first_sum() :]
        self.latest[place] = made = self.e.op(
            "StatefulPartitionedCall" if function.is_stateful else "PartitionedCall",
            [*(self._argument(source, call) for source in function.arguments), *sums],
            name=f"{_SCOPE}/{call.name}",
            device=self.staged.devices[call.stage],
            control=list(dict.fromkeys(waits_for)),
            attrs={
                "Tin": tuple(function.argument_types),
                "Tout": tuple(function.result_types),
                "f": function.name,
            },
        )
        return made

    def _argument(self, source: Output, call: StageCall) -> Tensor:
        """A tensor for a call, on its device already if it comes from another one: it is sent when it is ready.

        Once the call is inlined, it would be sent when the call before has ended.
        """
        if source[0] in self.staged.region.nodes:
            stage, tensor = self.staged.stage_of[source[0]], self._result(source, call.microbatch)
            return self._sent(tensor, self.staged.devices[stage], call)
        if source[0] in self.pieces:
            return self._sent(self.pieces[source[0]][call.microbatch], self._fed_on(source[0]), call)
        if self.staged.region.is_number(source[0]):
            return self._number(call)
        key = source, call.stage
        if key not in self.shared:
            here = self.staged.devices[self.staged.outside.get(source[0], call.stage)]
            self.shared[key] = self._sent(self._tensor(source), here, call)
        return self.shared[key]

    def _sent(self, tensor: Tensor, here: str, call: StageCall) -> Tensor:
        """A tensor on the device of a call, which comes from device `here`."""
        device = self.staged.devices[call.stage]
        if here == device or tensor.dtype is DataType.RESOURCE:
            return tensor
        key = tensor.name, device
        if key not in self.received:
            name = f"{_SCOPE}/to_s{call.stage}/{tensor.node.removeprefix(f'{_SCOPE}/')}"
            self.received[key] = self.e.op("Identity", tensor, name=name, device=device)[0]
        return self.received[key]

    def _number(self, call: StageCall) -> Tensor:
        """The number of the micro-batch of a call, on its device: of such constants hosts have the value, by type."""
        device = self.staged.devices[call.stage]
        key = call.microbatch, device
        if key not in self.numbers:
            name = f"{_SCOPE}/s{call.stage}_number_{call.microbatch}"
            with self.e.within(None, device):
                value = call.microbatch * self.staged.region.number_step
                self.numbers[key] = self.e.constant(value, DataType.INT32, name)
        return self.numbers[key]

    def _result(self, source: Output, microbatch: int) -> Tensor:
        """What the call of a stage gives for a tensor of the region."""
        place = self.staged.place(source[0])
        call = self.calls[StageCall(place.is_forward, place.stage, microbatch)]
        return call[self.functions[place].places[source]]

    def _held(self, source: int, microbatch: int) -> Iterator[str]:
        """The nodes that stand for one that a function waits for."""
        if source in self.staged.region.nodes:
            place = self.staged.place(source)
            yield self.calls[StageCall(place.is_forward, place.stage, microbatch)].name
        else:
            yield self.staged.region.name(source)

    # What leaves the region

    def _joined(self, source: Output, joining: Joining) -> Tensor:
        """A tensor of all micro-batches together, under the name of its node if that has one output."""
        node = self.staged.region.graph.node(source[0])
        name = node.name if node.num_outputs == 1 else f"{_SCOPE}/{node.name}_{source[1]}"
        with self.e.within(None, self.staged.devices[self.staged.stage_of[source[0]]]):
            if self.staged.is_summed(source):
                return self._total(source, name)
            if self.staged.shape.microbatches == 1:
                return self.e.op("Identity", self._result(source, 0), name=name)[0]
            if joining in (Joining.SUMMED, Joining.AVERAGED):
                return self._sum(source, name, is_mean=self.staged.is_mean or joining is Joining.AVERAGED)
            return self._rows(source, name, is_mean=self.staged.is_mean and joining is Joining.SCALED_ROWS)

    def _total(self, source: Output, name: str) -> Tensor:
        """The sum, or mean, of what calls added up, in the type that it has for one micro-batch."""
        place = self.staged.place(source[0])
        both = self.functions[place]
        total = self.latest[place][both.first_sum() + both.sums.index(source)]
        dtype = base_type(self.staged.region.graph.node_properties(source[0]).output_types[source[1]])
        is_mean, is_wide = self.staged.is_mean and self.staged.shape.microbatches > 1, total.dtype is not dtype
        if is_mean:
            total = self._divided(total, f"{_SCOPE}/{name}/mean" if is_wide else name)
        if is_wide:
            self.wide[source] = total
            return self.e.op("Cast", total, DstT=dtype, name=name)[0]
        return total if is_mean else self.e.op("Identity", total, name=name)[0]

    def _sum(self, source: Output, name: str, *, is_mean: bool) -> Tensor:
        """The sum, or mean, of a tensor of all micro-batches, added up in the order in which they are computed."""
        place = self.staged.place(source[0])
        values = [self._result(source, call.microbatch) for call in self.calls if call[:2] == place]
        total = values[0]
        for number, value in enumerate(values[1:], 1):
            is_last = number == len(values) - 1 and not is_mean
            total = self.e.op("AddV2", total, value, name=name if is_last else f"{_SCOPE}/{name}/sum_{number}")[0]
        return self._divided(total, name) if is_mean else total

    def _rows(self, source: Output, name: str, *, is_mean: bool) -> Tensor:
        """The rows of all micro-batches, in the order of the batch."""
        rows = [self._result(source, microbatch) for microbatch in range(self.staged.shape.microbatches)]
        joined = self.e.op("ConcatV2", rows, 0, name=f"{_SCOPE}/{name}/rows" if is_mean else name)[0]
        return self._divided(joined, name) if is_mean else joined

    def _divided(self, total: Tensor, name: str) -> Tensor:
        count = self.e.constant(self.staged.shape.microbatches, total.dtype, f"{_SCOPE}/{name}/count")
        return self.e.op("RealDiv", total, count, name=name, attrs={COUNTS_PARTS: True})[0]

    def _connect(self, replaced: Mapping[Output, Tensor]) -> None:
        """Edges from nodes of the region to those that are left come from what replaces them."""
        region, held = self.staged.region, set[tuple[StageDirection, int]]()
        for node in sorted(region.nodes):
            for edge in region.whole.node(node).out_edges():
                reader = edge.dst
                if not reader.is_op or reader.id in region.nodes or reader.id in region.dropped:
                    continue
                consumer = self.graph.node(reader.id)
                if edge.is_control:
                    place = self.staged.place(node)
                    for call in self._calls_of(place) if (place, consumer.id) not in held else ():
                        self.graph.add_control_edge(self.graph.node(self.e.id_of(call.name)), consumer)
                    held.add((place, consumer.id))
                else:
                    tensor = replaced[node, edge.src_output]
                    if (node, edge.src_output) in self.wide and _widens(reader):
                        tensor = self.wide[node, edge.src_output]
                        self.graph.set_node_properties(reader.id, properties_of("Identity", {"T": DataType.FLOAT}))
                    self.graph.add_edge(
                        self.graph.node(self.e.id_of(tensor.node)), tensor.port, consumer, edge.dst_input
                    )

    def _calls_of(self, place: StageDirection) -> Iterator[Operation]:
        return (operation for call, operation in self.calls.items() if call[:2] == place)


def _widens(node: Node) -> bool:
    """Whether a node casts to float32."""
    return node.op == "Cast" and node.output_types[0] is DataType.FLOAT
