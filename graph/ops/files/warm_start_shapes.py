"""Shape functions of ops that read vocabularies and checkpoints of an earlier model: their attrs have the sizes."""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import ShapeContext, shape_fn, with_rank
from ...dtypes import Shape


@shape_fn("GenerateVocabRemapping")
def generate_vocab_remapping(c: ShapeContext) -> Sequence[Shape]:
    """One line per new entry, and a number."""
    for shape in c.inputs:
        with_rank(shape, 0)
    return (int(c.attrs["num_new_vocab"]),), ()


@shape_fn("LoadAndRemapMatrix")
def load_and_remap_matrix(c: ShapeContext) -> Sequence[Shape]:
    """[num_rows, num_cols]."""
    return ((int(c.attrs["num_rows"]), int(c.attrs["num_cols"])),)
