/** The timeline: its controls, its picture, and what is selected; what keys, wheel and pointers do to them. */

import { legendOf } from "./colours.js";
import { detailOf } from "./detail.js";
import { button, element } from "./dom.js";
import { count, ns, visible } from "./format.js";
import { searchField } from "./search.js";
import { MOST_ARROWS } from "./timeline_arrows.js";
import { Picture } from "./timeline_picture.js";

const [OPEN_UP_TO, ARROWS_UP_TO] = [24, 2000]; // streams, and events, of a page that begins with all of them shown
const [PAN, ZOOM, SCROLL] = [0.2, 1.5, 60]; // by a key: a share of the view, a factor, pixels
const DRAG_FROM = 4; // pixels from which a click is a drag
const ZOOM_PER_PIXEL = 0.002;
const KEYS =
  "Arrow keys pan and scroll, + and − zoom, 0 shows the whole step, n and p go to the next and the previous event " +
  "of the lane, Enter shows the selected event in full, Escape clears, / searches, ? opens this help. A wheel zooms " +
  "at the pointer, with shift it pans; dragging pans.";

/** @param {import("./main.js").Page} page */
export function timeline(page) {
  const { runs, state } = page;
  const events = runs.reduce((sum, run) => sum + run.count, 0);
  const said = element("p", { class: "muted said" });
  const attributes = {
    "aria-roledescription": "timeline",
    "aria-describedby": "timeline-keys",
    "aria-label": `Timeline of ${count(events)} events, ${ns(state.end)}`,
  };
  const picture = new Picture(page, attributes, (told) => (said.textContent = summary(state.view, told)));
  picture.shows.arrows = events <= ARROWS_UP_TO;
  picture.fold(picture.groups.reduce((sum, group) => sum + group.lanes.length, 0) <= OPEN_UP_TO);
  const keys = element("p", { id: "timeline-keys" }, KEYS);
  const help = element("details", {}, element("summary", {}, "Keys and pointer"), keys);
  const search = searchField(page, (found) => {
    picture.found = found;
    picture.draw();
  });
  const moves = movesOf(page, picture);
  const shown = (label, key) => button(label, ({ currentTarget }) => {
    picture.shows[key] = !picture.shows[key];
    currentTarget.setAttribute("aria-pressed", String(picture.shows[key]));
    picture.draw();
  }, { "aria-pressed": picture.shows[key] });
  const controls = element("div", { class: "controls" },
    button("+", () => moves.zoom(1 / ZOOM), { "aria-label": "Zoom in" }),
    button("−", () => moves.zoom(ZOOM), { "aria-label": "Zoom out" }),
    button("Whole step", moves.whole),
    runs.some((run) => run.criticalPath.length) && shown("Critical path", "critical"), shown("Arrows", "arrows"),
    button("Open all", () => picture.fold(true)), button("Close all", () => picture.fold(false)), search.controls);
  const panel = element("div", {}, controls, legendOf(runs), picture.box, said, detailOf(page), help);
  followPointer(picture, state, moves);
  followKeys(panel, {
    ArrowLeft: () => moves.panBy(-PAN), ArrowRight: () => moves.panBy(PAN), 0: moves.whole,
    ArrowUp: () => picture.box.scrollBy(0, -SCROLL), ArrowDown: () => picture.box.scrollBy(0, SCROLL),
    "+": () => moves.zoom(1 / ZOOM), "=": () => moves.zoom(1 / ZOOM), "-": () => moves.zoom(ZOOM),
    n: () => moves.next(1), p: () => moves.next(-1), Enter: moves.showSelected,
    Escape: () => (picture.found ? search.clear() : state.select()),
    "/": () => search.input.focus(), "?": () => (help.open = !help.open),
  });
  return panel;
}

/** What is in view, in words; also where levels of detail are in force. */
function summary(view, { events, blocks, joined, arrows }) {
  const inBlocks = `${count(joined)} of ${count(events)} events in view are drawn as ${count(blocks)} blocks; ` +
    "zoom in to see each, or go from one to the next with n and p.";
  return [
    `${ns(view.from)} to ${ns(view.to)}.`,
    blocks ? inBlocks : `${count(events)} events in view.`,
    arrows > MOST_ARROWS && `${count(MOST_ARROWS)} of ${count(arrows)} arrows are drawn.`,
  ].filter(Boolean).join(" ");
}

