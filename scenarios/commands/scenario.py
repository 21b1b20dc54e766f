"""`partita scenario`: runs a shipped story, or lists all of them."""

from __future__ import annotations

from ...graph.suggestions import meant
from ..stories.catalog import STORIES, tell
from .failure import ConfigurationError
from .screen import Screen


def scenario(name: str | None, as_json: bool) -> None:
    """Prints the lines of a story, or lists all stories; ConfigurationError for an unknown name."""
    screen = Screen()
    if name is None:
        if as_json:
            stories = [{"name": story, "description": what} for story, what in STORIES.items()]
            screen.json({"scenarios": stories})
            return
        width = max(map(len, STORIES))
        for story, what in STORIES.items():
            screen.line(f"{story:<{width}}  {what}")
        return
    if name not in STORIES:
        hint = meant(name, STORIES)
        raise ConfigurationError(f"there is no story {name!r}{hint}; the stories are {', '.join(STORIES)}")
    if as_json:
        with screen.working(f"telling {name}"):
            lines = list(tell(name))
        screen.json({"name": name, "description": STORIES[name], "lines": lines})
        return
    for line in tell(name):
        screen.line(line)
