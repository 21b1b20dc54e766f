"""Texts that would do harm if a page, a terminal or a table took them for more than texts, and a step made of them."""

from __future__ import annotations

from partita.devices.timing.events import TimelineEvent
from partita.devices.timing.timeline import Assumption, Timeline

HACK = "hacked=1"
"""what a script would do that got into a page"""
HACKED = "() => globalThis.hacked !== undefined"
TEXTS = {
    "a script": f"</script><script>{HACK}</script>",
    "an image": f'<img src=x onerror="{HACK}">',
    "a drawing": f"<svg onload={HACK}>",
    "an end of an attribute": f'"><a href="javascript:{HACK}" onfocus="{HACK}" autofocus>\'>',
    "a comment": "<!--<script>",
    "an entity": "&lt;b&gt;&#x26;",
    "a template": "${" + HACK + "}`{{" + HACK + "}}",
    "control characters": "a\x1b[31m\x1b]8;;https://example.org\x07b\x00c\r\n\td\x9be",
    "marks of direction": "\u202etxt.exe\u2066\u200f\u061c",
    "a formula": "=HYPERLINK(1)",
    "nothing but blanks": " \u00a0\u2003 ",
    "letters of many sorts": "層/ά/שכבה/طبقة/e\u0301/👩\u200d🔬",
    "a property of objects": "__proto__",
    "a method of objects": "constructor",
}
LONG = "w" * 10_000


def hostile_timeline(text: str, *, other: str = "") -> Timeline:
    """A step in which every text is that one, of two devices and three nodes; `other` tells the nodes apart."""
    events = [
        TimelineEvent(text, text, text, text, "compute", 0, 4_000, 10, 10, text, -1, text),
        TimelineEvent(text, text, f"{text}/{other}b", text, "copy", 4_000, 5_000, 1_000, 0, text, 0, text),
        TimelineEvent(f"{text}2", text, f"{text}/c", text, "compute", 5_000, 9_000, 10, 10, text, 1, text),
    ]
    return Timeline(events, warnings=(text,), assumed=(Assumption(text, text, text),))
