"""ImmutableConst: a tensor that lies in a file, byte for byte, as TensorFlow maps it into memory.

the file of 24 bytes, float32 of shape [2, 3]       all six numbers
the same file, shape [2]                            the first two
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ....errors import InternalError, NotFoundError, UnimplementedError
from ....graph.dtypes import Array, DataType, numpy_dtype
from ....graph.formats.storage import file_errors
from ..checks import require
from ..registry import Construction, Kernel, kernel
from .whole_files import split_scheme

_HANDLES = (DataType.RESOURCE, DataType.VARIANT)


@kernel("ImmutableConst")
def immutable_const(node: Construction) -> Kernel:
    """Reads the file when the node runs, and maps it: pages come from the disk when they are read.

    Raises InternalError for a file that is too short, InvalidArgumentError for an empty one and for handles,
    UnimplementedError for strings, NotFoundError for a folder.
    """
    dtype, shape = DataType(node.attrs["dtype"]), node.attrs["shape"]
    _, path = split_scheme(node.attrs["memory_region_name"])

    def read() -> Array:
        require(dtype not in _HANDLES, "Resource and variant dtypes are invalid for this op.")
        if dtype is DataType.STRING:
            raise UnimplementedError("Sorry, DT_STRING is not currently supported for ImmutableConstOp.")
        require(shape is not None and None not in shape, "the shape of a memory region must be fully known")
        with file_errors(path):
            if Path(path).is_dir():
                raise NotFoundError(f"{path}; No such device")
            size = Path(path).stat().st_size
            require(size > 0, f"{path}; Invalid argument: the file is empty")
            region = np.memmap(path, np.uint8, "r")
        element = np.dtype(numpy_dtype(dtype))
        needed = element.itemsize * int(np.prod(shape, dtype=np.int64))
        if len(region) < needed:
            raise InternalError(
                f"Readonly memory region has wrong length ({len(region)}) when allocating {needed}: {path}"
            )
        return np.asarray(region[:needed]).view(element).reshape(shape)

    return read
