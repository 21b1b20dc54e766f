"""What fits of whole layers share: a robust fit in log time, and how far it is off at sizes that it has not seen.

Rows of the same sizes, such as two layouts of one layer, are left out together: each is predicted by a fit of all other
sizes. 80 % of those errors give the interval.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from math import ceil

import numpy as np
from scipy.optimize import least_squares

from ....errors import InvalidArgumentError
from ....graph.arrays import Floats, Numbers

LogTimeFormula = Callable[[Floats, Numbers], Floats]
"""log time by the logs of the numbers, at rows of those indices"""

PULL = 0.05
"""weight of the start in the fit: keeps a number where no row says anything of it"""


def fit_numbers(
    formula: LogTimeFormula, log_ns: Floats, rows: Numbers, start: Floats, low: Floats, high: Floats
) -> Floats:
    """The logs of numbers between `low` and `high` with the least robust error (soft L1) of log time."""

    def errors(logs: Floats) -> Floats:
        return np.append(formula(logs, rows) - log_ns[rows], PULL * (logs - start))

    best = least_squares(errors, start, bounds=(low, high), loss="soft_l1", f_scale=0.1)
    return np.asarray(best.x, dtype=np.float64)


def left_out_errors(
    formula: LogTimeFormula, log_ns: Floats, keys: Sequence[Hashable], start: Floats, low: Floats, high: Floats
) -> Floats:
    """By row ln(measured / predicted), predicted by a fit of the rows with other keys."""
    errors = np.empty(len(log_ns))
    for key in dict.fromkeys(keys):
        is_out = np.array([other == key for other in keys])
        out, rest = np.flatnonzero(is_out), np.flatnonzero(~is_out)
        errors[out] = log_ns[out] - formula(fit_numbers(formula, log_ns, rest, start, low, high), out)
    return errors


def spread_of(errors: Floats) -> float:
    """Within which 80 % of errors of further rows lie: the ceil(0.8 (n + 1))-th of n sizes of errors."""
    sizes = np.sort(np.abs(errors))
    return float(f"{sizes[min(len(sizes), ceil(0.8 * (len(sizes) + 1))) - 1]:.6g}")


def shortened(logs: Floats) -> list[float]:
    """Numbers by their logs, with six digits."""
    return [float(f"{number:.6g}") for number in np.exp(logs)]


def check_shares(efficiency: Floats, rows: int, most: float, what: str) -> None:
    """InvalidArgumentError unless there is one share for each row, above 0 and at most `most`."""
    if len(efficiency) != rows:
        raise InvalidArgumentError(f"{len(efficiency)} efficiencies of {rows} rows of {what}; give one each")
    wrong = [float(share) for share in efficiency if not 0 < share <= most]
    if wrong:
        raise InvalidArgumentError(f"efficiency = {wrong[0]} of {what} must be above 0 and at most {most:g}")


def check_keys(keys: Sequence[Hashable], numbers: int, what: str) -> None:
    """InvalidArgumentError unless more sizes than numbers remain when one is left out."""
    if len(set(keys)) < numbers + 2:
        raise InvalidArgumentError(
            f"{len(set(keys))} sizes of {what} are too few for {numbers} numbers; measure at least {numbers + 2}"
        )
