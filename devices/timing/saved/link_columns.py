"""What links carried <-> columns of loads, and a description in JSON.

links     the links that carried something, in order
uses      by link the number of its loads; links that carried the same, as those of equal ranks do, share them
counts    by number of loads how many rows of from, to and rate they have, one after the other
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, pairwise
from typing import TYPE_CHECKING

import numpy as np
from attrs import frozen

from ...documents import to_document
from ...topology import Link
from ..link_use import LinkLoad, LinkUse
from .coding import ColumnDocument, ColumnReader, ColumnWriter, damaged

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .archive import Column

_RATES = "link_rates"


@frozen
class LinksDocument:
    """The description of loads; a rate is a number of the array of distinct rates."""

    links: tuple[Link, ...]
    uses: tuple[int, ...]
    counts: tuple[int, ...]
    columns: dict[str, ColumnDocument]


def link_columns(
    links: Sequence[Link], loads: Callable[[Link], list[LinkLoad]]
) -> tuple[dict[str, object], dict[str, Column]]:
    """The description of links and their loads, and the arrays that it names."""
    numbers: dict[tuple[LinkLoad, ...], int] = {}
    uses = [numbers.setdefault(tuple(loads(link)), len(numbers)) for link in links]
    rows = list(chain.from_iterable(numbers))
    from_ns, to_ns = (np.array([row[at] for row in rows], np.int64) for at in (0, 1))
    rates, rate = np.unique(np.array([row[2] for row in rows], np.float64), return_inverse=True)
    writer = ColumnWriter("link_")
    writer.add_differences("from_ns", from_ns)
    writer.add("to_ns", to_ns, ("from_ns", from_ns))
    writer.add("rate", rate.reshape(-1))
    described = {
        "links": to_document(list(links)),
        "uses": uses,
        "counts": [len(of) for of in numbers],
        "columns": writer.descriptions,
    }
    return described, {**writer.arrays, _RATES: rates}


def read_links(document: LinksDocument, arrays: Mapping[str, Column], where: str) -> LinkUse:
    """The use of links of a description; DataLossError, whose text begins with `where`, for what cannot be."""
    counts, count = document.counts, len(document.links)
    names = [link.name for link in document.links]
    if (
        len(document.uses) != count
        or len(set(names)) < count
        or not all(0 <= use < len(counts) for use in document.uses)
    ):
        raise damaged(where, f"its {count} links have no loads each, or are named twice")
    if any(number < 1 for number in counts):
        raise damaged(where, "a link that carried nothing is listed")
    reader = ColumnReader(document.columns, arrays, sum(counts), where)
    rates = arrays.get(_RATES)
    if rates is None or rates.dtype != np.float64 or not (np.isfinite(rates) & (rates >= 0)).all():
        raise damaged(where, f"it has no array {_RATES!r} of finite rates of 0 and more")
    from_ns, to_ns = reader.read("from_ns", 0), reader.read("to_ns", 0)
    if (to_ns <= from_ns).any():
        raise damaged(where, "a load of a link ends before it begins")
    rate = rates[reader.read("rate", 0, len(rates))]
    rows = list(zip(from_ns.tolist(), to_ns.tolist(), rate.tolist(), strict=True))
    bounds = np.cumsum([0, *counts]).tolist()
    loads = [rows[begin:end] for begin, end in pairwise(bounds)]
    by_name = {name: loads[use] for name, use in zip(names, document.uses, strict=True)}
    return LinkUse(lambda: document.links, lambda name: by_name.get(name, []))
