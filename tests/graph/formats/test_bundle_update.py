"""Writers of one prefix do not disturb each other; disk errors and interrupts leave a whole checkpoint."""

from __future__ import annotations

import errno
import os
import resource
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.errors import (
    AbortedError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    PartitaError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnknownError,
)
from partita.graph.formats import storage
from partita.graph.formats.bundle_index import BundleIndex
from partita.graph.formats.bundle_merge import merge_bundles
from partita.graph.formats.bundle_reader import BundleReader
from partita.graph.formats.bundle_writer import BundleWriter
from partita.graph.formats.file_system import FileSystem
from tests.graph.formats.disks import UNSYNCED, Faulty, PowerLoss, Watched, put
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

BOTH = pytest.mark.parametrize("write", [save, merge])


class Visited(Watched):
    """Calls a function just before, or just after, operation number `moment`."""

    def __init__(
        self, moment: int, visit: Callable[[], None], *, after: bool = False, never_at: Sequence[str] = ()
    ) -> None:
        self.visited = self.skipped = False
        self._moment = moment
        self._visit = visit
        self._after = after
        self._except = never_at
        self._done = 0

    def run(self, name: str, work: Callable[..., Any], *arguments: Any) -> Any:
        """Does one operation, and calls the function if it is its turn."""
        due, self._done = self._done == self._moment, self._done + 1
        self.visited |= due
        self.skipped |= due and name in self._except
        due &= name not in self._except
        if due and not self._after:
            self._visit()
        result = work(*arguments)
        if due and self._after:
            if name in ("create", "open"):
                os.close(result)  # what an interrupt on the way back from the call would leak
            self._visit()
        return result


@BOTH
def test_another_save_at_any_moment_does_not_disturb(tmp_path: Path, write: Writer) -> None:
    """Afterwards one of the two versions is there, whole, and the files of the other are removed."""
    moment, visited = 0, True
    while visited:
        folder = tmp_path / str(moment)
        folder.mkdir()
        prefix = str(folder / "ckpt")
        save(prefix, 0)
        save_parts(prefix, 9)
        disk = Visited(moment, partial(save, prefix, 5))
        write(prefix, 9, disk)
        assert version_at(prefix) in (5, 9), moment
        save(prefix, 7)
        assert version_at(prefix) == 7
        assert len(files_in(folder)) == 2, (moment, files_in(folder))
        shutil.rmtree(folder)
        moment, visited = moment + 1, disk.visited
    assert moment > 20


def test_an_index_that_got_the_inode_and_the_time_of_the_one_before_is_another(tmp_path: Path) -> None:
    """File systems give both again at once."""
    for name, value in (("old", 0.0), ("new", 1.0)):
        with BundleWriter(str(tmp_path / name)) as writer:
            writer.add("w", np.full(4, value))
    path = tmp_path / "old.index"
    index, facts = BundleIndex(str(tmp_path / "old")), path.stat()
    assert index.is_current()
    path.write_bytes((tmp_path / "new.index").read_bytes())
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    after = path.stat()
    assert (after.st_ino, after.st_size, after.st_mtime_ns) == (facts.st_ino, facts.st_size, facts.st_mtime_ns)
    assert not index.is_current()


def test_a_writer_at_work_is_not_swept(tmp_path: Path) -> None:
    """However many other saves of its prefix end meanwhile: the save that ends last wins."""
    prefix = str(tmp_path / "ckpt")
    with BundleWriter(prefix, UNSYNCED) as slow, BundleWriter(prefix, UNSYNCED) as slower:
        for writer in (slow, slower):
            writer.add("a", np.zeros(3))
        for version in range(3):
            save(prefix, version)
            assert version_at(prefix) == version
        slow.add("b", np.ones(2))
    assert BundleReader(prefix).names() == ["a", "b"]
    assert BundleReader(prefix).read("b").tolist() == [1, 1]


