"""Placement: laws for every placement, TensorFlow's choices in small cases, and its messages."""

from __future__ import annotations

from hypothesis import assume, given, strategies as st

from partita.devices.cluster import local_cluster
from partita.devices.placement.placer import place
from partita.errors import InvalidArgumentError
from partita.graph import Graph
from partita.graph.builder import GraphBuilder
from partita.graph.device_name import is_specification, parse_full_name
from partita.graph.ops.kernel_facts import find_kernel
from tests.goldens import assert_text

TASK = "/job:localhost/replica:0/task:0"
CPUS = [f"{TASK}/device:CPU:{i}" for i in range(3)]
GPUS = [f"{TASK}/device:GPU:{i}" for i in range(2)]
REQUESTS = ["", "/cpu:1", "/gpu:1", "/device:GPU:*", "/job:localhost", *CPUS, *GPUS]


def placed(b: GraphBuilder, devices: list[str], *, soft: bool = False) -> Graph:
    """The graph that `b` writes, placed."""
    graph = b.graph()
    place(graph, devices, allow_soft_placement=soft)
    return graph


@st.composite
def graphs(draw: st.DrawFn, requests: list[str]) -> Graph:
    """Graphs of generators, arithmetic, strings, variables and shape ops, which request devices of a list."""
    b = GraphBuilder()
    floats = [b.constant(1.0, device=draw(st.sampled_from(requests)))]
    for _ in range(draw(st.integers(1, 12))):
        kind = draw(st.sampled_from(["const", "add", "shape", "string", "assign"]))
        x, device = draw(st.sampled_from(floats)), draw(st.sampled_from(requests))
        if kind == "const":
            floats.append(b.constant(2.0, device=device, control=draw(st.sampled_from([[], [x]]))))
        elif kind == "add":
            floats.append(b.op("AddV2", x, draw(st.sampled_from(floats)), device=device)[0])
        elif kind == "shape":
            b.op("Shape", x, device=device)
        elif kind == "string":
            b.op("AsString", x, device="")
        else:
            b.op("Assign", b.variable("v", "float32", (), device=device), x, device=draw(st.sampled_from(requests)))
    return b.graph()


@given(graphs(CPUS))
def test_full_requests_are_kept(graph: Graph) -> None:
    """Nodes that all name a device get it; only an Assign follows its variable elsewhere."""
    place(graph, CPUS, allow_soft_placement=False)
    for node in graph.op_nodes():
        if node.op == "Assign":
            assert node.assigned_device == node.input_edge(0).src.assigned_device
        else:
            assert node.assigned_device == (node.requested_device or CPUS[0])


@given(graphs(REQUESTS))
def test_every_node_gets_a_device_it_may_use(graph: Graph) -> None:
    """The device exists, fits the request (but for an Assign, which follows its variable) and has a kernel."""
    place(graph, CPUS + GPUS)
    for node in graph.op_nodes():
        device = parse_full_name(node.assigned_device)
        assert node.assigned_device in CPUS + GPUS
        assert node.op == "Assign" or is_specification(parse_full_name(node.requested_device), device)
        assert find_kernel(node.op, node.attrs, str(device.type)) is not None


@given(graphs(REQUESTS))
def test_placing_again_changes_nothing(graph: Graph) -> None:
    """Assigned nodes stay where they are."""
    place(graph, CPUS + GPUS)
    before = [node.assigned_device for node in graph.op_nodes()]
    place(graph, GPUS + CPUS)
    assert [node.assigned_device for node in graph.op_nodes()] == before


@given(graphs(REQUESTS), st.permutations(CPUS + GPUS))
def test_the_order_of_devices_does_not_matter(graph: Graph, devices: list[str]) -> None:
    """Devices are ranked by type and name, however they are listed."""
    other = graph.copy()
    place(graph, CPUS + GPUS)
    place(other, devices)
    assert [n.assigned_device for n in graph.op_nodes()] == [n.assigned_device for n in other.op_nodes()]


@given(
    st.lists(st.tuples(st.sampled_from(REQUESTS[:3]), st.sets(st.integers(0, 7), max_size=2)), min_size=1, max_size=8)
)
def test_colocated_nodes_share_a_device(nodes: list[tuple[str, set[int]]]) -> None:
    """Nodes in one `_class` group share a device whenever placement without softness succeeds."""
    b = GraphBuilder()
    for i, (device, others) in enumerate(nodes):
        group = [f"loc:@n{other}".encode() for other in sorted(others) if other < len(nodes)]
        b.group(name=f"n{i}", device=device, attrs={"_class": group} if group else {})
    try:
        graph = placed(b, CPUS + GPUS)
    except InvalidArgumentError:  # requests that conflict: `test_conflicting_groups`
        assume(False)
    device_of = {node.name: node.assigned_device for node in graph.op_nodes()}
    for i, (_, others) in enumerate(nodes):
        assert all(device_of[f"n{i}"] == device_of[f"n{other}"] for other in others if other < len(nodes))


