"""The timeline is looked at from near and far, searched, walked through by keyboard, and linked to."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.drawn_steps import drawn_step
from partita.devices.units import format_ns
from partita.scenarios.report.page.report import write_report
from tests.browser.reading import panel
from tests.browser.reports import Reports
from tests.browser.visits import Visits

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

MANY = 20_000


@pytest.fixture(scope="session")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of many events on 16 devices."""
    path = tmp_path_factory.mktemp("many") / "many.html"
    write_report(drawn_step(MANY), path)
    return path


def canvas(page: Page) -> Locator:
    """Where the events are drawn."""
    return page.locator("canvas[aria-roledescription=timeline]")


def place(page: Page, across: float) -> tuple[float, float]:
    """A place for the pointer in the first row of the canvas, which is brought into the window."""
    canvas(page).scroll_into_view_if_needed()
    box = canvas(page).bounding_box()
    assert box is not None
    return box["x"] + across * box["width"], box["y"] + 10


def drag(page: Page, across: float, to: float) -> None:
    """Pulls the pointer over the canvas, from one share of its width to another."""
    page.mouse.move(*place(page, across))
    page.mouse.down()
    page.mouse.move(*place(page, to), steps=4)
    page.mouse.up()


def expect_says(page: Page, text: str | re.Pattern[str]) -> None:
    """Waits until the page says that of what is drawn: "0 ns to 54.502 us. 40 events in view."."""
    page.locator(".said", has_text=text).wait_for()


def whole(reports: Reports) -> str:
    """What is said when all of the step is in view."""
    return f"0 ns to {format_ns(reports.timeline.makespan_ns)}."


def selected(page: Page, node: str) -> None:
    """Waits until the details are those of the node."""
    details = page.get_by_role("region", name="Selected event")
    details.get_by_role("heading", name=node, exact=True).wait_for()


@pytest.mark.parametrize("way", ["button", "key", "wheel"])
def test_zoom(visits: Visits, reports: Reports, way: str) -> None:
    """In by a button, a key, or the wheel; the picture changes, and the whole step is one button away."""
    page = visits.open(reports.step)
    expect_says(page, whole(reports))
    before = canvas(page).screenshot()
    if way == "button":
        page.get_by_role("button", name="Zoom in").click()
    elif way == "key":
        canvas(page).press("+")
    else:
        canvas(page).hover()
        page.mouse.wheel(0, -300)
    expect_says(page, re.compile(rf"^(?!{re.escape(whole(reports))})"))
    assert canvas(page).screenshot() != before
    page.get_by_role("button", name="Whole step").click()
    expect_says(page, whole(reports))


def test_pan(visits: Visits, reports: Reports) -> None:
    """By an arrow key, by dragging, and by the wheel with shift; never beyond the step."""
    page = visits.open(reports.step, "#t=20000-30000")
    expect_says(page, "20.000 us to 30.000 us.")
    canvas(page).press("ArrowRight")
    expect_says(page, "22.000 us to 32.000 us.")
    drag(page, 0.5, 0.6)
    expect_says(page, re.compile(r"^(1\d|2[01])\."))
    page.keyboard.down("Shift")
    page.mouse.wheel(0, -100_000)
    page.keyboard.up("Shift")
    expect_says(page, re.compile(r"^0 ns to "))


def test_search(visits: Visits, reports: Reports) -> None:
    """It counts the events whose node or op has the text, and steps through them; regular expressions as well."""
    events = reports.timeline.events
    page = visits.open(reports.step)
    field = page.get_by_role("searchbox", name="Search nodes and ops")
    for text, matches in (("LAYER2", "layer2"), ("/^layer[12]\\/product$/", None)):
        field.fill(text)
        pattern = re.compile(matches or "^layer[12]/product$")
        count = sum(bool(pattern.search(event.node) or pattern.search(event.op)) for event in events)
        page.get_by_role("search").get_by_text(f"{count} events", exact=True).wait_for()
    field.press("Enter")
    selected(page, "layer1/product")
    field.press("Enter")
    page.get_by_role("search").get_by_text(f"2 of {count}", exact=True).wait_for()
    field.fill("/(/")
    page.get_by_role("search").get_by_text("no valid regular expression").wait_for()
    field.fill("there is no such node")
    page.get_by_role("search").get_by_text("0 events", exact=True).wait_for()
    assert page.get_by_role("button", name="Next event found").is_disabled()


def test_an_event_is_selected_by_a_click(visits: Visits, reports: Reports) -> None:
    """What it is, and what it waited for, whose name selects that in turn."""
    event = reports.timeline.find("layer2/product")
    page = visits.open(reports.step, f"#t={event.start_ns}-{event.end_ns}")
    x, _ = place(page, 0.6)
    row = panel(page, "Timeline").locator(".stream", has_text="compute 35.8 %").bounding_box()
    assert row is not None
    page.mouse.click(x, row["y"] + row["height"] / 2)
    selected(page, "layer2/product")
    details = page.get_by_role("region", name="Selected event")
    assert format_ns(event.duration_ns) in details.inner_text()
    assert event.cause >= 0
    cause = reports.timeline.events[event.cause]
    details.get_by_role("button", name=f"{cause.kind} {cause.node}").click()
    selected(page, cause.node)