def test_a_checkpoint_that_is_saved_while_it_is_merged_is_not_lost(tmp_path: Path) -> None:
    """The merge is refused; the new save and the earlier checkpoints are still there."""
    prefix, refused, moment, visited = str(tmp_path / "ckpt"), 0, 0, True
    part = parts_of(prefix)[0]

    def save_part() -> None:
        for _ in range(2):  # after which the data file has the name of the first one again
            with BundleWriter(part, UNSYNCED) as writer:
                writer.add("late", np.full(40, 5))

    while visited:
        save(prefix, 0)
        save_parts(prefix, 9)
        # Between a last look at the old index and its removal there is a moment that no file system lets one close.
        disk = Visited(moment, save_part, never_at=["remove"])
        try:
            merge(prefix, 9, disk)
        except AbortedError:
            refused += 1
            assert version_at(prefix) == 0
        if disk.visited and "late" not in BundleReader(prefix):
            assert version_at(prefix) in (0, 9), moment
            assert disk.skipped or BundleReader(part).read("late").tolist() == [5] * 40, moment
        moment, visited = moment + 1, disk.visited
    assert refused > 3


def test_an_interrupt_at_any_moment_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    """The old one and no other file, or the new one."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    prefix, moment, version = str(tmp_path / "ckpt"), 0, 0
    while version != 9 or moment < 20:
        save(prefix, 0)
        with pytest.raises(KeyboardInterrupt):
            save(prefix, 9, Visited(moment, interrupt, after=True))
        version = version_at(prefix) or 0
        assert version in (0, 9)
        moment += 1


def test_names_that_cannot_be_freed_are_passed_over(tmp_path: Path) -> None:
    """Such as those of folders."""
    prefix = str(tmp_path / "ckpt")
    (tmp_path / "ckpt.data-00000-of-00001").mkdir()
    (tmp_path / "ckpt.data-00000-of-00002").mkdir()
    save_parts(prefix, 4)
    merge(prefix, 4)
    assert files_in(tmp_path) == ["ckpt.data-00001-of-00003", "ckpt.data-00002-of-00003", "ckpt.index"]
    assert version_at(prefix) == 4


def test_a_sweep_after_a_failed_sync_waits_for_it(tmp_path: Path) -> None:
    """A new index that a power loss may undo does not cause the old data to be removed."""
    prefix = str(tmp_path / "disk" / "ckpt")
    save(prefix, 0)

    class Failing(PowerLoss):
        renamed = failed = False

        def run(self, name: str, work: Callable[..., Any], *arguments: Any) -> Any:
            if name == "sync" and self.renamed and not self.failed:
                self.failed = True
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            self.renamed |= name == "rename"
            return super().run(name, work, *arguments)

    disk = Failing(tmp_path / "disk")
    with pytest.raises(UnknownError, match="disk; Input/output error"):
        save(prefix, 5, disk)
    save(prefix, 9, disk)
    for number, (tree, moment) in enumerate(disk.states.items()):
        state = tmp_path / str(number)
        put(tree, state)
        assert version_at(str(state / "ckpt")) in (0, 5, 9), moment


CODES: list[tuple[int, type[PartitaError]]] = [
    (errno.ENOSPC, ResourceExhaustedError),
    (errno.EDQUOT, ResourceExhaustedError),
    (errno.EROFS, PermissionDeniedError),
    (errno.EACCES, PermissionDeniedError),
    (errno.EFBIG, OutOfRangeError),
    (errno.EIO, UnknownError),
]


@BOTH
@pytest.mark.parametrize(("code", "kind"), CODES)
@pytest.mark.parametrize("forever", [False, True])
def test_a_failing_disk_is_told(
    tmp_path: Path, write: Writer, code: int, kind: type[PartitaError], forever: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At any operation: with TensorFlow's code and the file, and with the old checkpoint unchanged and no other file.

    An error while removing a superfluous file is not reported.
    """
    monkeypatch.setattr(storage, "_BUFFER_BYTES", 16)
    prefix, fault, num_errors = str(tmp_path / "ckpt"), 0, 0
    while True:
        save(prefix, 0)
        save_parts(prefix, 9)
        before = files_in(tmp_path)
        disk = Faulty(fault, code, forever=forever)
        error: PartitaError | None = None
        try:
            write(prefix, 9, disk)
        except PartitaError as caught:
            error = caught
        if disk.done <= fault:
            break
        version = version_at(prefix)
        if error is None:
            assert version == 9
        else:
            num_errors += 1
            assert type(error) is kind, (fault, error)
            assert str(tmp_path) in error.message
            assert os.strerror(code) in error.message
            assert version in (0, 9)
        if version == 0:
            assert forever or files_in(tmp_path) == before
            assert write is save or merged_parts_are_there(prefix, 9)
        fault += 1
    assert num_errors > 4


