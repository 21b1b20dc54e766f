/** The picture of the timeline: a ruler and the tracks beside their names, drawn at most once a frame. */

import { colour, paints } from "./colours.js";
import { button, element, name, replace } from "./dom.js";
import { count, ns } from "./format.js";
import { Arrows, drawArrow, MOST_ARROWS } from "./timeline_arrows.js";
import { drawEvents } from "./timeline_events.js";
import { groupsOf, HEADER, layOut, trackOf } from "./timeline_rows.js";

const FAR = 1e5; // pixels beyond which a line that leaves the picture ends
const REACH = 4; // pixels around the pointer
const TICKS = 110; // pixels from tick to tick at least
const UNITS = [["s", 1e9], ["ms", 1e6], ["us", 1e3], ["ns", 1]];

/** What is drawn follows `state`, and `shows` and `found`; after changes of these, `draw()`. */
export class Picture {
  shows = { critical: true, arrows: true };
  found = null;
  #frame = 0;

  /** @param {import("./main.js").Page} page @param {(told: object) => void} ondrawn is told how much is in view */
  constructor({ runs, state }, attributes, ondrawn) {
    Object.assign(this, { runs, state, ondrawn, groups: runs.flatMap(groupsOf) });
    this.arrows = new Map(runs.map((run) => [run, new Arrows(run)]));
    this.canvas = element("canvas", { tabindex: 0, role: "application", ...attributes });
    this.gutter = element("div", { class: "gutter" });
    this.tall = element("div", { class: "tall" }, this.canvas, this.gutter);
    this.box = element("div", { class: "tracks", onscroll: () => this.draw() }, this.tall);
    state.subscribe((change) => {
      if (change === "theme") this.resize(); // and for paper, which has another width
      if (change === "selected") this.#reveal();
      this.draw();
    });
    new ResizeObserver(() => this.resize()).observe(this.box);
  }

  /** Shows the streams of all devices, or a lane for each device. @param {boolean} open */
  fold(open) {
    for (const group of this.groups) group.open = open;
    this.#arrange();
  }

  resize() {
    const [width, height] = [this.box.clientWidth, this.box.clientHeight];
    if (!width) return;
    const { canvas } = this;
    const [bg, fg, muted, row, accent] = ["bg", "fg", "muted", "row", "accent"].map((part) => colour(`--${part}`));
    this.colours = { paints: paints(), bg, fg, muted, row, accent, font: `11px ${colour("--mono")}` };
    this.left = parseFloat(getComputedStyle(this.gutter).width);
    [this.width, this.height] = [Math.max(1, width - this.left), height];
    [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
    [canvas.width, canvas.height] = [width * devicePixelRatio, height * devicePixelRatio];
    this.#reveal();
    this.#paint();
  }

  /** Draws with the next frame, once. */
  draw() {
    this.#frame ||= requestAnimationFrame(() => this.#paint());
  }

  /** The instant at a distance from the left edge. @param {number} x */
  timeAt(x) {
    return this.state.view.from + (x - this.left) / this.scale;
  }

  /** What is drawn at a point: a run and an event; null for nothing. @returns {[Run, number] | null} */
  eventAt(x, y) {
    const top = y + this.box.scrollTop;
    const track = this.layout.tracks.find((one) => one.top <= top && top < one.top + one.height + 2);
    const event = x < this.left || y < HEADER ? undefined : track?.eventAt(this.timeAt(x), REACH / this.scale);
    return event === undefined ? null : [track.run, event];
  }

  /** Places tracks and writes their names; the canvas stays in the window of what may be much taller. */
  #arrange() {
    const several = this.runs.length > 1;
    this.layout = layOut(this.groups, several);
    this.tall.style.height = `${this.layout.height}px`;
    const placed = (top, made) => {
      made.style.top = `${top}px`;
      return made;
    };
    replace(this.gutter, this.groups.map((group) => {
      const { label, about, run, top, open, isFirst } = group;
      const turn = () => {
        group.open = !open;
        this.#arrange();
        this.gutter.querySelectorAll(".device")[this.groups.indexOf(group)].focus();
      };
      const device = [name(label), element("span", { class: "muted" }, ` ${about}`)];
      return [
        several && isFirst &&
          placed(top - HEADER, element("span", { class: "run" }, name(run.name), `: ${ns(run.makespan)}`)),
        placed(top, button(device, turn, { class: "device", "aria-expanded": open })),
        open && group.lanes.map((lane) => placed(lane.top, element("span", { class: "stream", title: lane.label },
          name(lane.label), element("span", {}, ` ${lane.busy}`)))),
      ];
    }));
    this.draw();
  }

