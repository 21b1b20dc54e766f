"""What the exchanges of two processes say to each other; `exchange.py` has an example.

The messages are plain values. Who writes them as bytes need not look at keys, and decides what a value may be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .rendezvous import Outcome


class Ask(NamedTuple):
    """The next value under each of these keys is wanted; a key that stands there twice asks for two values."""

    step: int
    first: int
    """the number of the first key; the others follow it. Numbers count the asks of one process at another"""
    keys: Sequence[str]


class Data(NamedTuple):
    """Values of one step: value i answers the ask with number `numbers[i]`."""

    step: int
    numbers: Sequence[int]
    values: Sequence[Outcome]
    """messages; what arrives may have an error in the place of one that could not be written as bytes"""
    num_bytes: int
    """the size of the values as their sender counts it, which their receiver gives back"""


class Arrived(NamedTuple):
    """So many bytes of `Data` have arrived, and are not in flight any more."""

    num_bytes: int


ExchangeMessage = Ask | Data | Arrived
