"""The text that a program of nccl-tests prints: sizes and times of one collective among the ranks it lists.

    # Collective test starting: all_reduce_perf
    #  Rank  0 Group  0 Pid 7 on rig device  0 [0x07] NVIDIA H100
    #  Rank  1 Group  0 Pid 7 on rig device  1 [0x0f] NVIDIA H100
    #       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw ...
         1048576        262144     float     sum      -1    35.20   29.79   29.79      0    34.91  ...

The first time, out of place, in microseconds, is the one that counts. The kind comes from the header's name of the
program, from the name of the file, or from the option `collective`.
"""

from __future__ import annotations

import re
from pathlib import Path

from ....errors import InvalidArgumentError
from ..tables import text_of
from .measurements import Measurements, Refused, TimedCollective

_RANK = re.compile(r"#\s+Rank\s+(\d+)\s")
_PROGRAM = re.compile(r"(all_reduce|all_gather|reduce_scatter|alltoall|broadcast|sendrecv)_perf")
_COLUMNS = ("size", "count", "type", "redop", "root", "time")
_KINDS = {"alltoall": "all_to_all", "sendrecv": "send_recv"}
CALIBRATED = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")


def is_nccl_tests(text: str) -> bool:
    """Whether a text is what nccl-tests prints."""
    return any(_is_heading(line) for line in text.splitlines())


def _is_heading(line: str) -> bool:
    return line.startswith("#") and tuple(line[1:].split()[: len(_COLUMNS)]) == _COLUMNS


def read_nccl_tests(path: Path, collective: str | None = None) -> Measurements:
    """The rows of a log; InvalidArgumentError where it does not say what ran among how many ranks."""
    text = text_of(path)
    lines = text.splitlines()
    ranks = len({match[1] for line in lines if (match := _RANK.match(line))})
    if ranks < 2:
        raise InvalidArgumentError(
            f"{path}:1: {ranks} lines '#  Rank ...'; keep the log's header, of two ranks at least"
        )
    kind = _kind(path, text, collective)
    measured: list[TimedCollective] = []
    refused: list[Refused] = []
    for number, line in enumerate(lines, 1):
        cells = line.split()
        if not line.startswith("#") and cells and cells[0].isdecimal():
            row = _row(kind, ranks, cells, f"{path}:{number}")
            if isinstance(row, Refused):
                refused.append(row)
            else:
                measured.append(row)
    if not measured:
        raise InvalidArgumentError(f"{path}:1: no row has a size and a time; give the whole output of nccl-tests")
    return Measurements((), (), tuple(measured), tuple(refused))


def _kind(path: Path, text: str, collective: str | None) -> str:
    match = _PROGRAM.search(text) or _PROGRAM.search(path.name)
    name = collective or (match[1] if match else "")
    kind = _KINDS.get(name, name)
    if kind not in CALIBRATED:
        raise InvalidArgumentError(
            f"{path}:1: {f'{kind!r} is not calibrated' if kind else 'the log does not say which collective ran'}; "
            f"give --collective {'|'.join(CALIBRATED)}"
        )
    return kind


def _row(kind: str, ranks: int, cells: list[str], where: str) -> TimedCollective | Refused:
    try:
        size_bytes, time_us = int(cells[0]), float(cells[5])
    except (IndexError, ValueError):
        raise InvalidArgumentError(f"{where}: this is no row of size, count, type, redop, root, time") from None
    if size_bytes == 0:
        return Refused(where, "a collective of 0 bytes has no size to fit")
    if not time_us > 0:
        raise InvalidArgumentError(f"{where}: the time {cells[5]} must be above 0; leave the row out")
    return TimedCollective(kind, ranks, size_bytes, time_us * 1e3)
