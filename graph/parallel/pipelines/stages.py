"""Which stage each node of a training step belongs to.

Forward nodes follow the name scopes of the stages, or are cut into stages of equal cost. A node in no scope is in the
latest stage of the nodes and variables that it reads. Nodes that prepare what another stage needs, such as labels, move
there.

    stages {"a": GPU:0, "b": GPU:1}       x -> a/y -> b/z -> loss        stage 0: a/y        stage 1: b/z, loss

A backward node is where most of what it reads is: forward tensors where they are computed or read, variables where they
are read. The gradient of a collective is where the collective is: what is gathered there need not be sent there.
Gradients flow from the last stage to the first, so a node is in no later stage than the gradients that it reads, and in
no earlier one than the variables whose gradients depend on it. Of equally good stages the first counts:

    b/dz = f(loss)                stage 1, as loss
    b/dw = MatMul(a/y, b/dz)      stage 1: the gradient of a variable of stage 1
    a/dy = MatMul(b/dz, w)        stage 1, where w is read
    a/dx = ReluGrad(a/dy, a/y)    stage 0, where a/y is computed
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ....errors import InvalidArgumentError
from ...analysis.collective_seats import GRADIENT_OF
from ...edge_ends import Output
from ...node import Node
from ...suggestions import suggestion
from .cut import cut_positions
from .region import MicroBatchRegion

Costs = Mapping[str, float] | Callable[[Node], float]
"""the cost of nodes: by name of a node or scope, or a function of a node; in any unit"""


def stages_by_scope(region: MicroBatchRegion, scopes: Mapping[str, int]) -> dict[int, int]:
    """The stages of forward nodes by name scope; the longest scope that fits counts.

    Raises InvalidArgumentError for a scope without nodes, and for a stage that reads what a later one computes.
    """
    found: dict[int, int | None] = {}
    used = set[str]()
    for node in region.forward:
        scope = _scope_of(region.name(node), scopes)
        used.update(() if scope is None else (scope,))
        found[node] = _of_inputs(region, node, scopes, found) if scope is None else scopes[scope]
    _check_used(region, scopes, used)
    return _checked(region, _settled(region, found))


def stages_by_cost(region: MicroBatchRegion, count: int, costs: Costs | None) -> dict[int, int]:
    """The forward nodes cut into `count` stages in topological order, so that the slowest one is as fast as can be.

    Nodes that only prepare the batch are where it is read first, so that no stage has these alone.

    Raises InvalidArgumentError for fewer nodes than stages, and for costs that are negative or of unknown names.
    """
    order, variables = region.forward, _reads_variables(region)
    staying = [node for node in order if node in variables]
    if len(staying) < count:
        staying = list(order)
    costs_by_node = node_costs(region, order, costs)
    positions = cut_positions(_joined_costs(order, costs_by_node, staying), _crossings(region, staying), count)
    cut = {staying[at]: k for k in range(count) for at in range(positions[k], positions[k + 1])}
    return _settled(region, {node: cut.get(node) for node in order})


def _joined_costs(order: Sequence[int], costs: Sequence[float], staying: Sequence[int]) -> list[float]:
    """The costs of some nodes of `order`, each with those of the other nodes right before it."""
    kept, found, total = set(staying), list[float](), 0.0
    for node, cost in zip(order, costs, strict=True):
        total += cost
        if node in kept:
            found.append(total)
            total = 0.0
    found[-1] += total
    return found


def node_costs(region: MicroBatchRegion, order: Sequence[int], costs: Costs | None) -> list[float]:
    """The cost of each node of `order`.

    A scope's cost is divided among its nodes, and nodes that `costs` does not name cost nothing. Without `costs` a node
    costs 1, and 1 more for each element of the variables that it reads.
    """
    if costs is None:
        return [1.0 + sum(_elements(region, source) for source, _ in region.sources(node)) for node in order]
    if isinstance(costs, Mapping):
        found = _costs_by_name(region, order, costs)
    else:
        found = [float(costs(region.graph.node(node))) for node in order]
    wrong = next((k for k, cost in enumerate(found) if not 0 <= cost < float("inf")), None)
    if wrong is not None:
        name = region.name(order[wrong])
        raise InvalidArgumentError(
            f"the cost of node {name!r} is {found[wrong]}; give a number of at least 0", node=name
        )
    return found


def backward_stages(region: MicroBatchRegion, forward: Mapping[int, int], homes: Mapping[int, int]) -> dict[int, int]:
    """The stages of all nodes; `homes` has the stage of the variables that gradients are for, by node."""
    search = _BackwardSearch(region, forward, _lowest(region, homes))
    return search.run(search.run({}))


class _BackwardSearch:
    """The stages of backward nodes, found in the order of the data.

    Nodes that read forward tensors or variables decide first. In a second run a node that reads one gradient alone goes
    where another reader has it, else where it was computed: to another stage only if the gradient is sent there anyway.
    """

    def __init__(self, region: MicroBatchRegion, forward: Mapping[int, int], lowest: Mapping[int, int]) -> None:
        self.region, self.forward, self.lowest = region, forward, lowest
        self.last = max(forward.values())
        self.places = {node: self._places(node) for node in region.backward}

    def run(self, before: Mapping[int, int]) -> dict[int, int]:
        """The stages of all nodes; `before` are those of the first run."""
        found = dict(self.forward)
        for node in self.region.backward:
            highest = min((found[n] for n in self.region.before(node) if n not in self.forward), default=self.last)
            lowest = min(self.lowest.get(node, 0), highest)
            at = self.places[node] or self._beside(node, before)
            if not at:
                found[node] = highest
            else:
                found[node] = max(range(lowest, highest + 1), key=lambda k: (sum(k in places for places in at), -k))
        return found

    def _places(self, node: int) -> list[set[int]]:
        """For each forward tensor and variable that a node reads the stages where it is anyway."""
        collective = self.region.graph.node_properties(node).attrs.get(GRADIENT_OF)
        of = None if collective is None else self.region.graph.find_id(collective.decode())
        if of is not None and of in self.forward:
            return [{self.forward[of]}]
        return [
            places for source, _ in self.region.sources(node) if (places := _places(self.region, self.forward, source))
        ]

    def _beside(self, node: int, before: Mapping[int, int]) -> list[set[int]]:
        """Where the only gradient that a node reads is read by others: with forward tensors, or behind a transfer."""
        gradients = [n for n, _ in self.region.sources(node) if n in self.region.nodes]
        if len(gradients) != 1 or gradients[0] not in before:
            return []
        readers, computed = (n for n in self.region.readers(gradients[0]) if n in before), before[gradients[0]]
        others = {before[n] for n in readers if self.places.get(n) or before[n] < computed}
        return [others] if others else []


def _scope_of(name: str, scopes: Collection[str]) -> str | None:
    while name:
        if name in scopes:
            return name
        name = name.rpartition("/")[0]
    return None


def _of_inputs(
    region: MicroBatchRegion, node: int, scopes: Mapping[str, int], found: Mapping[int, int | None]
) -> int | None:
    """The stage of a node in no scope: the latest of those that it reads, nodes or variables."""
    stages = [found[source] for source in region.before(node)]
    for source, _ in region.sources(node):
        is_placed = source in found or source in region.batch or region.is_number(source)
        scope = None if is_placed else _scope_of(region.name(source), scopes)
        stages.append(None if scope is None else scopes[scope])
    return max((stage for stage in stages if stage is not None), default=None)


def _check_used(region: MicroBatchRegion, scopes: Mapping[str, int], used: Collection[str]) -> None:
    missing = next((scope for scope in scopes if scope not in used), None)
    if missing is None:
        return
    known = dict.fromkeys(scope for node in region.forward for scope in _scopes(region.name(node)))
    raise InvalidArgumentError(
        f"stage {missing!r} has no node between the batch and the loss; name a scope of the forward pass"
        + suggestion(missing, known)
    )


def _scopes(name: str) -> Iterable[str]:
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def _settled(region: MicroBatchRegion, found: Mapping[int, int | None]) -> dict[int, int]:
    """The stages of all forward nodes: one that has none yet is in the earliest stage of its consumers."""
    settled: dict[int, int] = {}
    for node in reversed(list(found)):
        stage = found[node]
        if stage is None:
            later = [settled[reader] for reader in region.readers(node) if reader in settled]
            stage = min(later, default=0)
        settled[node] = stage
    return settled


def _checked(region: MicroBatchRegion, stages: dict[int, int]) -> dict[int, int]:
    for node in region.forward:
        for source in region.before(node):
            if stages[source] > stages[node]:
                raise InvalidArgumentError(
                    f"node {region.name(node)!r} of stage {stages[node]} reads {region.name(source)!r} of stage "
                    f"{stages[source]}; a stage may read earlier ones only: order the stages as the data flows",
                    node=region.name(node),
                )
    return stages


def _crossings(region: MicroBatchRegion, order: Sequence[int]) -> list[int]:
    """For each position the number of tensors from nodes before it to nodes from it on."""
    place = {node: at for at, node in enumerate(order)}
    last: dict[Output, int] = {}
    for node in order:
        for source in region.sources(node):
            if source[0] in place:
                last[source] = place[node]
    changes = [0] * (len(order) + 2)
    for tensor, reader in last.items():
        changes[place[tensor[0]] + 1] += 1
        changes[reader + 1] -= 1
    total, crossings = 0, []
    for change in changes[: len(order) + 1]:
        total += change
        crossings.append(total)
    return crossings


def _reads_variables(region: MicroBatchRegion) -> set[int]:
    """The forward nodes that depend on something other than the batch and constants, such as variables."""
    found = set[int]()
    for node in region.forward:
        for source, _ in region.sources(node):
            given = source in region.batch or source in region.nodes
            if source in found or (not given and region.sources(source)):
                found.add(node)
    return found


def _elements(region: MicroBatchRegion, source: int) -> int:
    """The elements of the variable that a node outside passes on, 0 if it passes none on or its shape is unknown."""
    while source not in region.nodes and source not in region.batch:
        attrs = region.graph.node_properties(source).attrs
        if not region.sources(source):
            shape = attrs.get("shape") if "shape" in attrs else None
            if not isinstance(shape, tuple) or None in shape:
                return 0
            count = 1
            for size in shape:
                count *= size
            return count
        source = region.sources(source)[0][0]
    return 0


def _costs_by_name(region: MicroBatchRegion, order: Sequence[int], costs: Mapping[str, float]) -> list[float]:
    scopes = [_scope_of(region.name(node), costs) for node in order]
    counts = Counter(scopes)
    unknown = next((name for name in costs if name not in counts), None)
    if unknown is not None:
        known = dict.fromkeys(name for node in order for name in (region.name(node), *_scopes(region.name(node))))
        raise InvalidArgumentError(
            f"weights: no node between the batch and the loss is {unknown!r} or in that scope"
            + suggestion(unknown, known)
        )
    return [0.0 if scope is None else float(costs[scope]) / counts[scope] for scope in scopes]


def _lowest(region: MicroBatchRegion, homes: Mapping[int, int]) -> dict[int, int]:
    """By backward node the highest stage of the variables whose gradients depend on it: it is in no lower stage."""
    lowest: dict[int, int] = {}
    for node in reversed(region.backward):
        later = [lowest[reader] for reader in region.readers(node) if reader in lowest]
        if node in homes or later:
            lowest[node] = max([*later, *([homes[node]] if node in homes else [])])
    return lowest


def _places(region: MicroBatchRegion, forward: Mapping[int, int], source: int) -> set[int]:
    """The stages where a tensor that a backward node reads is anyway; none for gradients and constants."""
    if region.is_copied(source) or region.is_number(source):
        return set()
    places = {forward[reader] for reader in region.readers(source) if reader in forward}
    return places | ({forward[source]} if source in forward else set())
