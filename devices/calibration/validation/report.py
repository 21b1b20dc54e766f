"""From a validation to its report: a document of plain values, whose keys docs/validation.md describes, and notes.

document    {"version": 1, "sets": [{"set": "gemm_bf16", "rows": 812, "mape_percent": 5.1, ...}], "left_out": []}
notes       "gemm_bf16: nothing is known of the devices of 12 of 812 rows"
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from .errors import errors_of, mape_percent
from .measured_set import UNKNOWN
from .rankings import Rankings, rankings
from .rows import Indices
from .validation import ValidatedPart, Validation

VERSION = 1


def document(validation: Validation) -> dict[str, Any]:  # Any: JSON
    """The report for programs: a dict per part of a set, in the order of the sets; None for what is not known."""
    sets = [_entry(part, column) for part in validation.parts for column in part.of.measured]
    return {"version": VERSION, "sets": sets, "left_out": list(validation.left_out)}


def notes(validation: Validation) -> list[str]:
    """What a reader of the numbers has to know: rows fitted to that are tested on, rows nobody could predict."""
    lines = []
    for part in validation.parts:
        name = f"{part.of.name} ({part.name})" if part.name else part.of.name
        if part.shared_rows:
            lines.append(
                f"{name}: in-sample, {part.shared_rows} of {len(part.rows)} rows are among those fitted to: "
                "these errors say nothing of other rows"
            )
        missing = sum(text == UNKNOWN for text in part.answer.provenance)
        if missing:
            lines.append(f"{name}: nothing is known of the devices of {missing} of {len(part.rows)} rows")
        lines += [
            f"{name}: {label} is right of {share.right_percent:.1f} % of {share.rows} rows; "
            f"always {share.commonest}: {share.commonest_percent:.1f} %"
            for label, share in right_labels(part).items()
        ]
        lines += [f"{name}: {line}" for line in _of_rankings(part)]
    published = {part.of.name: part.of.published for part in validation.parts}
    return lines + [
        f"{name}: published errors of {column}: {', '.join(f'{tool} {value} %' for tool, value in by.items())}"
        for name, columns in published.items()
        for column, by in columns.items()
    ]


def _of_rankings(part: ValidatedPart) -> list[str]:
    """The orders of models, the choices, and the worst of them."""
    of = _rankings(part)
    if of is None:
        return []
    lines = []
    if of.kendall_tau_b:
        orders = ", ".join(f"{name} {order.tau_b:.2f} ({order.rows} rows)" for name, order in of.kendall_tau_b.items())
        lines.append(f"Kendall's tau-b of {of.column} by model: {orders}")
    if of.best_that_fits:
        choices = of.best_that_fits
        excess = [choice.excess_percent for choice in choices.values()]
        worst = max(choices, key=lambda name: choices[name].excess_percent)
        lines.append(
            f"the least predicted {of.column} that fits is the best measured in {sum(it <= 0 for it in excess)} of "
            f"{len(excess)} choices, and {np.mean(excess):.2f} % more on average; at most {max(excess):.2f} % ({worst})"
        )
    return lines


def _rankings(part: ValidatedPart) -> Rankings | None:
    return rankings(part.of.ranked(part.rows), part.rows, part.answer) if part.of.ranked else None


class RightLabels(NamedTuple):
    """How many rows have a label, of how many it is predicted, and how many have the commonest one."""

    rows: int
    right_percent: float
    commonest: str
    commonest_percent: float


def right_labels(part: ValidatedPart) -> dict[str, RightLabels]:
    """By column of labels, of those that are predicted and known."""
    shares = {}
    for name, said in part.answer.labels.items():
        pairs = [pair for pair in zip(said, part.rows.labels.get(name, ()), strict=False) if all(pair)]
        if not pairs:
            continue
        commonest, count = Counter(known for _, known in pairs).most_common(1)[0]
        right = sum(text == known for text, known in pairs)
        shares[name] = RightLabels(len(pairs), 100 * right / len(pairs), commonest, 100 * count / len(pairs))
    return shares


def _entry(part: ValidatedPart, column: str) -> dict[str, Any]:
    bounds, measured = part.answer.columns[column], part.rows.measured[column]
    errors = errors_of(bounds, measured)
    label = [part.name] if part.name else []
    label += [column] if len(part.of.measured) > 1 else []
    return {
        "set": part.of.name,
        "part": ", ".join(label) or None,
        "rows": len(part.rows),
        "fitted_on_rows": part.fitted_on_rows,
        "in_sample": part.shared_rows > 0,
        **errors._asdict(),
        "worst": None if errors.worst is None else _row(part, column, errors.worst),
        "by": {key: _by(part, rows, column) for key, rows in _splits(part).items()},
        "labels": {name: share._asdict() for name, share in right_labels(part).items()},
        "rankings": _ranks(part, column),
        "null_models": [
            {"name": name, "mape_percent": mape_percent(by[column], measured)} for name, by in part.answer.nulls.items()
        ],
        "published": [
            {"name": name, "mape_percent": value} for name, value in part.of.published.get(column, {}).items()
        ],
    }


def _ranks(part: ValidatedPart, column: str) -> dict[str, Any] | None:
    of = _rankings(part)
    if of is None or of.column != column:
        return None
    return {
        "kendall_tau_b": {name: order._asdict() for name, order in of.kendall_tau_b.items()},
        "best_that_fits": {name: choice._asdict() for name, choice in of.best_that_fits.items()},
    }


def _row(part: ValidatedPart, column: str, row: int) -> dict[str, Any]:
    """One row: its keys, what was measured, what is predicted of it."""
    keys = {name: part.rows.keys[name][row].item() for name in part.rows.texts}
    bounds = zip(("predicted", "low", "high"), part.answer.columns[column], strict=True)
    said = {f"{bound}_{column}": float(values[row]) for bound, values in bounds}
    known = {name: value if isfinite(value) else None for name, value in said.items()}
    return {**keys, column: float(part.rows.measured[column][row]), **known, "provenance": part.answer.provenance[row]}


def _splits(part: ValidatedPart) -> dict[str, Mapping[str, Indices]]:
    """By what errors are split, and the rows of each value."""
    splits: dict[str, Mapping[str, Indices]] = {}
    for key in part.of.by:
        names = sorted(set(part.rows.keys[key].tolist())) if key in part.rows.keys else []
        splits[key] = {str(name): part.rows.where(key, name) for name in names}
    return splits | dict(part.of.by_measured(part.rows) if part.of.by_measured else {})


def _by(part: ValidatedPart, split: Mapping[str, Indices], column: str) -> dict[str, Any]:
    """The errors of the rows of each value."""
    said, measured = part.answer.columns[column].value, part.rows.measured[column]
    return {
        name: {"rows": int(np.size(rows)), "mape_percent": mape_percent(said[rows], measured[rows])}
        for name, rows in split.items()
    }
