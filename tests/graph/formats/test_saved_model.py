"""SavedModels: the graph that the tags choose, its initialisers, and errors of wrong folders."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from google.protobuf import text_format
from hypothesis import given, strategies as st

from partita.errors import DataLossError, InvalidArgumentError, NotFoundError, OutOfRangeError, PermissionDeniedError
from partita.graph import load_saved_model, numpy_to_tensor
from partita.graph.dtypes import DataType
from partita.graph.protos import AssetFileDef, MetaGraphDef, NodeDef, OpDef, SavedModel, TensorInfo


def meta_graph(*tags: str) -> MetaGraphDef:
    """A graph of one node, which leaves out its default attrs."""
    message = MetaGraphDef()
    message.meta_info_def.tags.extend(tags)
    message.graph_def.node.append(NodeDef(name="v", op="VarHandleOp"))
    return message


def written(folder: Path, *graphs: MetaGraphDef) -> Path:
    """The folder with these graphs."""
    folder.mkdir(exist_ok=True)
    (folder / "saved_model.pb").write_bytes(SavedModel(meta_graphs=graphs).SerializeToString())
    return folder


def test_tags_choose_exactly(tmp_path: Path) -> None:
    """A graph with more tags does not match; the order of tags does not matter."""
    folder = written(tmp_path, meta_graph("serve", "gpu"), meta_graph("serve"), meta_graph())
    assert load_saved_model(folder).tags == {"serve"}
    assert load_saved_model(str(folder), ("gpu", "serve")).tags == {"serve", "gpu"}
    assert load_saved_model(folder, ()).tags == frozenset()
    with pytest.raises(NotFoundError) as caught:
        load_saved_model(folder, ["train"])
    assert caught.value.message.startswith(
        "Could not find meta graph def matching supplied tags: { train }. To inspect"
    )


def test_text_is_read_where_there_is_no_binary(tmp_path: Path) -> None:
    """As TensorFlow looks for them."""
    (tmp_path / "saved_model.pbtxt").write_text(
        text_format.MessageToString(SavedModel(meta_graphs=[meta_graph("text")])) + "a_field_of_the_future: 1\n"
    )
    assert load_saved_model(tmp_path, ["text"]).tags == {"text"}
    written(tmp_path, meta_graph("binary"))
    with pytest.raises(NotFoundError):
        load_saved_model(tmp_path, ["text"])


def test_a_folder_that_may_not_be_entered_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the model is looked for, and when its variables are."""
    model = load_saved_model(written(tmp_path, meta_graph("serve")))

    def refuse(path: Path, **_: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "stat", refuse)
        with pytest.raises(PermissionDeniedError, match="Permission denied"):
            load_saved_model(tmp_path)
        with pytest.raises(PermissionDeniedError, match=r"variables\.index; Permission denied"):
            assert model.has_variables


def test_folders_without_a_model_are_refused(tmp_path: Path) -> None:
    """Nothing there, a file in its place, and damaged files."""
    (tmp_path / "file").touch()
    for folder in (tmp_path, tmp_path / "none", tmp_path / "file"):
        with pytest.raises(NotFoundError, match=r"Could not find SavedModel \.pb or \.pbtxt at supplied export"):
            load_saved_model(folder)
    (tmp_path / "saved_model.pbtxt").write_text("meta_graphs {")
    with pytest.raises(DataLossError, match="as text proto"):
        load_saved_model(tmp_path)
    for damaged in (b"\0\0", b"no protobuf message", b"\xff" * 20):
        (tmp_path / "saved_model.pb").write_bytes(damaged)
        with pytest.raises(DataLossError, match="as binary proto"):
            load_saved_model(tmp_path)


@given(st.data())
def test_a_model_cut_short_is_told_from_a_damaged_one(data: st.DataObject) -> None:
    """Every truncation that is no complete message itself is OUT_OF_RANGE, as in TensorFlow's C++ loader."""
    whole = SavedModel(saved_model_schema_version=1, meta_graphs=[meta_graph("a"), meta_graph("serve")])
    encoded = whole.SerializeToString()
    shorter = [SavedModel(saved_model_schema_version=1, meta_graphs=whole.meta_graphs[:n]) for n in range(2)]
    ends = {len(message.SerializeToString()) for message in shorter}
    cut = encoded[: data.draw(st.integers(0, len(encoded)))]
    with TemporaryDirectory() as folder:
        (Path(folder) / "saved_model.pb").write_bytes(cut)
        if len(cut) == len(encoded):
            assert load_saved_model(folder).tags == {"serve"}
            return
        with pytest.raises(NotFoundError if len(cut) in {0, *ends} else OutOfRangeError) as caught:
            load_saved_model(folder)
        if isinstance(caught.value, OutOfRangeError):
            assert caught.value.message == f"Read less bytes than requested: {folder}/saved_model.pb is cut short"


