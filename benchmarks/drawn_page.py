"""Opens a report page in fresh windows of one browser, and zooms and pans in the last of them.

    python -m benchmarks.drawn_page step.html 5   ->   {"drawn_s": [0.21, ...], "moves_s": [0.004, ...]}

`drawn_s` is by window, from the start of the visit until the page says that it is drawn, after the timeline's first
picture. `moves_s` is by move: what the page's handler of the wheel takes, and what the frame
takes in which it draws, until one of its pixels can be read back, which waits for the drawing itself. The time until
the next frame begins is left out, as it is the display's.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from .chromium import launched

_PATIENCE_MS = 120_000
_DRAWN = ".page[data-ready]"
_NOTE = f"""
new MutationObserver(() => document.querySelector("{_DRAWN}") && !performance.getEntriesByName("drawn").length
  && performance.mark("drawn")).observe(document, {{ subtree: true, attributeFilter: ["data-ready"] }});
"""
_NOTED = "() => performance.getEntriesByName('drawn')[0].startTime / 1000"
_MOVES = """
async () => {
  const canvas = document.querySelector("canvas[aria-roledescription=timeline]");
  const { left, top, width, height } = canvas.getBoundingClientRect();
  const frame = () => new Promise((drawn) => requestAnimationFrame(drawn));
  const wheel = (at, how) => () => canvas.dispatchEvent(new WheelEvent("wheel", { bubbles: true, cancelable: true,
    clientX: left + at * width, clientY: top + height / 2, ...how }));
  const zoom = (at, deltaY) => wheel(at, { deltaY });
  const pan = (deltaX) => wheel(0.5, { deltaX });
  const moves = [];
  for (const at of [0.3, 0.5, 0.7, 0.4, 0.6]) moves.push(zoom(at, -300), pan(120));
  for (const at of [0.3, 0.5, 0.7, 0.4, 0.6]) moves.push(pan(-120), zoom(at, 300));
  const seconds = [];
  for (const move of moves) {
    await frame();
    let began = 0;
    requestAnimationFrame(() => { began = performance.now(); });
    const start = performance.now();
    move();
    const handled = performance.now();
    await frame();
    canvas.getContext("2d").getImageData(0, 0, 1, 1);
    seconds.push((handled - start + performance.now() - began) / 1000);
  }
  return seconds;
}
"""


def measured(page: Path, rounds: int) -> dict[str, Any]:  # Any: lists of seconds
    """The times of some visits, and of twenty moves in the last."""
    drawn_s: list[float] = []
    with launched() as browser:
        for _ in range(rounds):
            window = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True)
            tab = window.new_page()
            tab.add_init_script(_NOTE)
            tab.goto(page.absolute().as_uri(), timeout=_PATIENCE_MS)
            tab.locator(_DRAWN).wait_for(state="attached", timeout=_PATIENCE_MS)
            drawn_s.append(tab.evaluate(_NOTED))
            moves_s = tab.evaluate(_MOVES) if len(drawn_s) == rounds else []
            window.close()
    return {"drawn_s": drawn_s, "moves_s": moves_s}


if __name__ == "__main__":
    print(json.dumps(measured(Path(sys.argv[1]), int(sys.argv[2]))))
