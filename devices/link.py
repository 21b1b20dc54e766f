"""A model of link: the bandwidth of one direction, and the latency.

More bandwidth, less latency or fewer bytes never take longer. Latency does not occupy the link: the bytes arrive that
much later, and meanwhile the link sends the next ones.
"""

from __future__ import annotations

from attrs import Attribute, field, frozen

from ..errors import InvalidArgumentError
from .spec import whole
from .units import MOST_NS


def _bandwidth(owner: object, attribute: Attribute[int], value: int) -> None:
    whole(attribute, value)
    if value <= 0:
        raise InvalidArgumentError(f"bandwidth_bytes_per_s = {value} must be above 0")


def _latency(owner: object, attribute: Attribute[int], value: int) -> None:
    whole(attribute, value, MOST_NS)
    if value < 0:
        raise InvalidArgumentError(f"latency_ns = {value} must not be negative")


@frozen
class LinkSpec:
    """A model of link: `bandwidth_bytes_per_s` of each direction, `latency_ns` until the first byte arrives."""

    name: str
    bandwidth_bytes_per_s: int = field(validator=_bandwidth)
    latency_ns: int = field(default=0, validator=_latency)


def transfer_ns(size_bytes: int, bandwidth_bytes_per_s: int, latency_ns: int = 0) -> int:
    """Nanoseconds of one transfer: latency + bytes / bandwidth, a started nanosecond counted whole.

    Without the latency it is how long the transfer occupies the link.
    """
    return latency_ns - (-size_bytes * 10**9 // bandwidth_bytes_per_s)
