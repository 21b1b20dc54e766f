"""Makes `docs/gallery.md`, and a picture of the report of each story in `docs/gallery`.

Each story is told, the report of its step is written and opened in a Chromium without a window, and the top of the
page, from its figures to the end of its timeline, is kept. Needs `.[browser,images]` and Chromium. The page alone is
compared with the committed one by `tests/test_generated_pages.py`.

    python tools/make_gallery.py [STORY ...]
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT))

from benchmarks import chromium  # noqa: E402  # it is found once the checkout is on the path
from partita.scenarios import STORIES, step_of, write_report  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TARGET = CHECKOUT / "docs" / "gallery.md"
PICTURES = CHECKOUT / "docs" / "gallery"
WIDTH = 1100
COLOURS = 64
HEAD = """# Gallery

Made by `tools/make_gallery.py`; do not edit. The step of each [story](stories.md), as the top of its
[report](reports.md) shows it. The report of a story on your machine, to zoom and search in:

```python
from partita.scenarios import step_of, write_report

write_report(step_of("straggler"), "straggler.html")
```
"""


def page() -> str:
    """The page."""
    return "\n".join([HEAD, *(entry(name, summary) for name, summary in STORIES.items())])


def entry(name: str, summary: str) -> str:
    """The part of the page about one story."""
    script = f"../scenarios/stories/{name}"
    return f"""## {name}

{summary[:1].upper()}{summary[1:]}: [script]({script}.py), [output]({script}.txt).

![Report of {name}: {summary}](gallery/{name}.png)
"""


def picture(name: str, browser: Browser) -> bytes:
    """The top of the report of a story, as a PNG."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.html"
        write_report(step_of(name), report, title=name, subtitle=STORIES[name])
        window = browser.new_page(viewport={"width": WIDTH, "height": 1000}, color_scheme="light")
        window.goto(report.as_uri())
        window.locator("[data-ready]").wait_for(state="attached")
        timeline = window.get_by_role("region", name="Timeline", exact=True).bounding_box()
        assert timeline is not None
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": timeline["y"] + timeline["height"]}
        taken = window.screenshot(full_page=True, clip=clip)
        window.close()
    return smaller(taken)


def smaller(png: bytes) -> bytes:
    """The same picture with a palette: text and areas of few colours need no more."""
    from PIL import Image  # an extra, which the page alone does not need

    kept = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(
        kept, "PNG", optimize=True
    )
    return kept.getvalue()


def main(names: list[str]) -> None:
    """Writes the page, and the pictures of the stories named, or of all."""
    TARGET.write_text(page(), "utf-8")
    if missing := chromium.missing():
        sys.exit(f"no pictures: {missing}")
    PICTURES.mkdir(exist_ok=True)
    with chromium.launched() as browser:
        for name in names or STORIES:
            png = picture(name, browser)
            (PICTURES / f"{name}.png").write_bytes(png)
            print(f"{name}: {len(png) / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
