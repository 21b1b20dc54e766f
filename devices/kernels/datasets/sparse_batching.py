"""DenseToSparseBatchDataset: elements of different sizes in one sparse tensor, each a row, with no padding.

    [1]  [4 5]  [7 8 9]      batches of two      indices 0,0  1,0  1,1    values 1 4 5    shape 2,2
                                                 indices 0,0  0,1  0,2    values 7 8 9    shape 1,3

Every element of a tensor is stored, zeros too. A batch is a vector of three variants, as SerializeSparse gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ....errors import DataLossError, InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..checks import require, vector_of
from ..registry import Construction, Kernel, kernel
from ..sparse.serialized_sparse import serialized_row
from .batching import BatchIterator, num_batches
from .dataset import Dataset, Element, ElementSpec, Iterator
from .transformation import Transformed, count_of, transforming


@dataclass(frozen=True, slots=True, eq=False)
class _SparseBatch(Transformed):
    size: int
    row_shape: tuple[int, ...]  # -1 stands for the largest size in the batch

    def iterator(self) -> Iterator:
        return BatchIterator(self.source.iterator(), self.size, self.joined, drops=False)

    def cardinality(self) -> int:
        return num_batches(self.source.cardinality(), self.size, drops=False)

    def joined(self, elements: Sequence[Element]) -> Element:
        rows = [row for (row,) in elements]
        for row in rows:
            self._check(row)
        largest = [max(sizes) for sizes in zip(*(row.shape for row in rows), strict=True)]
        sizes = [most if size < 0 else size for size, most in zip(self.row_shape, largest, strict=True)]
        places = [np.indices(row.shape).reshape(row.ndim, row.size).T for row in rows]
        numbers = np.repeat(np.arange(len(rows)), [row.size for row in rows])[:, None]
        indices = np.concatenate([numbers, np.concatenate(places)], axis=1).astype(np.int64)
        values = np.concatenate([row.reshape(-1) for row in rows])
        shape = np.array([len(rows), *sizes], np.int64)
        return (serialized_row((indices, values, shape), self.source.form.types[0], as_variants=True),)

    def _check(self, row: Array) -> None:
        texts = shape_text(row.shape), shape_text([None if size < 0 else size for size in self.row_shape])
        require(
            row.ndim == len(self.row_shape),
            f"Input element had shape ({texts[0]}) that is incompatible with the row shape ({texts[1]}).",
        )
        if any(0 <= most < size for size, most in zip(row.shape, self.row_shape, strict=True)):
            raise DataLossError(f"Input element had shape ({texts[0]}) that is larger than the row shape ({texts[1]}).")


@kernel("DenseToSparseBatchDataset", "ExperimentalDenseToSparseBatchDataset")
def dense_to_sparse_batch(node: Construction) -> Kernel:
    """Every `batch_size` elements of one component in one sparse tensor."""

    def make(form: ElementSpec, source: Dataset, size: Array, row_shape: Array) -> Dataset:
        require(count_of(size) > 0, "Batch size must be greater than zero.")
        if len(source.form.types) != 1:
            raise InvalidArgumentError("DenseToSparseBatchDataset only supports inputs with a single component.")
        return _SparseBatch(form, source, count_of(size), tuple(vector_of(row_shape, "row_shape")))

    return transforming(node, make)
