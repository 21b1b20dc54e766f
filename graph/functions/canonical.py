"""The text that names one instantiation of a function: its name, its attrs, and further entries, in order.

>>> canonical_name("f", {"T": AttrValue(type=DT_FLOAT), "a": AttrValue(b=False)})
'f[T=float,a=false]'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..dtypes import dtype_name
from ..ops.summaries import summarize_attr
from ..protos import AttrValue


def canonical_name(name: str, attrs: Mapping[str, AttrValue], others: Iterable[str] = ()) -> str:
    """The name of an instantiation, equal for equal calls whatever the order of attrs; `others` are more entries."""
    entries = [f"{key}={_text(value)}" for key, value in attrs.items()]
    return f"{name}[{','.join(sorted([*entries, *others]))}]"


def _text(value: AttrValue) -> str:
    kind = value.WhichOneof("value")
    if kind == "type":
        return dtype_name(value.type)
    if kind == "list" and value.list.type:
        return "{" + ", ".join(map(dtype_name, value.list.type)) + "}"
    if kind == "func":
        return canonical_name(value.func.name, value.func.attr)
    return summarize_attr(value)
