"""Kernels that print tensors: to the standard streams, to the log of module `logging`, or to the end of a file.

Print(x, [x], message="x: ")                       stderr: x: [1 2 3...]
PrintV2("loss 0.5", output_stream="stdout")        stdout: loss 0.5
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from io import FileIO
from itertools import count
from typing import TextIO

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ....graph.formats.storage import file_errors
from ..registry import Construction, Kernel, kernel
from .basic import summary

_FILE = "file://"
_LOG = logging.getLogger(__name__)
_STREAMS: dict[str, Callable[[bytes], None]] = {
    "stdout": lambda text: _put(sys.stdout, text),
    "stderr": lambda text: _put(sys.stderr, text),
    "log(info)": lambda text: _LOG.info("%s", _readable(text)),
    "log(warning)": lambda text: _LOG.warning("%s", _readable(text)),
    "log(error)": lambda text: _LOG.error("%s", _readable(text)),
}


def _readable(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")


def _put(stream: TextIO, text: bytes) -> None:
    """Writes the bytes as they are, where the stream is one of bytes underneath."""
    if hasattr(stream, "buffer"):
        stream.flush()
        stream.buffer.write(text)
    else:
        stream.write(_readable(text))
    stream.flush()


@kernel("Print")
def print_data(node: Construction) -> Kernel:
    """The first input, after the first elements of the others were printed in the first `first_n` steps."""
    attrs = node.attrs
    message, most, first_n = attrs["message"], int(attrs["summarize"]), int(attrs["first_n"])
    calls = node.state.generator(node.name, count)

    def run(x: Array, *data: Array) -> Array:
        if first_n < 0 or next(calls) < first_n:
            shown = "".join(f"[{summary(np.asarray(value), most)}]" for value in data)
            _put(sys.stderr, message + shown.encode("utf-8", "surrogateescape") + b"\n")
        return x

    return run


@kernel("PrintV2")
def print_text(node: Construction) -> Kernel:
    """Prints one string and the attr `end`."""
    write, end = _writer(node.attrs["output_stream"].decode()), node.attrs["end"]

    def run(text: Array) -> None:
        if np.ndim(text) != 0:
            raise InvalidArgumentError(f"Input is expected to be scalar, but got {shape_text(np.shape(text))}")
        write(np.asarray(text).item() + end)

    return run


def _writer(stream: str) -> Callable[[bytes], None]:
    """The function that writes to a stream; InvalidArgumentError for an unknown one."""
    path = stream.removeprefix(_FILE)
    if path and path != stream:
        return lambda text: _append(path, text)
    if stream not in _STREAMS:
        raise InvalidArgumentError(f"Unknown output stream: {path}, Valid streams are: {' '.join(_STREAMS)}")
    return _STREAMS[stream]


def _append(path: str, text: bytes) -> None:
    with file_errors(path), FileIO(os.fsencode(path), "ab") as file:
        file.write(text)