  #paint() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    if (!this.colours) return;
    const { colours, left, width, height, box: { scrollTop: above }, state: { view, selected } } = this;
    this.scale = width / (view.to - view.from);
    const context = this.canvas.getContext("2d");
    context.reset();
    context.scale(devicePixelRatio, devicePixelRatio);
    this.#ruler(context);
    context.beginPath();
    context.rect(left, HEADER, width, height);
    context.clip();
    context.translate(left, -above);
    const tracks = this.layout.tracks.filter(({ top, height: tall }) => top + tall >= above && top <= above + height);
    context.fillStyle = colours.row;
    for (const track of tracks) context.fillRect(0, track.top, width, track.height);
    const { found, scale, shows: { critical } } = this;
    const told = drawEvents(context, tracks, { ...colours, ...view, scale, found, critical });
    const arrows = this.#arrows(context);
    if (selected) this.#frameOf(context, selected);
    this.ondrawn({ ...told, arrows });
  }

  /** Instants at 1, 2 or 5 times a power of ten. */
  #ruler(context) {
    const { colours: { font, fg }, left, width, state: { view: { from, to } } } = this;
    const least = Math.max(1, ((to - from) * TICKS) / width);
    const power = 10 ** Math.floor(Math.log10(least));
    const gap = [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least);
    const [unit, one] = UNITS.find(([, size]) => size <= (to - from) / 2) ?? ["ns", 1];
    [context.font, context.fillStyle, context.textBaseline] = [font, fg, "middle"];
    for (let time = Math.ceil(from / gap) * gap; time <= to; time += gap) {
      const x = left + (time - from) * this.scale;
      context.fillRect(x, 0, 1, 5);
      context.fillText(`${count(time / one)} ${unit}`, x + 4, HEADER / 2);
    }
  }

  /** Where an event is drawn: x of its two ends and the middle of its track. */
  #place(run, event) {
    const track = trackOf(this.layout, run, event);
    const x = (time) => Math.min(FAR, Math.max(-FAR, (time - this.state.view.from) * this.scale));
    return track && { track, start: x(run.start[event]), end: x(run.end[event]), y: track.top + track.height / 2 };
  }

  /** Draws those of the selected event and, if wanted, those in view; returns how many are in view. */
  #arrows(context) {
    const { state: { view, selected }, colours } = this;
    let [left, inView] = [MOST_ARROWS, 0];
    const draw = (run, pairs, stroke) => {
      [context.strokeStyle, context.fillStyle, context.lineWidth] = [stroke, stroke, 1.5];
      for (const [tail, head] of pairs.slice(0, Math.max(0, left))) {
        const [one, other] = [this.#place(run, tail), this.#place(run, head)];
        if (!one || !other || one.track === other.track || left-- <= 0) continue;
        const x = run.end[tail] <= run.start[head] ? one.end : one.start; // members begin together
        drawArrow(context, [x, one.y], [other.start, other.y]);
      }
    };
    if (selected) draw(selected.run, this.arrows.get(selected.run).of(selected.event), colours.accent);
    for (const run of this.shows.arrows ? this.runs : []) {
      const pairs = this.arrows.get(run).between(view.from, view.to);
      inView += pairs.length;
      draw(run, pairs, colours.muted);
    }
    return inView;
  }

  #frameOf(context, { run, event }) {
    const place = this.#place(run, event);
    for (const [stroke, line] of place ? [[this.colours.bg, 5], [this.colours.accent, 3]] : []) {
      const { start, end, track } = place;
      [context.strokeStyle, context.lineWidth] = [stroke, line];
      context.strokeRect(start - 2, track.top - 2, Math.max(1, end - start) + 4, track.height + 4);
    }
  }

  /** Scrolls to the track of the selected event. */
  #reveal() {
    const { state: { selected }, box, height } = this;
    const track = selected && trackOf(this.layout, selected.run, selected.event);
    const isHidden = track && (track.top < box.scrollTop + HEADER || track.top + track.height > box.scrollTop + height);
    if (isHidden) box.scrollTop = track.top - height / 2;
  }
}
