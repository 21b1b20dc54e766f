"""A number without its fraction, as C++ converts it; Python raises for what is too large or no number."""

from __future__ import annotations

_LIMIT = 2**63


def whole(number: float) -> int:
    """The number cut towards zero; the least of 64 bits where it does not fit, or is no number, as on x86 CPUs."""
    return int(number) if abs(number) < _LIMIT else -_LIMIT