/** What keys and pointers ask of the view. */
function movesOf({ runs, state }) {
  const moves = {
    whole: () => state.setView(0, state.end),
    /** @returns {boolean} whether it changed the view */
    zoom(factor, middle = (state.view.from + state.view.to) / 2) {
      const { from, to } = state.view;
      if (factor > 1 && to - from >= state.end) return false;
      state.setView(middle - (middle - from) * factor, middle + (to - middle) * factor);
      return true;
    },
    pan(time) {
      const { from, to } = state.view;
      const by = Math.min(state.end - to, Math.max(-from, time));
      if (by) state.setView(from + by, to + by);
      return by !== 0;
    },
    panBy: (share) => moves.pan(share * (state.view.to - state.view.from)),
    /** To the next or previous event of the lane of the selected one; at first to the first in view. */
    next(by) {
      const { run, event } = state.selected ?? { run: runs[0] };
      const lane = state.selected ? { device: run.device[event], stream: run.stream[event] } : run.record.lanes[0];
      const inLane = (other) => run.device[other] === lane.device && run.stream[other] === lane.stream;
      const inView = (other) => run.end[other] >= state.view.from;
      let at = state.selected ? run.order.indexOf(event) + by : run.order.findIndex(inView);
      while (at in run.order && !inLane(run.order[at])) at += by;
      if (at in run.order) state.show(run, run.order[at]);
    },
    showSelected() {
      if (!state.selected) return moves.next(1);
      const { run, event } = state.selected;
      const around = Math.max(10, run.duration[event]);
      state.setView(run.start[event] - around, run.end[event] + around);
    },
  };
  return moves;
}

/** A wheel that has nothing more to zoom or pan scrolls the page. A click selects, a drag pans. */
function followPointer(picture, state, moves) {
  const { canvas, box } = picture;
  let [down, drags] = [null, false]; // where the pointer was last, while it is down; and whether it went far
  const place = ({ clientX, clientY }) => {
    const { left, top } = canvas.getBoundingClientRect();
    return { x: clientX - left, y: clientY - top };
  };
  const act = {
    wheel(event) {
      const sideways = event.shiftKey && !event.deltaX ? event.deltaY : event.deltaX;
      const changed = event.shiftKey || Math.abs(sideways) > Math.abs(event.deltaY)
        ? moves.pan(sideways / picture.scale)
        : moves.zoom(Math.exp(event.deltaY * ZOOM_PER_PIXEL), picture.timeAt(place(event).x));
      if (changed) event.preventDefault();
    },
    pointerdown(event) {
      if (event.button) return;
      [down, drags] = [place(event), false];
      canvas.setPointerCapture(event.pointerId);
    },
    pointermove(event) {
      const { x, y } = place(event);
      if (!down) return void (canvas.title = described(picture.eventAt(x, y)));
      drags ||= Math.hypot(x - down.x, y - down.y) >= DRAG_FROM;
      if (!drags) return;
      moves.pan((down.x - x) / picture.scale);
      box.scrollTop += down.y - y;
      down = { x, y };
    },
    pointerup() {
      const hit = down && !drags && picture.eventAt(down.x, down.y);
      if (hit) state.select(...hit);
      down = null;
    },
    pointercancel: () => (down = null),
  };
  for (const [type, listen] of Object.entries(act)) canvas.addEventListener(type, listen, { passive: false });
}

function described(hit) {
  if (!hit) return "";
  const [run, event] = hit;
  return `${visible(run.text("node", event).slice(0, 120))}: ${run.text("op", event)}, ${ns(run.duration[event])}`;
}

/** Calls what a key stands for, unless somebody is writing. @param {HTMLElement} panel */
function followKeys(panel, keys) {
  panel.addEventListener("keydown", (event) => {
    const writes = event.target instanceof HTMLInputElement && event.key !== "Escape";
    const presses = event.target instanceof HTMLButtonElement && event.key === "Enter";
    if (writes || presses || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
}
