"""A kill or a power loss at any operation of a save or merge leaves the old checkpoint or the new one, whole."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from partita.graph.formats import storage
from tests.graph.formats import killed
from tests.graph.formats.disks import UNSYNCED, DiskKilledAt, PowerLoss, ProcessKilled, WithoutLinks, put
from tests.graph.formats.versions import (
    Writer,
    files_in,
    merge,
    merged_parts_are_there,
    parts_of,
    save,
    save_parts,
    version_at,
)

TOOL = Path(__file__).parents[3] / "tools" / "kill_saves.py"
# Files that a sweep of "ckpt" has no business with, however much their names look like its own.
BYSTANDERS = [
    "ckpt2.data-00001-of-00002",
    "ckpt-1.index.tempstate5",
    "ckpt.index.tempstate",
    "ckpt.data-00001-of-00002.bak",
    "ckpt.data-1-of-2",
    "ckpt.meta",
    # Those that TensorFlow, or somebody else, has written, and forgeries whose checksum is wrong.
    "ckpt.index.tempstate5",
    "ckpt.index.tempstate1844674407370955161",
    "ckpt.index.tempstate0123456789abcdef",
    "ckpt.tempstate-0-of-1-0123456789abcdef",
    "ckpt.data-00000-of-00001.tempstate7",
    "ckpt.data-00000-of-00007",
    "ckpt.data-00006-of-00007",
    "ckpt.data-00000-of-00008.tempstate7",
    "ckpt.data-00009-of-00004",
]


@dataclass(frozen=True)
class Scene:
    """The files before version 9 is written, and how it is written."""

    before: tuple[Writer, ...]
    write: Writer
    old: int | None
    disk: Callable[[int | None], DiskKilledAt] = DiskKilledAt

    def set_up(self, folder: Path) -> str:
        """Writes the files before the save; returns the prefix."""
        prefix = str(folder / "ckpt")
        for version, writer in enumerate(self.before):
            if writer is merge:
                save_parts(prefix, version)
            writer(prefix, version, UNSYNCED)
        if self.write is merge:
            save_parts(prefix, 9)
        return prefix


SCENES = {
    "first save": Scene((), save, None),
    "save over a save": Scene((save,), save, 0),
    "save over a save over a save": Scene((save, save), save, 1),
    "save over a merge": Scene((merge,), save, 0),
    "first merge": Scene((), merge, None),
    "merge over a merge": Scene((merge,), merge, 0),
    "merge over a save": Scene((save,), merge, 0),
    "merge by copying": Scene((merge, merge), merge, 1, WithoutLinks),
}


@pytest.fixture(autouse=True)
def small_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes tensors of a few bytes be written one by one, as large ones are."""
    monkeypatch.setattr(storage, "_BUFFER_BYTES", 16)


def run(scene: Scene, prefix: str, disk: DiskKilledAt, version: int = 9) -> bool:
    """Writes a version; returns whether the writer completed."""
    try:
        scene.write(prefix, version, disk)
    except ProcessKilled:
        return False
    return True


def check(scene: Scene, prefix: str, moment: object) -> None:
    """The old or the new version is there; in a merge the parts are, unless the new one is; the next save tidies up."""
    version = version_at(prefix)
    assert version in (scene.old, 9), moment
    if scene.write is merge and version != 9:
        assert merged_parts_are_there(prefix, 9), moment
    save(prefix, 7)
    assert version_at(prefix) == 7, moment


@pytest.mark.parametrize("name", SCENES)
def test_a_kill_at_any_operation_loses_nothing(tmp_path: Path, name: str) -> None:
    """And the next save removes the files that the kill left, and no others."""
    scene = SCENES[name]
    kills, completed = 0, False
    while not completed:
        folder = tmp_path / str(kills)
        folder.mkdir()
        for bystander in BYSTANDERS:
            (folder / bystander).write_text(f"a copy of {bystander}")
        prefix = scene.set_up(folder)
        completed = run(scene, prefix, scene.disk(kills))
        check(scene, prefix, kills)
        data = [file for file in files_in(folder) if file not in BYSTANDERS and "of-parts" not in file]
        assert len(data) == 2, (kills, data)
        assert data[1] == "ckpt.index"
        assert all((folder / name).read_text() == f"a copy of {name}" for name in BYSTANDERS)
        shutil.rmtree(folder)
        kills += 1
    assert kills > 20


