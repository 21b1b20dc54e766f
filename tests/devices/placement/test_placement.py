"""Placement: what holds for every placement, TensorFlow's choices in small cases, and its messages."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from partita.devices.cluster import local_cluster
from partita.devices.placement.placer import place
from partita.errors import FailedPreconditionError, InternalError, InvalidArgumentError
from partita.graph import Graph, GraphDef, graph_def_to_graph
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


def refusal(source: GraphBuilder | GraphDef, devices: list[str], *, soft: bool = False) -> str:
    """The message of the error that placement raises; it leaves the graph as it was."""
    graph = graph_def_to_graph(source)
    with pytest.raises(InvalidArgumentError) as caught:
        place(graph, devices, allow_soft_placement=soft)
    assert not any(node.assigned_device for node in graph.op_nodes())
    return caught.value.message


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
    """Nodes tied by `_class` end up together wherever the placement succeeds without softness."""
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
    """An IdentityN gets the device it requests, whatever handles it reads; an Identity goes with its handle."""
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
    """A group goes to a CPU if one of its nodes has a kernel for CPUs only."""
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
    """A node whose request no device fits goes elsewhere in the task; a task that does not exist stays an error."""
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
    b.group(device="/job:worker")
    assert "was explicitly assigned to /job:worker but" in refusal(b, CPUS, soft=True)


def test_soft_placement_ignores_impossible_groups() -> None:
    """Members whose requests conflict are placed apart."""
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
    """A node without a request goes to the client's task, that of the first device."""
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
    """The devices of a cluster are those to choose from."""
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


def test_malformed_request() -> None:
    """The error shows the request, and the node that makes it."""
    b = GraphBuilder()
    b.constant(1.5, name="a")
    graph_def = b.graph_def()  # a builder does not let it through
    graph_def.node[0].device = "not a device"
    assert refusal(graph_def, CPUS) == (
        "Malformed device specification 'not a device' in node: {name:'a' id:2 op device:{requested: 'not a device', "
        "assigned: ''} def:{{{node a}} = Const[dtype=DT_FLOAT, value=Tensor<type: float shape: [] values: 1.5>, "
        '_device="not a device"]()}}'
    )


def test_device_that_does_not_exist() -> None:
    """The message lists what there is."""
    b = GraphBuilder()
    b.constant(1.5, name="a", device=f"{TASK}/device:CPU:9")
    assert refusal(b, CPUS[:2]) == (
        f"Cannot assign a device for operation a: {{{{node a}}}} was explicitly assigned to {TASK}/device:CPU:9 but "
        f"available devices are [ {CPUS[0]}, {CPUS[1]} ]. Make sure the device specification refers to a valid device."
    )


def test_device_without_a_kernel() -> None:
    """A device that exists but cannot run the op."""
    b = GraphBuilder()
    b.op("AsString", b.placeholder("x", "float32"), name="s", device="/gpu:0")
    assert refusal(b, CPUS + GPUS).startswith(
        "Cannot assign a device for operation s: Could not satisfy explicit device specification '/gpu:0' because no "
        "supported kernel for GPU devices is available."
    )


def test_op_without_any_kernel() -> None:
    """TensorFlow multiplies no matrices of uint8."""
    b = GraphBuilder()
    x = b.placeholder("x", "uint8")
    b.op("MatMul", x, x, name="n")
    assert refusal(b, CPUS) == (
        "No OpKernel was registered to support Op 'MatMul' used by {{node n}} with these attrs: [T=DT_UINT8, "
        "grad_a=false, grad_b=false, transpose_a=false, transpose_b=false]\nRegistered devices: [CPU]"
    )


def test_op_that_takes_no_such_type() -> None:
    """The error is that of a type which the op does not allow, not of a missing kernel."""
    b = GraphBuilder()
    b.op("Neg", b.placeholder("x", "string"), name="n")
    assert refusal(b, CPUS).startswith(
        "Value for attr 'T' of string is not in the list of allowed values: bfloat16, half"
    )


def test_conflicting_groups() -> None:
    """The error has both nodes and their requests, the later node first."""
    b = GraphBuilder()
    b.group(name="a", device=CPUS[0])
    b.group(name="b", device=CPUS[1], attrs={"_class": [b"loc:@a"]})
    assert refusal(b, CPUS) == (
        "Cannot colocate nodes {{colocation_node b}} and {{colocation_node a}}: Cannot merge devices with incompatible "
        f"ids: '{CPUS[1]}' and '{CPUS[0]}'"
    )


def test_groups_no_device_type_can_run() -> None:
    """Nodes without a device type in common cannot share a device."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32")
    b.op("AsString", x, name="s")
    b.op("Neg", x, name="n", attrs={"_class": [b"loc:@s"]})
    text = refusal(b, GPUS)
    assert text.startswith("No OpKernel was registered to support Op 'AsString'")


def test_references_across_tasks() -> None:
    """The error names the device that the variable requests, and the members of the group."""
    b = GraphBuilder()
    v = b.op("VarHandleOp", name="v", dtype="float32", shape=(), device="/job:a")
    b.op("AssignVariableOp", v, 1.0, name="as", device="/job:b")
    for soft in (False, True):
        text = refusal(b, CPUS, soft=soft)
        assert text.startswith(
            "Cannot assign a device for operation as: Could not satisfy explicit device specification '/job:b' because "
            "the node {{colocation_node as}} was colocated with a group of nodes that required incompatible device "
            f"'/job:a'. All available devices [{', '.join(CPUS)}]. \nColocation Debug Info:\n"
        )
        assert "  v (VarHandleOp) /job:a\n  as (AssignVariableOp) /job:b\n" in text


def test_two_variables_that_cannot_meet() -> None:
    """An op that takes two references needs both on one device."""
    b = GraphBuilder()
    v, w = (b.op("VarHandleOp", name=n, dtype="float32", shape=(), device=f"/cpu:{i}") for i, n in enumerate("vw"))
    b.op("IteratorGetNext", v, name="x", output_types=["float32"], output_shapes=[None])
    b.op("ResourceApplyMomentum", v, w, 1.0, 1.0, 1.0, name="step")
    assert "incompatible resource devices" in refusal(b, CPUS)


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("/foo:bar", "Malformed assigned device '/foo:bar'"),
        ("/job:foo", "Assigned device '/job:foo' does not match any device"),
        (GPUS[0], f"Assigned device '{GPUS[0]}' does not have registered OpKernel support for AsString"),
    ],
)
def test_assigned_devices_are_checked(device: str, message: str) -> None:
    """A device that was assigned before must be possible; if it is not, that is a mistake of this package."""
    b = GraphBuilder()
    b.op("AsString", b.placeholder("x", "float32"), name="s")
    graph = b.graph()
    node = graph.find_node("s")
    assert node is not None
    node.assigned_device = device
    with pytest.raises(InternalError) as caught:
        place(graph, CPUS + GPUS)
    assert caught.value.message == message


def test_no_devices() -> None:
    """Even an empty graph needs a device."""
    with pytest.raises(FailedPreconditionError, match="No devices are registered"):
        place(Graph(), [])


def test_devices_must_be_named_in_full() -> None:
    """A partial name, which may stand for several devices, is refused."""
    with pytest.raises(InvalidArgumentError, match="does not name a single device"):
        place(Graph(), ["/cpu:0"])
