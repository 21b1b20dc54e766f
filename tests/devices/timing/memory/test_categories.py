"""What the bytes of steps are, of graphs small enough to see it.

Weights are matrices of 64 x 64 floats, one *unit* of 16 KiB; a batch has 256 rows, 4 units, so that the network of a
step is at its peak at the end of the forward pass or in the backward pass.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices import cut, local_cluster
from partita.devices.timing import MemoryPeak, Timeline, simulate
from partita.devices.timing.memory.categories import MEMORY_CATEGORIES
from partita.graph import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.gradients import gradients
from partita.graph.structured import while_loop

from .test_memory_laws import Drawn, graphs

UNIT = 64 * 64 * 4
BATCH = 4 * UNIT
GPU = "/job:localhost/replica:0/task:0/device:GPU:0"


class Network:
    """A step on one GPU; weights are read once."""

    def __init__(self, rows: int = 256) -> None:
        self.b = GraphBuilder()
        self.targets: list[str] = []
        with self.b.device("/device:GPU:0"):
            self.x = self.b.placeholder("x", "float32", (rows, 64))
        self.handles: dict[str, Tensor] = {}

    def variable(self, name: str, shape: Sequence[int] = (64, 64), dtype: str = "float32") -> Tensor:
        """The handle of a variable."""
        attrs = {"shared_name": name}
        self.handles[name] = self.b.op("VarHandleOp", name=name, dtype=dtype, shape=list(shape), attrs=attrs)[0]
        return self.handles[name]

    def read(self, name: str, dtype: str = "float32") -> Tensor:
        """The value of a new variable."""
        return self.b.op("ReadVariableOp", self.variable(name, dtype=dtype), name=f"{name}/read", dtype=dtype)[0]

    def op(self, op: str, *inputs: object, name: str = "") -> Tensor:
        """The first output of an op."""
        return self.b.op(op, *inputs, name=name or op)[0]

    def layers(self, weights: Sequence[Tensor]) -> Tensor:
        """The sum of squares behind tanh(x w) for each weight."""
        y = self.x
        for k, w in enumerate(weights):
            y = self.op("Tanh", self.op("MatMul", y, w, name=f"product{k}"), name=f"layer{k}")
        return self.op("Sum", self.op("Square", y), [0, 1], name="loss")

    def peak(self, *targets: str) -> MemoryPeak:
        """The peak of the GPU in a step that runs these."""
        cluster = local_cluster("gpu:1")
        names = [*targets, *self.targets]
        return simulate(cut(self.b, cluster, feeds="x", targets=names), cluster).memory(GPU)


def category(peak: MemoryPeak, node: str) -> str:
    """The category of the tensor of a node that is in memory at a peak."""
    return next(tensor.category for tensor in peak.tensors if tensor.node == node)


def large(peak: MemoryPeak) -> dict[str, int]:
    """Bytes by category, without constants and scalars."""
    sums = dict.fromkeys(MEMORY_CATEGORIES, 0)
    for tensor in peak.tensors:
        sums[tensor.category] += tensor.bytes if tensor.bytes > 64 else 0
    return {name: size for name, size in sums.items() if size}


def all_memories(timeline: Timeline) -> list[MemoryPeak]:
    return [timeline.memory(*memory) for memory in timeline.peak_bytes]


@given(drawn=graphs(devices=3))
def test_categories_add_up_to_the_peak(drawn: Drawn) -> None:
    """To the byte, for each memory of drawn graphs on several devices, with transfers."""
    for peak in all_memories(drawn.step().timeline()):
        assert sum(peak.by_category.values()) == peak.peak_bytes
        assert tuple(peak.by_category) == MEMORY_CATEGORIES


@given(depth=st.integers(1, 4), optimizer=st.sampled_from(["sgd", "adam", "momentum"]))
def test_a_training_step_has_weights_slots_and_what_layers_keep(depth: int, optimizer: str) -> None:
    """As many units of weights as layers, two slots of Adam each, one of momentum; a layer keeps its input."""
    net = Network()
    with net.b.device("/device:GPU:0"):
        weights = [net.read(f"w{k}") for k in range(depth)]
        slopes = gradients(net.b, [net.layers(weights)], weights)
        for k, slope in enumerate(slopes):
            _update(net, f"w{k}", net.b.tensor(slope), optimizer)
    peak = net.peak()
    slots = {"sgd": 0, "adam": 2, "momentum": 1}[optimizer]
    found = large(peak)
    assert found["parameters"] == depth * UNIT
    assert found.get("optimizer", 0) == depth * slots * UNIT
    assert sum(peak.by_category.values()) == peak.peak_bytes
    assert category(peak, "w0") == "parameters"


def _update(net: Network, name: str, slope: Tensor, optimizer: str) -> None:
    handle, target = net.handles[name], f"{name}/update"
    if optimizer == "sgd":
        net.b.op("ResourceApplyGradientDescent", handle, 0.1, slope, name=target)
    elif optimizer == "adam":
        slots = [net.variable(f"{name}/{slot}") for slot in "mv"]
        net.b.op("ResourceApplyAdam", handle, *slots, 0.9, 0.99, 0.1, 0.9, 0.99, 1e-8, slope, name=target)
    else:  # by arithmetic: m = 0.9 m + slope, w -= 0.1 m
        moment = net.read(f"{name}/m")
        new = net.op("AddV2", net.op("Mul", moment, np.float32(0.9)), slope)
        net.b.op("AssignVariableOp", net.handles[f"{name}/m"], new, name=f"{name}/m/update")
        net.b.op("AssignSubVariableOp", handle, net.op("Mul", new, np.float32(0.1)), name=target)
        net.targets.append(f"{name}/m/update")
    net.targets.append(target)


def test_activations_are_what_the_backward_pass_reads() -> None:
    """Both layers are kept for it, and the batch; the gradient on its way through the layers is a temporary."""
    net = Network()
    with net.b.device("/device:GPU:0"):
        weights = [net.read("w0"), net.read("w1"), net.read("w2")]
        for k, slope in enumerate(gradients(net.b, [net.layers(weights)], weights)):
            _update(net, f"w{k}", net.b.tensor(slope), "sgd")
    peak = net.peak()
    assert category(peak, "layer0") == category(peak, "layer1") == "activations"
    assert large(peak)["activations"] == 3 * BATCH
    assert large(peak)["temporaries"] % BATCH == 0


def test_a_forward_pass_keeps_nothing() -> None:
    """Without updates weights are parameters; the batch has come from the host, and all else is a temporary."""
    net = Network()
    with net.b.device("/device:GPU:0"):
        net.layers([net.read("w0"), net.read("w1")])
    assert large(net.peak("loss")).keys() == {"parameters", "temporaries", "communication"}


def test_a_weight_of_which_only_a_narrow_copy_is_used_is_a_master() -> None:
    """The copy is the parameter; with one direct reader in the network the weight itself is."""
    for is_used_directly in (False, True):
        net = Network()
        with net.b.device("/device:GPU:0"):
            read = net.read("w")
            copy = net.b.op("Cast", read, DstT="bfloat16", name="copy")[0]
            narrow = net.b.op("Cast", net.x, DstT="bfloat16")[0]
            y = net.op("MatMul", net.op("Tanh", net.op("MatMul", narrow, copy)), copy, name="y")
            wide = net.b.op("Cast", y, DstT="float32")[0]
            out = net.op("MatMul", wide, read) if is_used_directly else wide
            loss = net.op("Sum", net.op("Square", out), [0, 1])
            _update(net, "w", net.b.tensor(gradients(net.b, [loss], [read])[0]), "sgd")
        peak = net.peak()
        assert category(peak, "w") == ("parameters" if is_used_directly else "optimizer")
        assert category(peak, "copy") == "parameters"


@pytest.mark.parametrize("rows", [16, 256])
def test_a_clipped_gradient_is_a_gradient_up_to_its_update(rows: int) -> None:
    """The norm of all gradients, on which each update depends, makes no activation of any of them, nor hides one."""
    net = Network(rows)
    with net.b.device("/device:GPU:0"):
        weights = [net.read(f"w{k}") for k in range(8)]
        slopes = [net.b.tensor(slope) for slope in gradients(net.b, [net.layers(weights)], weights)]
        norm = net.op("Sqrt", net.op("AddN", [net.op("L2Loss", slope) for slope in slopes]))
        for k, slope in enumerate(slopes):
            _update(net, f"w{k}", net.op("RealDiv", slope, norm, name=f"clipped{k}"), "sgd")
    peak = net.peak()
    if rows == 16:  # the peak is at the updates
        assert large(peak)["gradients"] >= 8 * UNIT
    else:  # it is before the first gradient
        assert large(peak)["activations"] == 8 * BATCH
        assert "gradients" not in large(peak)


def test_what_a_loop_keeps_on_stacks_is_an_activation() -> None:
    """An RNN of six steps: the outputs of five and the batch are read again."""
    net = Network()
    b = net.b
    with b.device("/device:GPU:0"):
        w, head = net.read("w"), net.read("head")

        def step(i: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
            return i + 1, net.op("Tanh", net.op("MatMul", h, w), name="state")

        y = while_loop(b, lambda i, _: b.op("Less", i, b.constant(6))[0], step, [b.constant(0), net.x])[1]
        loss = net.op("Sum", net.op("Square", net.op("MatMul", y, head)), [0, 1])
        for name, slope in zip(("w", "head"), gradients(b, [loss], [w, head]), strict=True):
            _update(net, name, b.tensor(slope), "sgd")
    peak = net.peak()
    assert large(peak)["parameters"] == 2 * UNIT
    assert large(peak)["activations"] >= 6 * BATCH


@pytest.mark.parametrize("depends", [True, False])
def test_a_variable_that_inputs_change_is_state(depends: bool) -> None:
    """As a cache; with a new value that is a number, as an initialiser gives it, it is a parameter."""
    net = Network()
    with net.b.device("/device:GPU:0"):
        cache = net.variable("cache", (256, 64))
        value = net.op("Neg", net.x) if depends else net.op("Fill", [256, 64], np.float32(1))
        net.b.op("AssignVariableOp", cache, value, name="write")
        read = net.b.op("ReadVariableOp", cache, name="after", dtype="float32", control=["write"])[0]
        net.op("MatMul", net.op("Tanh", read), net.read("w"), name="y")
    found = large(net.peak("y"))
    assert found.get("activations", 0) == (BATCH if depends else 0)
    assert found["parameters"] == UNIT + (0 if depends else BATCH)


def test_what_is_received_is_communication() -> None:
    """The copy of a tensor of another device, until it has been read."""
    b, cluster = GraphBuilder(), local_cluster("gpu:2")
    with b.device("/device:GPU:0"):
        y = b.op("Tanh", b.placeholder("x", "float32", (256, 64)), name="y")[0]
    with b.device("/device:GPU:1"):
        b.op("MatMul", y, y, transpose_b=True, name="z")
    timeline = simulate(cut(b, cluster, feeds="x", targets="z"), cluster)
    peak = timeline.memory("/job:localhost/replica:0/task:0/device:GPU:1")
    assert large(peak) == {"communication": BATCH, "temporaries": 256 * 256 * 4}