@pytest.mark.parametrize("name", SCENES)
def test_loss_of_power_at_any_operation_loses_nothing(tmp_path: Path, name: str) -> None:
    """Whichever of the unsynced changes survive."""
    scene = SCENES[name]
    folder = tmp_path / "disk"
    folder.mkdir()
    prefix = scene.set_up(folder)
    disk = PowerLoss(folder)
    scene.write(prefix, 9, disk)
    assert len(disk.states) > 10
    for number, (tree, moment) in enumerate(disk.states.items()):
        state = tmp_path / str(number)
        put(tree, state)
        check(scene, str(state / "ckpt"), moment)
        shutil.rmtree(state)


def test_what_was_saved_survives_a_loss_of_power(tmp_path: Path) -> None:
    """As soon as the save has returned, new folders included."""
    disk = PowerLoss(tmp_path)
    save(str(tmp_path / "new" / "ckpt"), 3, disk)
    disk.states.clear()
    disk.note("the end")
    for number, tree in enumerate(disk.states):
        state = tmp_path / str(number)
        put(tree, state)
        assert version_at(str(state / "new" / "ckpt")) == 3


WRITES = st.lists(st.tuples(st.sampled_from([save, merge]), st.integers(0, 60)), min_size=1, max_size=6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(WRITES)
def test_any_row_of_kills_loses_nothing(tmp_path: Path, writes: list[tuple[Writer, int]]) -> None:
    """Writers that are killed or complete follow each other; another checkpoint in the folder stays."""
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    prefix, neighbour, current = str(tmp_path / "ckpt"), str(tmp_path / "ckpt.index"), None
    save(neighbour, 2)
    for version, (writer, kill) in enumerate(writes):
        if writer is merge:
            for part in parts_of(prefix):
                shutil.rmtree(Path(part).parent, ignore_errors=True)
            save_parts(prefix, version)
        completed = run(Scene((), writer, None), prefix, DiskKilledAt(kill), version)
        survivor = version_at(prefix)
        assert survivor == version if completed else survivor in (current, version)
        current = survivor
    save(prefix, 9)
    assert [file for file in files_in(tmp_path) if not file.startswith("ckpt.index.")] == [
        next(file for file in files_in(tmp_path) if file.startswith("ckpt.data-")),
        "ckpt.index",
    ]
    assert version_at(neighbour) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.slow
def test_kill_9_at_any_operation_loses_nothing(tmp_path: Path) -> None:
    """Real processes, real kills: of a save over another one, and of a merge over another one."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for name in ("save over a save", "merge over a merge"):
        scene, template, copies = SCENES[name], tmp_path / name / "template", tmp_path / name / "killed"
        template.mkdir(parents=True)
        copies.mkdir()
        scene.set_up(template)
        command = [sys.executable, "-m", killed.__name__, scene.write.__name__, str(template), str(copies)]
        subprocess.run(command, env=environment, check=True, timeout=600)
        folders = sorted(copies.iterdir())
        assert len(folders) > 20
        for folder in folders:
            check(scene, str(folder / "ckpt"), folder.name)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.skipif(not TOOL.exists(), reason="tools are not part of the distribution")
@pytest.mark.slow
@pytest.mark.parametrize("way", [[], ["--merge"]])
def test_the_tool_that_kills_at_random_counts_no_loss(way: list[str]) -> None:
    """A few kills here, 1,000 by hand."""
    command = [sys.executable, str(TOOL), "--kills", "10", "--megabytes", "0.1", *way]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=600).stdout
    assert output.startswith("10 kills: ")
    assert " 0 lost\n" in output
