"""Shape functions of reading, writing and finding files."""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import ShapeContext, shape_fn, with_rank, with_rank_at_most
from ...dtypes import Shape


@shape_fn("ReadFile")
def read_file(c: ShapeContext) -> Sequence[Shape]:
    """One string of one file."""
    return (with_rank(c.inputs[0], 0),)


@shape_fn("WriteFile")
def write_file(c: ShapeContext) -> Sequence[Shape]:
    """No output; one string for one file."""
    with_rank(c.inputs[0], 0)
    with_rank(c.inputs[1], 0)
    return ()


@shape_fn("MatchingFiles")
def matching_files(c: ShapeContext) -> Sequence[Shape]:
    """As many names as there are files."""
    with_rank_at_most(c.inputs[0], 1)
    return ((None,),)