def test_a_file_that_grows_too_large_is_told(tmp_path: Path) -> None:
    """Really: by a limit on the size of files."""
    prefix = str(tmp_path / "ckpt")
    save(prefix, 0)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, before[1]))
    try:
        with (
            pytest.raises(OutOfRangeError, match=r"ckpt\.data-00001-of-00002; File too large"),
            BundleWriter(prefix) as writer,
        ):
            writer.add("a", np.zeros(4_000_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert version_at(prefix) == 0
    assert len(files_in(tmp_path)) == 2


@pytest.mark.parametrize(
    ("prefix", "kind", "message"),
    [
        ("n" * 300, InvalidArgumentError, "nn.tempstate-0-of-1-"),
        ("n" * 240, InvalidArgumentError, "; File name too long"),
        ("file/x", FailedPreconditionError, "; Not a directory"),
        ("no/such/x", NotFoundError, "no/such; No such file or directory"),
        ("folder", FailedPreconditionError, "folder.index; Is a directory"),
    ],
)
def test_impossible_places_are_told(tmp_path: Path, prefix: str, kind: type[PartitaError], message: str) -> None:
    """With TensorFlow's codes; nothing is left there."""
    (tmp_path / "file").touch()
    (tmp_path / "folder.index").mkdir()
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(kind) as caught:
        save(str(tmp_path / prefix), 0)
    assert message in caught.value.message
    assert sorted(path.name for path in tmp_path.iterdir()) == before


class Closed(FileSystem):
    """A disk with a folder that may not be entered."""

    def _refuse(self, *arguments: object, **named: object) -> Any:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    open = create = stat = names_in = make_folder = _refuse


def test_a_folder_that_may_not_be_entered_is_told(tmp_path: Path) -> None:
    """When saving, reading and merging, even if missing checkpoints are allowed: this one may exist."""
    prefix = str(tmp_path / "ckpt")
    save(prefix, 0)
    with pytest.raises(PermissionDeniedError, match="Permission denied"):
        save(prefix, 1, Closed())
    with pytest.raises(PermissionDeniedError, match=r"ckpt\.index; Permission denied"):
        BundleReader(prefix, Closed())
    with pytest.raises(PermissionDeniedError, match=r"ckpt\.index; Permission denied"):
        merge_bundles([prefix], f"{prefix}2", allow_missing=True, files=Closed())
    assert version_at(prefix) == 0


def test_a_folder_that_may_not_be_listed_is_saved_to(tmp_path: Path) -> None:
    """As in TensorFlow; old data stays there, because it cannot be listed."""

    class Unlisted(Watched):
        def run(self, name: str, work: Callable[..., Any], *arguments: Any) -> Any:
            if name == "names_in" or (name == "open" and arguments[0] == str(tmp_path)):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return work(*arguments)

    prefix = str(tmp_path / "ckpt")
    for version in range(3):
        save(prefix, version, Unlisted())
        assert version_at(prefix) == version
    assert BundleIndex(prefix).num_shards == 3
