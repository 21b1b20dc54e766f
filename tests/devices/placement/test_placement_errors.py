"""Placement refuses a graph: which message there is for each mistake, and which status."""

from __future__ import annotations

import pytest

from partita.devices.placement.placer import place
from partita.errors import FailedPreconditionError, InternalError, InvalidArgumentError
from partita.graph import Graph, GraphDef, graph_def_to_graph
from partita.graph.builder import GraphBuilder
from tests.devices.placement.test_placement import CPUS, GPUS, TASK


def refusal(source: GraphBuilder | GraphDef, devices: list[str], *, soft: bool = False) -> str:
    """The message of the error that placement raises; it leaves the graph as it was."""
    graph = graph_def_to_graph(source)
    with pytest.raises(InvalidArgumentError) as caught:
        place(graph, devices, allow_soft_placement=soft)
    assert not any(node.assigned_device for node in graph.op_nodes())
    return caught.value.message


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


def test_a_task_that_does_not_exist_is_an_error_with_soft_placement_too() -> None:
    b = GraphBuilder()
    b.group(device="/job:worker")
    assert "was explicitly assigned to /job:worker but" in refusal(b, CPUS, soft=True)


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
    assert refusal(b, CPUS).startswith(
        "No OpKernel was registered to support Op 'MatMul' used by {{node n}} with these attrs: [T=DT_UINT8, "
        "grad_a=false, grad_b=false, transpose_a=false, transpose_b=false]\nRegistered devices: [CPU]\n"
        "Registered kernels:\n  device='CPU'; T in [DT_FLOAT]\n  device='CPU'; T in [DT_DOUBLE]\n"
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


def test_a_kernel_that_is_missing_on_the_requested_device() -> None:
    """The error lists the group with the device types of each op, and the kernels that there are."""
    b = GraphBuilder()
    x = b.constant(b"a", "string", name="x")
    b.op("StringLower", x, name="s", encoding="utf-8", device="/gpu:0")
    assert refusal(b, [*CPUS, *GPUS]) == (
        "Cannot assign a device for operation s: Could not satisfy explicit device specification '/gpu:0' because no "
        "supported kernel for GPU devices is available.\nColocation Debug Info:\n"
        "Colocation group had the following types and supported devices: \nStringLower: CPU \n\n"
        "Colocation members, user-requested devices, and framework assigned devices, if any:\n"
        '  s (StringLower) /gpu:0\n\nOp: StringLower\nNode attrs: encoding="utf-8"\nRegistered kernels:\n'
        "  device='CPU'\n"
    )


def test_a_group_lists_its_ops() -> None:
    """Each with the device types that run it."""
    b = GraphBuilder()
    b.op("StringLower", b.constant(b"a", "string"), name="lower")
    b.op("Neg", 1.0, name="n", device="/gpu:0", attrs={"_class": [b"loc:@lower"]})
    text = refusal(b, [*CPUS, *GPUS])
    assert "incompatible device '/device:GPU:0'" in text
    assert "\nStringLower: CPU \nNeg: GPU CPU \n" in text


def test_a_class_that_lists_no_texts_groups_nothing() -> None:
    """As in TensorFlow, which reads lists of texts only."""
    b = GraphBuilder()
    b.group(name="a", device=CPUS[0])
    for name, value in (("b", b"loc:@a"), ("c", 3), ("d", [3])):
        b.group(name=name, device=CPUS[1], attrs={"_class": value})
    graph = graph_def_to_graph(b.graph_def())
    place(graph, CPUS)
    assert [node.assigned_device for node in graph.op_nodes()] == [CPUS[0], *[CPUS[1]] * 3]


def test_two_variables_that_cannot_meet() -> None:
    """An op that takes two references needs both on one device."""
    b = GraphBuilder()
    v, w = (b.op("VarHandleOp", name=n, dtype="float32", shape=(), device=f"/cpu:{i}") for i, n in enumerate("vw"))
    b.op("IteratorGetNext", v, name="x", output_types=["float32"], output_shapes=[None])
    b.op("ResourceApplyMomentum", v, w, 1.0, 1.0, 1.0, name="step")
    text = refusal(b, CPUS)
    assert "incompatible resource devices" in text
    assert text.endswith(
        "The edge src node is name='w' (op='VarHandleOp'), and the dst node is name='step' "
        "(op='ResourceApplyMomentum')."
    )


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