def test_best_device_first() -> None:
    """A GPU where there is a kernel, else a CPU; names are ordered as strings, so 10 before 2."""
    b = GraphBuilder()
    x = b.op("Neg", b.placeholder("x", "float32"), name="n")
    b.op("AsString", x, name="s")
    assert_text(
        placed(b, CPUS + GPUS),
        """
        3 nodes @/job:localhost/replica:0/task:0/...
        x: float = Placeholder() @GPU:0
        n: float = Neg(x) @GPU:0
        s: string = AsString(n) @CPU:0
        """,
    )
    assert_text(
        placed(b, [f"{TASK}/device:CPU:{i}" for i in (10, 2)]),
        """
        3 nodes @/job:localhost/replica:0/task:0/device:CPU:10
        x: float = Placeholder()
        n: float = Neg(x)
        s: string = AsString(n)
        """,
    )


def test_generators_join_their_consumers() -> None:
    """A node without inputs goes to the device of all its consumers; if they are on several, to the default."""
    b = GraphBuilder()
    together, apart = b.constant(1.0, name="together"), b.constant(1.0, name="apart")
    b.op("Neg", together, device="/cpu:1")
    b.op("Neg", apart, device="/cpu:1")
    b.group(apart, device="/cpu:2")
    assert_text(
        placed(b, CPUS),
        """
        5 nodes @/job:localhost/replica:0/task:0/...
        together: float = Const() {value=1} @CPU:1
        apart: float = Const() {value=1} @CPU:0
        Neg: float = Neg(together) @CPU:1
        Neg_1: float = Neg(apart) @CPU:1
        group_deps = NoOp(^apart) @CPU:2
        """,
    )


def test_generators_keep_their_own_request() -> None:
    """A generator goes to its consumer's device only if its own request allows that."""
    b = GraphBuilder()
    b.op("Neg", b.constant(1.0, name="free", device="/device:CPU:*"), device="/cpu:1")
    b.op("Neg", b.constant(1.0, name="bound", device="/cpu:2"), device="/cpu:1")
    assert_text(
        placed(b, CPUS),
        """
        4 nodes @/job:localhost/replica:0/task:0/...
        free: float = Const() {value=1} @CPU:1
        Neg: float = Neg(free) @CPU:1
        bound: float = Const() {value=1} @CPU:2
        Neg_1: float = Neg(bound) @CPU:1
        """,
    )


def test_generators_that_wait_for_generators() -> None:
    """A consumer that is itself a generator, and comes later, has no device yet."""
    b = GraphBuilder()
    first = b.constant(1.0, name="first")
    b.constant(1.0, name="second", device="/cpu:1", control=[first])
    assert_text(
        placed(b, CPUS),
        """
        2 nodes @/job:localhost/replica:0/task:0/...
        first: float = Const() {value=1} @CPU:0
        second: float = Const(^first) {value=1} @CPU:1
        """,
    )


def test_shapes_are_read_where_the_tensor_is() -> None:
    """Shape follows its input, unless that is a generator, which is placed later."""
    b = GraphBuilder()
    x = b.constant(1.0, device="/cpu:1")
    b.op("Shape", x, name="of_generator")
    b.op("Shape", b.op("Neg", x, device="/cpu:2"), name="of_node")
    b.op("Size", b.op("Neg", x, device="/cpu:2"), name="bound", device="/cpu:1")
    assert_text(
        placed(b, CPUS),
        """
        6 nodes @/job:localhost/replica:0/task:0/...
        Const: float = Const() {value=1} @CPU:1
        of_generator: int32 = Shape(Const) @CPU:0
        Neg: float = Neg(Const) @CPU:2
        of_node: int32 = Shape(Neg) @CPU:2
        Neg_1: float = Neg(Const) @CPU:2
        bound: int32 = Size(Neg_1) @CPU:1
        """,
    )


