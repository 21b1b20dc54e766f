"""Event files consist of framed events, the first of which names the version of the format."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.errors import DataLossError, FailedPreconditionError
from partita.graph.formats.event_file import EventFile
from partita.graph.ops.files.summaries import scalar_summary
from partita.graph.protos import Event
from tests.graph.formats.test_record_file import records


def events(path: str | Path) -> list[Event]:
    return [Event.FromString(record) for record in records(Path(path).read_bytes())]


def test_events_are_in_the_file_at_once(tmp_path: Path) -> None:
    file = EventFile(str(tmp_path / "a" / "b"), ".v2")
    file.add_summary(3, scalar_summary([b"loss"], [0.5]))
    first, second = events(file.path)
    assert first.file_version == "brain.Event:2"
    assert first.source_metadata.writer == "tensorflow.core.util.events_writer"
    assert second.step == 3
    assert second.summary.value[0].simple_value == 0.5
    assert first.wall_time <= second.wall_time
    file.close()


def test_two_files_of_one_second_have_different_names(tmp_path: Path) -> None:
    paths = [EventFile(str(tmp_path), ".x").path for _ in range(3)]
    assert len(set(paths)) == 3
    assert all(path.endswith(".x") and Path(path).name.startswith("events.out.tfevents.") for path in paths)


def test_what_is_added_serialised(tmp_path: Path) -> None:
    file = EventFile(str(tmp_path))
    file.add_summaries(7, [scalar_summary([b"a"], [1]), scalar_summary([b"a"], [2])])
    file.add_event(Event(wall_time=1, step=9, file_version="u").SerializeToString())
    file.add_graph(2, b"")
    file.add_run_metadata(4, "step_4", b"")
    _, merged, imported, graph, traced = events(file.path)
    assert [value.simple_value for value in merged.summary.value] == [1, 2]
    assert (imported.wall_time, imported.step) == (1, 9)
    assert graph.WhichOneof("what") == "graph_def"
    assert (traced.step, traced.tagged_run_metadata.tag) == (4, "step_4")


def test_damaged_messages_are_refused(tmp_path: Path) -> None:
    """In TensorFlow 2.21's words, and nothing is added."""
    file, broken = EventFile(str(tmp_path)), b"\x0a\xff"
    with pytest.raises(DataLossError, match=r"Bad tf.GraphDef binary proto tensor string"):
        file.add_graph(1, broken)
    with pytest.raises(DataLossError, match=r"Bad tf.Event binary proto tensor string"):
        file.add_event(broken)
    with pytest.raises(DataLossError, match=r"Bad tf.RunMetadata binary proto tensor string"):
        file.add_run_metadata(1, "a", broken)
    with pytest.raises(DataLossError, match=r"Bad tf.compat.v1.Summary binary proto tensor string at index 1"):
        file.add_summaries(1, [b"", broken])
    assert len(events(file.path)) == 1


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """The error of the file system, with the path."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FailedPreconditionError, match="Not a directory"):
        EventFile(str(tmp_path / "file" / "folder"))
