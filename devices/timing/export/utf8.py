"""Texts as messages have them. Those of a graph are valid; those of a timeline by hand, or of a file, need not be."""

from __future__ import annotations


def valid(text: str) -> str:
    """The text with a question mark for each half of a surrogate pair, which UTF-8 cannot have."""
    return text.encode("utf-8", "replace").decode()
