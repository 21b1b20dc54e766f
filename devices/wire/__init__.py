"""Messages between processes as bytes: a header of JSON values, and tensors; nothing is ever unpickled or evaluated.

    data = encode([WireMessage({"op": "data", "step": 7}, [np.float32(1), weights, None])])     one batch, in pieces
    decode(b"".join(data))                                                                      the same messages

    encoding.py          `encode`
    decoding.py          `decode`, which trusts no length before it has compared it with what is there
    sections.py          where what stands in the bytes: `FORMAT`, `WireMessage`, `NotSent`, the kinds of items
    element_types.py     the element types of numpy and ml_dtypes that travel, by number
    memory_order.py      the order in memory of arrays that are not C-contiguous
    carried_values.py    lists, optionals, ragged tensors and others, taken apart and put together
    sendable.py          `unsendable`: why a value cannot travel; `size_of`: its bytes
    refused.py           `refused_kind`: the same of an output of a node, before it runs

What is sent is a tensor as kernels know it; an edge between devices of one process and one between processes must give
the same bits. So a scalar stays a scalar, an array an array; what is strided in memory arrives strided, because numpy
sums and multiplies in another order then. What a process keeps to itself, such as an iterator, arrives as `NotSent`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import load_lazily

if TYPE_CHECKING:
    from .decoding import decode as decode
    from .encoding import encode as encode
    from .refused import refused_kind as refused_kind
    from .sections import FORMAT as FORMAT, NotSent as NotSent, WireMessage as WireMessage
    from .sendable import size_of as size_of, unsendable as unsendable

load_lazily(__name__)