def test_stripped_defaults_are_filled_in(tmp_path: Path) -> None:
    """In the graph and in its functions; from the model's own list where the op is unknown; nothing else changes."""
    graph = meta_graph("serve")
    graph.graph_def.node.append(NodeDef(name="own", op="MyOp"))
    graph.graph_def.node.append(NodeDef(name="other", op="NobodyKnowsIt"))
    function = graph.graph_def.library.function.add()
    function.signature.name = "f"
    function.node_def.append(NodeDef(name="m", op="MatMul"))
    attr = OpDef.AttrDef(name="k", type="int")
    attr.default_value.i = 7
    graph.meta_info_def.stripped_op_list.op.append(OpDef(name="MyOp", attr=[attr]))
    graph_def = load_saved_model(written(tmp_path, graph)).graph_def
    assert graph_def.node[0].attr["container"].s == b""
    assert graph_def.node[1].attr["k"].i == 7
    assert not graph_def.node[2].attr
    assert graph_def.library.function[0].node_def[0].attr["transpose_a"].b is False
    assert [node.name for node in graph_def.node] == ["v", "own", "other"]


def test_signatures_name_tensors(tmp_path: Path) -> None:
    """Dense ones, components of sparse and composite ones, and values of inputs that need not be fed."""
    graph = meta_graph("serve")
    signature = graph.signature_def["serving_default"]
    signature.method_name = "predict"
    signature.inputs["x"].CopyFrom(TensorInfo(name="x:0", dtype="DT_FLOAT"))
    signature.inputs["x"].tensor_shape.dim.add(size=-1)
    signature.defaults["x"].CopyFrom(numpy_to_tensor(np.array([1, 2], np.float32)))
    sparse = signature.inputs["s"]
    sparse.CopyFrom(TensorInfo(dtype="DT_STRING"))
    sparse.coo_sparse.values_tensor_name = "s:1"
    sparse.coo_sparse.indices_tensor_name = "s:0"
    sparse.coo_sparse.dense_shape_tensor_name = "s:2"
    signature.outputs["r"].composite_tensor.components.append(TensorInfo(name="r:0", dtype="DT_INT32"))
    saved = load_saved_model(written(tmp_path, graph))
    serving = saved.signature("serving_default")
    assert {name: spec.tensor for name, spec in serving.inputs.items()} == {
        "x": "x:0",
        "s/values": "s:1",
        "s/indices": "s:0",
        "s/dense_shape": "s:2",
    }
    assert (serving.inputs["x"].dtype, serving.inputs["x"].shape) == (DataType.FLOAT, (None,))
    assert serving.outputs["r/0"].tensor == "r:0"
    assert serving.defaults["x"].tolist() == [1, 2]
    with pytest.raises(NotFoundError, match="has no signature 'nope'; it has 'serving_default'"):
        saved.signature("nope")


def test_initialisers_are_found(tmp_path: Path) -> None:
    """In a signature of its own, in either collection, or nowhere."""
    assert load_saved_model(written(tmp_path, meta_graph("serve"))).init_op is None
    graph = meta_graph("serve")
    graph.collection_def["legacy_init_op"].node_list.value.append("tables")
    assert load_saved_model(written(tmp_path, graph)).init_op == "tables"
    graph.collection_def["saved_model_main_op"].node_list.value.append("main")
    assert load_saved_model(written(tmp_path, graph)).init_op == "main"
    graph.signature_def["__saved_model_init_op"].outputs["__saved_model_init_op"].name = "init:0"
    saved = load_saved_model(written(tmp_path, graph))
    assert (saved.init_op, dict(saved.signatures)) == ("init", {})
    del graph.signature_def["__saved_model_init_op"]
    graph.collection_def["saved_model_main_op"].node_list.value.append("another")
    with pytest.raises(InvalidArgumentError, match="Expected exactly one main op in"):
        load_saved_model(written(tmp_path, graph))


def test_assets_and_variables_have_their_places(tmp_path: Path) -> None:
    """Assets from the graph's list or, where that is empty, from the collection."""
    graph = meta_graph("serve")
    graph.saver_def.filename_tensor_name = "save/Const:0"
    graph.saver_def.restore_op_name = "save/restore_all"
    asset = AssetFileDef(filename="old.txt", tensor_info=TensorInfo(name="a:0"))
    graph.collection_def["saved_model_assets"].any_list.value.add().Pack(asset)
    saved = load_saved_model(written(tmp_path, graph))
    assert dict(saved.assets) == {"a:0": tmp_path / "assets" / "old.txt"}
    assert (saved.filename_tensor, saved.restore_op) == ("save/Const:0", "save/restore_all")
    assert not saved.has_variables
    (tmp_path / "variables").mkdir()
    (tmp_path / "variables" / "variables.index").touch()
    assert saved.has_variables
    assert saved.variables == str(tmp_path / "variables" / "variables")
    graph.asset_file_def.append(AssetFileDef(filename="new.txt", tensor_info=TensorInfo(name="b:0")))
    assert list(load_saved_model(written(tmp_path, graph)).assets) == ["b:0"]
