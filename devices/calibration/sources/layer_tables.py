"""From tables of attention layers and of grouped products to rows: kind, sizes, and the share of 2250 TFLOP/s reached.

    direction,batch,seq_len,head_num,kv_head_num,qk_head_dim,v_head_dim,qkv_contiguous,efficiency
    fwd,1,4096,8,8,128,128,True,0.32                        MeasuredLayer("fwd", (1, 4096, 8, 8, 128, 128), 0.32)

    ng,M,N,K,dtype,out_dtype,main_grad_dtype,stage,...,efficiency
    40,616,3072,5120,bf16,bf16,fp32,fwd,...,0.5             MeasuredLayer("fwd", (40, 616, 3072, 5120, 4), 0.5)

The files name no device: it is the one that is calibrated. Only products of bf16 are read; others are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ....errors import InvalidArgumentError
from ...timing.fits.attention import DIRECTIONS
from ...timing.fits.grouped import STAGES
from ...timing.fits.layer_model import LayerColumns
from ..tables import ColumnSpec, MeasuredTable, read_table
from .measurements import MeasuredLayer, Measurements, Refused

_ATTENTION_SIZES = ("batch", "seq_len", "head_num", "kv_head_num", "qk_head_dim", "v_head_dim")
_GROUPED_SIZES = ("ng", "M", "N", "K")
_ATTENTION = (
    ColumnSpec("direction"),
    *(ColumnSpec(name, "count") for name in _ATTENTION_SIZES),
    ColumnSpec("efficiency", "positive"),
)
_GROUPED = (
    ColumnSpec("stage"),
    *(ColumnSpec(name, "count") for name in _GROUPED_SIZES),
    *(ColumnSpec(name) for name in ("dtype", "main_grad_dtype")),
    ColumnSpec("efficiency", "positive"),
)
_ITEM_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4}


def read_attentions(path: Path) -> Measurements:
    """The rows of a table of attention layers; InvalidArgumentError names file and line."""
    table = read_table(path, _ATTENTION)
    sizes, share = _sizes(table, _ATTENTION_SIZES), table.floats("efficiency")
    rows = []
    for row, direction in enumerate(table.texts("direction")):
        _check(direction, DIRECTIONS, "direction", table, row)
        rows.append(MeasuredLayer(direction, sizes[row], float(share[row])))
    return Measurements(attentions=tuple(rows))


def read_grouped_products(path: Path) -> Measurements:
    """The rows of a table of grouped products; InvalidArgumentError names file and line."""
    table = read_table(path, _GROUPED)
    sizes, share = _sizes(table, _GROUPED_SIZES), table.floats("efficiency")
    dtypes, gradients = table.texts("dtype"), table.texts("main_grad_dtype")
    rows, refused = [], []
    for row, stage in enumerate(table.texts("stage")):
        _check(stage, STAGES, "stage", table, row)
        _check(gradients[row], tuple(_ITEM_BYTES), "main_grad_dtype", table, row)
        if dtypes[row] == "bf16":
            rows.append(MeasuredLayer(stage, (*sizes[row], _ITEM_BYTES[gradients[row]]), float(share[row])))
        else:
            refused.append(Refused(table.where(row), f"grouped products of {dtypes[row]} are not fitted; give bf16"))
    return Measurements(grouped=tuple(rows), refused=tuple(refused))


def in_columns(rows: Sequence[MeasuredLayer], layers: type[LayerColumns]) -> LayerColumns:
    """The layers in columns of their sort."""
    columns = zip(*(row.sizes for row in rows), strict=True)
    return layers(
        [row.kind for row in rows],
        **{name: np.array(column) for name, column in zip(layers.COLUMNS, columns, strict=True)},
    )


def _sizes(table: MeasuredTable, names: Sequence[str]) -> list[tuple[int, ...]]:
    return list(zip(*(table.counts(name).tolist() for name in names), strict=True))


def _check(text: str, known: Sequence[str], column: str, table: MeasuredTable, row: int) -> None:
    if text not in known:
        raise InvalidArgumentError(f"{table.where(row)}: {column} = {text!r} is none of {', '.join(known)}")
