"""SavedModels that run: inputs and outputs by name, defaults for inputs that are not fed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from partita.actors import open_saved_model
from partita.actors.sessions.saved_model import SavedModelSession
from partita.errors import InvalidArgumentError, NotFoundError
from partita.graph import numpy_to_tensor
from partita.graph.builder import GraphBuilder
from partita.graph.protos import ConfigProto, MetaGraphDef, SavedModel, TensorInfo

HALVES = np.array([0.5, 1.5], np.float32)


def model(folder: Path) -> Path:
    """A model with inputs x and y, where y has a default, and the output total, their sum."""
    builder = GraphBuilder()
    x, y = builder.placeholder("x", "float32"), builder.placeholder("y", "float32")
    builder.op("AddV2", x, y, name="sum")
    graph = MetaGraphDef(graph_def=builder.graph_def())
    graph.meta_info_def.tags.append("serve")
    signature = graph.signature_def["serving_default"]
    for name in ("x", "y"):
        signature.inputs[name].CopyFrom(TensorInfo(name=f"{name}:0", dtype="DT_FLOAT"))
    signature.outputs["total"].CopyFrom(TensorInfo(name="sum:0", dtype="DT_FLOAT"))
    signature.defaults["y"].CopyFrom(numpy_to_tensor(HALVES))
    (folder / "saved_model.pb").write_bytes(SavedModel(meta_graphs=[graph]).SerializeToString())
    return folder


async def test_inputs_and_outputs_go_by_name(tmp_path: Path) -> None:
    """A default is used unless its input is fed; a model may have no variables."""
    async with open_saved_model(model(tmp_path), devices="cpu:2") as loaded:
        assert isinstance(loaded, SavedModelSession)
        outputs = await loaded.run({"x": HALVES})
        assert {name: value.tolist() for name, value in outputs.items()} == {"total": [1, 3]}
        outputs = await loaded.run({"x": HALVES, "y": HALVES + 1}, signature="serving_default")
        assert outputs["total"].tolist() == [2, 4]


async def test_settings_go_to_the_session(tmp_path: Path) -> None:
    """Also one that the session refuses."""
    config = ConfigProto(device_count={"CPU": 1}, allow_soft_placement=True)
    async with open_saved_model(model(tmp_path), devices="cpu:2", config=config) as loaded:
        assert len(loaded.session.devices) == 1
        assert (await loaded.run({"x": HALVES}))["total"].tolist() == [1, 3]
    config.graph_options.rewrite_options.custom_optimizers.add(name="mine")
    with pytest.raises(InvalidArgumentError, match="custom_optimizers is refused"):
        async with open_saved_model(model(tmp_path), config=config):
            pass


async def test_wrong_requests_are_refused(tmp_path: Path) -> None:
    """Missing and unknown inputs, and an unknown signature."""
    async with open_saved_model(model(tmp_path)) as loaded:
        with pytest.raises(InvalidArgumentError, match="needs the input 'x'; its inputs are 'x', 'y'"):
            await loaded.run({})
        with pytest.raises(InvalidArgumentError, match="has no input 'z'; its inputs are 'x', 'y'"):
            await loaded.run({"x": HALVES, "z": HALVES})
        with pytest.raises(NotFoundError, match="has no signature 'nope'"):
            await loaded.run({"x": HALVES}, "nope")
