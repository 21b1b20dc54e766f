"""Files of a small training step: a GraphDef, and a SavedModel whose signature calls the step as one function."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from partita.graph import Graph, GraphBuilder
from partita.graph.attrs import encode
from partita.graph.dtypes import DataType
from partita.graph.protos import MetaGraphDef, SavedModel, SignatureDef, TensorInfo
from tests.function_defs import func_attr, function_of
from tests.graph.parallel.small_steps import perceptron
from tests.scenarios.command_line import CommandLine

ROWS = 8
STEP = perceptron(["Softplus", "Softplus", "Softplus", ""], rows=ROWS, is_open=True)


def training_graph(folder: Path) -> Path:
    """The step as a GraphDef; initialised by the target "initialise"."""
    path = folder / "step.pb"
    path.write_bytes(STEP.graph.SerializeToString())
    return path


def batch(folder: Path) -> Path:
    """An .npz with values of `x` and `target`."""
    x, target = next(STEP.batches(1))
    np.savez(folder / "batch.npz", x=x, target=target)
    return folder / "batch.npz"


def training_model(folder: Path) -> Path:
    """A SavedModel: the signature "train" has the inputs x and target, and the outputs loss and error (by row).

    Its nodes initialise the variables, so that it needs no checkpoint.
    """
    b = GraphBuilder()
    graph = STEP.graph
    handles = [node for node in graph.op_nodes() if node.op == "VarHandleOp"]
    arguments = ["x:0", "target:0", *(f"{handle.name}:0" for handle in handles)]
    b.function(function_of("step", graph.to_graph_def(), arguments, ["error:0", "loss:0"], control=["train"]))
    fed = [b.placeholder(f"train_{name}", "float32", (None, STEP.shape[1])) for name in ("x", "target")]
    attrs = {"dtype": DataType.FLOAT}
    held = [
        b.op("VarHandleOp", name=h.name, attrs={**attrs, "shape": h.attr("shape"), "shared_name": h.name})[0]
        for h in handles
    ]
    assigned = [b.op("AssignVariableOp", handle, _initial(graph, handle.node)) for handle in held]
    b.group(*assigned, name="init")
    types = {
        "Tin": encode([DataType.FLOAT] * 2 + [DataType.RESOURCE] * len(held), "list(type)"),
        "Tout": encode([DataType.FLOAT] * 2, "list(type)"),
    }
    b.op("StatefulPartitionedCall", [*fed, *held], name="called", attrs={**types, "f": func_attr("step")})
    _write(folder / "model", b)
    return folder / "model"


def _initial(graph: Graph, handle: str) -> np.ndarray:
    """What is assigned to a variable."""
    for node in graph.op_nodes():
        if node.op == "AssignVariableOp" and node.input_edge(0).src.name == handle:
            value: np.ndarray = node.input_edge(1).src.attr("value")
            return value
    raise AssertionError(handle)


def _write(folder: Path, b: GraphBuilder) -> None:
    meta = MetaGraphDef(graph_def=b.graph_def())
    meta.meta_info_def.tags.append("serve")
    float32 = "DT_FLOAT"
    meta.signature_def["train"].CopyFrom(
        SignatureDef(
            inputs={name: TensorInfo(name=f"train_{name}:0", dtype=float32) for name in ("x", "target")},
            outputs={name: TensorInfo(name=f"called:{k}", dtype=float32) for k, name in enumerate(("error", "loss"))},
        )
    )
    meta.signature_def["__saved_model_init_op"].outputs["__saved_model_init_op"].name = "init"
    folder.mkdir()
    (folder / "saved_model.pb").write_bytes(SavedModel(meta_graphs=[meta]).SerializeToString())


def losses(partita: CommandLine, *arguments: object) -> list[float]:
    """The loss after one step, and after three."""
    texts = [partita.done("run", *arguments, "--steps", steps) for steps in (1, 3)]
    return [float(text.split("  loss  float [] ")[1].split()[0]) for text in texts]