def test_the_keyboard_walks_through_a_lane(visits: Visits, reports: Reports) -> None:
    """n and p go to the next event and back, Enter shows it in full, Escape lets it go; / searches, ? helps."""
    timeline = reports.timeline
    assert timeline.cluster is not None
    first = timeline.cluster.devices[0].name
    lane = [event for event in timeline.events if (event.device, event.stream) == (first, "compute")]
    lane.sort(key=lambda event: event.start_ns)
    page = visits.open(reports.step)
    canvas(page).press("n")
    selected(page, lane[0].node)
    canvas(page).press("n")
    selected(page, lane[1].node)
    canvas(page).press("p")
    selected(page, lane[0].node)
    canvas(page).press("Enter")
    expect_says(page, re.compile(rf"^(?!{re.escape(whole(reports))})"))
    canvas(page).press("Escape")
    page.get_by_text("Select an event to see").wait_for()
    canvas(page).press("?")
    page.get_by_text("A wheel zooms at the pointer").wait_for()
    canvas(page).press("/")
    page.locator("input[type=search]:focus").wait_for()


def test_a_link_leads_to_the_place(visits: Visits, reports: Reports) -> None:
    """The address says what is in view and selected, and a page that is opened with it looks the same."""
    page = visits.open(reports.step, "#t=20000-30000&node=layer2/product")
    selected(page, "layer2/product")
    expect_says(page, "20.000 us to 30.000 us.")
    canvas(page).press("ArrowRight")
    page.wait_for_url(re.compile(r"#t=22000-32000&node=layer2%2Fproduct$"))
    address = page.url
    page.reload()
    selected(page, "layer2/product")
    expect_says(page, "22.000 us to 32.000 us.")
    assert page.url == address


def test_devices_fold(visits: Visits, reports: Reports) -> None:
    """A folded device is one row; its streams are gone."""
    page = visits.open(reports.step)
    streams = panel(page, "Timeline").locator(".stream")
    assert streams.count() == sum(len(reports.timeline.streams(device)) for device in reports.timeline.devices)
    page.get_by_role("button", name="Close all").click()
    streams.first.wait_for(state="detached")
    page.get_by_role("button", name=re.compile("gpu:0 A100")).click()
    streams.first.wait_for()
    assert streams.count() < 5


def test_at_most_500_arrows_are_drawn(visits: Visits, many: Path) -> None:
    """The page says how many there would be; in a short time there are fewer, and all of them are drawn."""
    page = visits.open(many)
    arrows = page.get_by_role("button", name="Arrows", exact=True)
    assert arrows.get_attribute("aria-pressed") == "false"
    before = canvas(page).screenshot()
    arrows.click()
    expect_says(page, re.compile(r"500 of [\d,]+ arrows are drawn"))
    assert canvas(page).screenshot() != before
    for _ in range(12):
        page.get_by_role("button", name="Zoom in").click()
    expect_says(page, re.compile(r"^(?!.*arrows)"))


def test_levels_of_detail_are_said(visits: Visits, many: Path) -> None:
    """From afar events are drawn as blocks, and the page says how many of how many; near by each is drawn."""
    page = visits.open(many)
    page.get_by_role("button", name="Open all").click()
    expect_says(page, re.compile(r"[\d,]+ of [\d,]+ events in view are drawn as [\d,]+ blocks; zoom in to see each"))
    for _ in range(15):
        page.get_by_role("button", name="Zoom in").click()
    expect_says(page, re.compile(r"\. \d+ events in view\.$"))


def test_the_theme_is_that_of_the_system_until_it_is_chosen(visits: Visits, reports: Reports) -> None:
    """The button names the theme that it leads to; the timeline is drawn in it."""
    page = visits.open(reports.step, scheme="dark")
    dark = canvas(page).screenshot()
    page.get_by_role("button", name="Light theme").click()
    page.locator("html[data-theme=light]").wait_for()
    page.get_by_role("button", name="Dark theme").wait_for()
    assert canvas(page).screenshot() != dark


def test_two_steps_share_one_axis(visits: Visits, reports: Reports) -> None:
    """The longer of two compared steps gives the length; both have their devices."""
    page = visits.open(reports.compared)
    longest = max(reports.timeline.makespan_ns, reports.other_timeline.makespan_ns)
    expect_says(page, f"0 ns to {format_ns(longest)}.")
    assert panel(page, "Timeline").locator(".run").count() == 2