def test_references_and_resources_stay_with_their_source() -> None:
    """An Assign goes to its variable even against its own request; what reads a reference by value need not."""
    b = GraphBuilder()
    v = b.variable("v", "float32", (), device="/cpu:1")
    b.op("Assign", v, 1.0, name="assign", device="/cpu:2")
    b.op("Identity", v, name="read")
    handle = b.op("VarHandleOp", name="handle", dtype="float32", shape=())
    b.op("AssignVariableOp", handle, 1.0, name="write", device="/cpu:1")
    b.op("ReadVariableOp", handle, name="value", dtype="float32")
    assert_text(
        placed(b, CPUS),
        """
        8 nodes @/job:localhost/replica:0/task:0/...
        v: float_ref = VariableV2() {shape=[]} @CPU:1
        assign/value: float = Const() {value=1} @CPU:1
        assign: float_ref = Assign(v, assign/value) @CPU:1
        read: float = Identity(v) @CPU:0
        handle: resource = VarHandleOp() {dtype=DT_FLOAT, shape=[]} @CPU:1
        write/value: float = Const() {value=1} @CPU:1
        write = AssignVariableOp(handle, write/value) @CPU:1
        value: float = ReadVariableOp(handle) @CPU:1
        """,
    )


def test_what_passes_many_tensors_on_is_not_tied_to_resources() -> None:
    """An IdentityN stays on its requested device, whatever handles it passes on; an Identity goes with its handle."""
    b = GraphBuilder()
    handle = b.op("VarHandleOp", name="handle", dtype="float32", shape=(), device="/cpu:1")
    b.op("IdentityN", [handle], name="many", device="/cpu:2")
    b.op("Identity", handle, name="one", device="/cpu:2")
    assert_text(
        placed(b, CPUS),
        """
        3 nodes @/job:localhost/replica:0/task:0/...
        handle: resource = VarHandleOp() {dtype=DT_FLOAT, shape=[]} @CPU:1
        many: resource = IdentityN(handle) @CPU:2
        one: resource = Identity(handle) @CPU:1
        """,
    )


def test_groups_take_the_types_all_members_have() -> None:
    """A group with a node that has only a CPU kernel goes to a CPU."""
    b = GraphBuilder()
    x = b.op("Neg", b.placeholder("x", "float32"), name="n")
    b.op("AsString", x, name="s", attrs={"_class": [b"loc:@n"]})
    assert_text(
        placed(b, CPUS + GPUS),
        """
        3 nodes @/job:localhost/replica:0/task:0/device:CPU:0
        x: float = Placeholder()
        n: float = Neg(x)
        s: string = AsString(n) {_class=["loc:@n"]}
        """,
    )


def test_soft_placement_drops_type_and_id() -> None:
    """A request that cannot be met goes to another device of the task; an unknown task stays an error."""
    b = GraphBuilder()
    x = b.op("Neg", b.placeholder("x", "float32"), name="n", device="/gpu:7")
    b.op("AsString", x, name="s", device=GPUS[1])
    assert_text(
        placed(b, CPUS + GPUS, soft=True),
        """
        3 nodes @/job:localhost/replica:0/task:0/...
        x: float = Placeholder() @GPU:0
        n: float = Neg(x) @GPU:0
        s: string = AsString(n) @CPU:0
        """,
    )
    assert_text(
        placed(b, CPUS, soft=True),
        """
        3 nodes @/job:localhost/replica:0/task:0/device:CPU:0
        x: float = Placeholder()
        n: float = Neg(x)
        s: string = AsString(n)
        """,
    )


def test_soft_placement_ignores_impossible_groups() -> None:
    """Members whose requests conflict stay apart."""
    b = GraphBuilder()
    b.group(name="a", device="/job:localhost/task:0/cpu:1")
    b.group(name="b", device="/job:localhost/task:1", attrs={"_class": [b"loc:@a"]})
    other = "/job:localhost/replica:0/task:1/device:CPU:0"
    assert_text(
        placed(b, [*CPUS, other], soft=True),
        """
        2 nodes
        a = NoOp() @/job:localhost/replica:0/task:0/device:CPU:1
        b = NoOp() {_class=["loc:@a"]} @/job:localhost/replica:0/task:1/device:CPU:0
        """,
    )


def test_tasks_are_preferred_by_nearness() -> None:
    """Of equal devices, one of the client's task is chosen."""
    b = GraphBuilder()
    b.group(name="n")
    devices = ["/job:z/replica:0/task:0/device:CPU:0", "/job:a/replica:0/task:0/device:CPU:0"]
    assert_text(
        placed(b, devices),
        """
        1 nodes @/job:z/replica:0/task:0/device:CPU:0
        n = NoOp()
        """,
    )


def test_clusters_are_accepted() -> None:
    """A cluster means its devices."""
    b = GraphBuilder()
    b.op("Neg", 1.0, name="n")
    graph = b.graph()
    place(graph, local_cluster("cpu:2,gpu:1"))
    assert_text(
        graph,
        """
        2 nodes @/job:localhost/replica:0/task:0/device:GPU:0
        n/x: float = Const() {value=1}
        n: float = Neg(n/x)
        """,
    )
