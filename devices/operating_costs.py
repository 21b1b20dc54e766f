"""What a device costs to run: its price, its power, and how often it fails. No simulated time depends on these.

    [[device]]                     operating_costs_from(the table)
    spec = "H100-SXM"              OperatingCosts(usd_per_hour=2.5, watts=700.0, mtbf_s=1.8e8)
    count = 8                              |
    price = "2.50 $/h"                     |  8 of them, and a CPU that says nothing
    power = "700 W"                        v
    mtbf = "50000 h"               Cluster.operating_costs: 20 $/h, 5600 W, a failure every 2.25e7 s

Nothing is assumed: what a file does not say is None, and so then is the sum over devices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import fsum, inf
from typing import Any, Self

from attrs import Attribute, field, frozen

from ..errors import InvalidArgumentError
from .tables import naming
from .units import parse_lifetime_s, parse_usd_per_hour, parse_watts

_KEYS: Mapping[str, tuple[str, Callable[[str], float]]] = {
    "price": ("usd_per_hour", parse_usd_per_hour),
    "power": ("watts", parse_watts),
    "mtbf": ("mtbf_s", parse_lifetime_s),
}
COST_KEYS = tuple(_KEYS)
"""of a table [[device]] or [[host]]"""


def _not_negative(owner: object, attribute: Attribute[float | None], value: float | None) -> None:
    if value is not None and not 0 <= value < inf:
        raise InvalidArgumentError(f"{attribute.name} = {value!r} must be a number of 0 or more, or None")


def _positive(owner: object, attribute: Attribute[float | None], value: float | None) -> None:
    if value is not None and not value > 0:
        raise InvalidArgumentError(f"{attribute.name} = {value!r} must be above 0, or None")


@frozen
class OperatingCosts:
    """Of one device, or of several together; None is unknown.

    `usd_per_hour` is the price in US dollars, `watts` the power drawn during a step, `mtbf_s` the mean time between
    failures in seconds, infinite for what never fails. InvalidArgumentError for negative numbers.
    """

    usd_per_hour: float | None = field(default=None, validator=_not_negative)
    watts: float | None = field(default=None, validator=_not_negative)
    mtbf_s: float | None = field(default=None, validator=_positive)

    @classmethod
    def together(cls, costs: Iterable[Self], others: Iterable[Self] = ()) -> Self:
        """Of all devices: prices, powers and rates of failures are added.

        One that is unknown of any of `costs` is unknown of all; what is unknown of `others` adds nothing.
        """
        each, more = list(costs), list(others)
        failures_per_s = _sum([one._failures_per_s for one in each], [one._failures_per_s for one in more])
        return cls(
            _sum([one.usd_per_hour for one in each], [one.usd_per_hour for one in more]),
            _sum([one.watts for one in each], [one.watts for one in more]),
            1 / failures_per_s if failures_per_s else None if failures_per_s is None else inf,
        )

    @property
    def _failures_per_s(self) -> float | None:
        return None if self.mtbf_s is None else 1 / self.mtbf_s


UNKNOWN_COSTS = OperatingCosts()


def _sum(numbers: list[float | None], others: list[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    if len(known) < len(numbers):
        return None
    return fsum([*known, *(number for number in others if number is not None)])


def operating_costs_from(table: Mapping[str, Any], where: str) -> OperatingCosts:
    """What `price`, `power` and `mtbf` of a table say; InvalidArgumentError, with the key, for wrong values."""
    numbers: dict[str, float] = {}
    for key, (name, parse) in _KEYS.items():
        if key in table:
            with naming(f"{where}: {key}"):
                numbers[name] = parse(table[key])
    return OperatingCosts(**numbers)
