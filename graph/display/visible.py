"""Texts from outside, such as names and messages, made harmless to show: what could steer a terminal becomes visible.

    visible("gpu\x1b[2J")        gpu\x1b[2J      ten letters in place of one that clears the screen
    visible("a\u202eb")          a\u202eb        nor does a mark turn the rest of the line around

These are all letters that `repr` writes as numbers: control characters, marks of direction, separators, halves of
surrogate pairs, which cannot be written at all. Letters of any language stay as they are.
"""

from __future__ import annotations

_SHOWN = 240  # letters of a name in a cell


def visible(text: str) -> str:
    """A text of one line; line ends and tabs become visible too."""
    return text if text.isprintable() else "".join(map(_shown, text))


def visible_lines(text: str) -> str:
    """A text of any number of lines, which stay; only a line feed ends a line."""
    return text if text.isprintable() else "\n".join(map(visible, text.split("\n")))


def shortened(text: str, most: int = _SHOWN) -> str:
    """A text with its middle left out where it has more than `most` letters: a name's begin and end tell most."""
    if len(text) <= most:
        return text
    tail = most // 3
    return f"{text[: most - tail - 1]}…{text[len(text) - tail :]}"


def _shown(letter: str) -> str:
    return letter if letter.isprintable() else ascii(letter)[1:-1]
