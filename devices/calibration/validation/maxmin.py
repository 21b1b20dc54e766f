"""The set `maxmin_star`: flows over the star networks of `maxmin_star_*.json`, timed by SimGrid.

A host reaches the middle of the star over a link with a capacity for each direction. A flow takes the link up of its
source and the link down of its destination, and the latencies of both. Nothing is fitted: the flows of each file end
when `finish_times` says. The null model `datasheet` gives every flow its links alone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

from ....errors import InvalidArgumentError
from ...tables import naming
from ...timing.hardware.flows import Flow, finish_times
from .measured_set import Fold, Job, MeasuredSet, PredictedBounds, RowPredictions, no_parts
from .rows import MeasuredRows, times

FINISH = "finish_s"
ROUNDING = 1e-9
"""half the width of the interval, as a share: nothing but rounding is uncertain"""


@frozen
class Star:
    """Capacities in bytes/s by name of a link ("up 3"), the flows over them, and when each may have ended."""

    links: dict[str, float]
    flows: tuple[Flow, ...]
    finish_s: tuple[object, ...]


@frozen(eq=False)
class StarRows(MeasuredRows):
    """Rows with the stars that they are of, by file name: they are keys too, too large for columns."""

    stars: dict[str, Star]

    def unmeasured(self) -> MeasuredRows:
        """Without the times that SimGrid found."""
        bare = super().unmeasured()
        assert isinstance(bare, StarRows)
        stars = {name: Star(star.links, star.flows, ()) for name, star in self.stars.items()}
        return StarRows(bare.places, bare.texts, bare.keys, bare.measured, stars)


def _read(paths: Sequence[Path], may_be_empty: bool) -> MeasuredRows:
    stars = {path.name: _star(path) for path in paths}
    named = [(name, flow) for name, star in stars.items() for flow in range(len(star.flows))]
    places = tuple(f"{name}, flow {flow}" for name, flow in named)
    finishes = [finish for star in stars.values() for finish in star.finish_s]
    return StarRows(
        places,
        {"file": tuple(name for name, _ in named), "flow": tuple(str(flow) for _, flow in named)},
        {
            "file": np.array([name for name, _ in named], np.str_),
            "flow": np.array([flow for _, flow in named], np.int64),
        },
        {FINISH: times(FINISH, finishes, places, may_be_empty=may_be_empty)},
        stars,
    )


def _star(path: Path) -> Star:
    """The star of a file; InvalidArgumentError with the line of what is no JSON, or the name of what is missing."""
    try:
        document: Any = json.loads(path.read_text("utf-8"))  # Any: JSON
    except json.JSONDecodeError as error:
        raise InvalidArgumentError(
            f"{path.name}, line {error.lineno}: no JSON: {error.msg}; correct the file"
        ) from None
    except UnicodeDecodeError:
        raise InvalidArgumentError(f"{path.name}: it is no UTF-8 text; save it in UTF-8") from None
    try:
        hosts = {link["host"]: link for link in document["links"]}
        links = {f"{end} {host}": float(link[f"{end}_Bps"]) for host, link in hosts.items() for end in ("up", "down")}
        flows = tuple(
            Flow(
                (f"up {flow['src']}", f"down {flow['dst']}"),
                float(flow["bytes"]),
                float(flow["start_s"]),
                float(hosts[flow["src"]]["latency_s"]) + float(hosts[flow["dst"]]["latency_s"]),
            )
            for flow in document["flows"]
        )
        return Star(links, flows, tuple(flow.get(FINISH) for flow in document["flows"]))
    except KeyError as error:
        raise InvalidArgumentError(
            f"{path.name}: no {error.args[0]!r}; a star has links (host, up_Bps, down_Bps, latency_s) and flows "
            "(src, dst, bytes, start_s), all hosts among the links"
        ) from None
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{path.name}: {error}; links and flows of a star are objects of numbers") from None


def _jobs(fit: MeasuredRows | None, test: MeasuredRows) -> Sequence[Job]:
    assert isinstance(test, StarRows)
    return [Job(test.where("file", name), partial(_answer, name, star)) for name, star in test.stars.items()]


def _answer(name: str, star: Star) -> RowPredictions:
    with naming(name):
        ends = np.array(finish_times(star.links, star.flows))
    alone = np.array(
        [
            flow.start_s + flow.latency_s + flow.size_bytes / min(map(star.links.__getitem__, flow.route))
            for flow in star.flows
        ]
    )
    bounds = PredictedBounds(ends, ends * (1 - ROUNDING), ends * (1 + ROUNDING))
    return RowPredictions({FINISH: bounds}, ("max-min fair sharing",) * len(ends), {"datasheet": {FINISH: alone}})


def _folds(rows: MeasuredRows, count: int) -> Sequence[Fold]:
    """One: nothing is fitted, so nothing needs to be held out."""
    return [Fold(None, np.array([], np.intp), np.arange(len(rows)))]


# Fifteen digits, since what is compared are nine.
MAXMIN_STAR = MeasuredSet(
    "maxmin_star", "maxmin_star_*.json", (FINISH,), _read, _jobs, no_parts, _folds, is_fitted=False, digits=15
)
