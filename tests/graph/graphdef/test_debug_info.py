"""The debug info of a GraphDef comes through import and export, files and text as it was, whatever is in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.debug_info import debug_info_field
from partita.graph.formats.saved_model import load_saved_model
from partita.graph.graphdef.files import graph_def_from_text, graph_def_to_text, load_graph_def, save_graph_def
from partita.graph.graphdef.importer import graph_def_to_graph
from partita.graph.protos import GraphDebugInfo, GraphDef, SavedModel

_IDS, _NUMBERS, _TEXTS = st.integers(0, 2**64 - 1), st.integers(-(2**31), 2**31 - 1), st.text(max_size=8)
_SOME_NUMBER, _SOME_TEXT = st.none() | _NUMBERS, st.none() | _TEXTS
_LINES = st.builds(
    GraphDebugInfo.FileLineCol,
    file_index=_SOME_NUMBER,
    line=_SOME_NUMBER,
    col=_SOME_NUMBER,
    func=_SOME_TEXT,
    code=_SOME_TEXT,
)
_TRACES = st.builds(
    GraphDebugInfo.StackTrace, file_line_cols=st.lists(_LINES, max_size=3), frame_id=st.lists(_IDS, max_size=3)
)
_INFOS = st.builds(
    GraphDebugInfo,
    files=st.lists(_TEXTS, max_size=3),
    frames_by_id=st.dictionaries(_IDS, _LINES, max_size=3),
    traces_by_id=st.dictionaries(_IDS, _TRACES, max_size=2),
    traces=st.dictionaries(_TEXTS, _TRACES, max_size=2),
    name_to_trace_id=st.dictionaries(_TEXTS, _IDS, max_size=3),
)
NEWER = bytes.fromhex("fa3f0161")  # a field that no release has yet

# As TensorFlow 2.21 prints it.
TEXT = """\
node {
  name: "n"
  op: "NoOp"
}
debug_info {
  files: "model.py"
  traces {
    key: "n@"
    value {
      file_line_cols {
        file_index: 0
        line: 12
        func: "build"
      }
      frame_id: 18446744073709551615
    }
  }
  frames_by_id {
    key: 18446744073709551615
    value {
      line: 0
      code: "x = no_op()"
    }
  }
  name_to_trace_id {
    key: "n@"
    value: 7
  }
}
"""


def with_info(info: GraphDebugInfo) -> GraphDef:
    """A GraphDef of one node."""
    graph_def = GraphDef(debug_info=info)
    graph_def.node.add(name="n", op="NoOp")
    return graph_def


@given(_INFOS, st.booleans())
def test_debug_info_is_exported_as_it_was_imported(info: GraphDebugInfo, is_newer: bool) -> None:
    """Also from a copy of the graph, with fields that are unknown here, and with fields that hold zero."""
    data = info.SerializeToString(deterministic=True) + NEWER * is_newer
    graph_def = GraphDef.FromString(with_info(GraphDebugInfo()).SerializeToString() + debug_info_field(data))
    graph = graph_def_to_graph(graph_def)
    for exported in (graph.to_graph_def(), graph.clone().to_graph_def()):
        assert exported.debug_info.SerializeToString(deterministic=True) == data
        assert [node.name for node in exported.node] == ["n"]


@given(_INFOS)
def test_text_keeps_debug_info(info: GraphDebugInfo) -> None:
    """From text to a graph and back."""
    text = graph_def_to_text(with_info(info))
    exported = graph_def_to_graph(graph_def_from_text(text)).to_graph_def()
    assert exported.debug_info == info
    assert graph_def_from_text(graph_def_to_text(exported)) == exported


def test_text_of_tensorflow_is_read() -> None:
    """All that it says, and it is written back."""
    graph_def = graph_def_from_text(TEXT)
    trace = graph_def.debug_info.traces["n@"]
    assert (list(trace.frame_id), trace.file_line_cols[0].line) == ([2**64 - 1], 12)
    assert trace.file_line_cols[0].HasField("file_index")
    assert graph_def.debug_info.frames_by_id[2**64 - 1].code == "x = no_op()"
    assert graph_def_from_text(graph_def_to_text(graph_def_to_graph(graph_def).to_graph_def())) == graph_def


@pytest.mark.parametrize("suffix", [".pb", ".pbtxt"])
def test_files_keep_debug_info(suffix: str, tmp_path: Path) -> None:
    """Binary and text ones, of graphs and of SavedModels."""
    graph_def = graph_def_from_text(TEXT)
    save_graph_def(graph_def, tmp_path / f"graph{suffix}")
    assert load_graph_def(tmp_path / f"graph{suffix}") == graph_def
    model = SavedModel(saved_model_schema_version=1)
    model.meta_graphs.add(graph_def=graph_def).meta_info_def.tags.append("serve")
    file: Any = tmp_path / f"saved_model{suffix}"  # Any: bytes or text
    data = model.SerializeToString() if suffix == ".pb" else text_format.MessageToString(model).encode()
    file.write_bytes(data)
    assert load_saved_model(tmp_path).graph_def.debug_info == graph_def.debug_info


def test_damaged_debug_info_is_refused() -> None:
    """As a damaged GraphDef, which it is."""
    with pytest.raises(InvalidArgumentError, match="the bytes are damaged"):
        graph_def_to_graph(with_info(GraphDebugInfo()).SerializeToString() + debug_info_field(b"\x0a\x05a"))
