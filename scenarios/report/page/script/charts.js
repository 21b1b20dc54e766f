/**
 * Curves by uPlot. Areas have the fillings of looks, lines a colour and dashes each, so that colour is never the only
 * mark. A chart over time follows the view of the page, and a span dragged in it becomes the view.
 */

import uPlot from "uplot";
import { colour, paintOf } from "./colours.js";
import { element } from "./dom.js";
import { ns } from "./format.js";

const DASHES = [[], [8, 5], [2, 4]];
const BORDERS = ["solid", "dashed", "dotted"];
const POWERS = Array.from({ length: 60 }, (_, power) => 2 ** power);
const REST_MS = 80; // curves follow when a zoom comes to rest, so that the timeline moves smoothly

/** The mark of a line in a legend: its colour and its dashes. */
export function lineMark(number) {
  const made = element("span", { class: "line-mark", "aria-hidden": true });
  Object.assign(made.style, { borderTopColor: `var(--c${(number % 8) + 1})`, borderTopStyle: BORDERS[number % 3] });
  return made;
}

/** A curve as uPlot wants it: an area with the filling of a look, or a line. */
function series({ label, look, line, stroke }, steps, points) {
  const paths = steps ? uPlot.paths.stepped({ align: 1 }) : undefined;
  const made = { label, paths, points: { show: points } };
  const fill = ({ ctx }) => ctx.createPattern(paintOf(look).tile, "repeat");
  if (look !== undefined) return { ...made, width: 0, fill };
  const dash = DASHES[line % 3].map((length) => length * devicePixelRatio);
  return { ...made, width: 2, stroke: colour(stroke ?? `--c${(line % 8) + 1}`), dash };
}

/** An axis with short figures: "1 us" for "1.000 us". */
function axis(format, more) {
  const [hair, font] = [{ stroke: colour("--line"), width: 1 }, `12px ${colour("--font")}`];
  const short = (text) => text.replace(/(\.\d*?)0+(?= |$)/, "$1").replace(/\.(?= |$)/, "");
  const values = (_, all) => all.map((value) => short(format(value)));
  return { stroke: colour("--muted"), font, grid: hair, ticks: hair, values, ...more };
}

/** Writes at a point, which gets a dot; without x at the left end of a line of that height. */
function drawMark({ ctx, bbox, valToPos }, { x: at, y: height, text }) {
  const [x, y] = [at === null ? bbox.left : valToPos(at, "x", true), valToPos(height, "y", true)];
  const [pixel, isRight] = [devicePixelRatio, x > bbox.left + bbox.width / 2];
  const font = `600 ${12 * pixel}px ${colour("--font")}`;
  Object.assign(ctx, { fillStyle: colour("--fg"), strokeStyle: colour("--panel"), lineWidth: 3 * pixel, font });
  Object.assign(ctx, { textAlign: isRight ? "right" : "left", textBaseline: "bottom" });
  for (const put of ["strokeText", "fillText"]) ctx[put](text, x + (isRight ? -7 : 7) * pixel, y - 5 * pixel);
  if (at === null) return;
  ctx.beginPath();
  ctx.arc(x, y, 4 * pixel, 0, 2 * Math.PI);
  ctx.stroke();
  ctx.fill();
}

/**
 * A chart. `label` says in words what it shows; `curves(from, to)` gives the `xs`, and of each curve its `values`,
 * `label`, and `look` or `line`; `own` are the values to read where those are sums. With `span` [from, to] x is what
 * `formatX` formats, without it time. @returns {HTMLElement}
 */
export function chart({ state }, { label, curves, format, formatX = ns, span, powers, steps, marks = [] }) {
  const place = element("div", { class: "chart", role: "img", "aria-label": label });
  const readout = element("p", { class: "readout muted", "aria-hidden": true });
  let [plot, waiting] = [null, 0];

  function draw() {
    const width = place.clientWidth;
    if (!width) return;
    const [from, to] = span ?? [state.view.from, state.view.to];
    const { xs, lines } = curves(from, to);
    const top = lines.reduce((high, { values }) => values.reduce((a, b) => Math.max(a, b), high), 0);
    const shown = marks.filter(({ x }) => x === null || (x >= from && x <= to));
    const read = (idx) => lines.map(({ label: what, own, values }) => [what, (own ?? values)[idx]])
      .filter(([, value]) => value).map(([what, value]) => `${what} ${format(value)}`).join(", ") || "nothing";
    plot?.destroy();
    plot = new uPlot({
      width,
      height: width < 500 ? 190 : 240,
      legend: { show: false },
      padding: [16, 12, 0, 0],
      scales: { x: { time: false, range: () => [from, to] }, y: { range: () => [0, 1.05 * top || 1] } },
      axes: [axis(formatX, { space: 90 }), axis(format, { size: 76, ...(powers ? { incrs: POWERS } : {}) })],
      series: [{}, ...lines.map((line) => series(line, steps, Boolean(span)))],
      cursor: { drag: { x: !span, y: false, setScale: false }, points: { show: false } },
      hooks: {
        draw: [(drawn) => shown.forEach((mark) => drawMark(drawn, mark))],
        setCursor: [({ cursor: { idx } }) =>
          (readout.textContent = idx == null ? "" : `${formatX(xs[idx])}: ${read(idx)}`)],
        setSelect: [({ select, posToVal }) =>
          select.width > 2 && state.setView(posToVal(select.left, "x"), posToVal(select.left + select.width, "x"))],
      },
    }, [xs, ...lines.map(({ values }) => values)], place);
  }

  new ResizeObserver(draw).observe(place);
  state.subscribe((change) => {
    if (change === "theme") draw();
    if (change !== "view" || span) return;
    clearTimeout(waiting);
    waiting = setTimeout(draw, REST_MS);
  });
  return element("figure", {}, place, readout);
}
