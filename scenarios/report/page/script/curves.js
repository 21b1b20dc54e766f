/** What is used over time, of one memory or one link at a time: a step curve by category, its limit and its peak. */

import { chart } from "./charts.js";
import { choice, element, replace } from "./dom.js";
import { bytes, rate } from "./format.js";
import { firstAbove } from "./run.js";

const FORMATS = { bytes, rate };

/**
 * A choice among `items`, and what belongs to the chosen one.
 * @param {import("./main.js").Page} page @param {string} label @param {any[]} items
 * @param {(block: any) => import("./dom.js").Child} built
 */
export function curves(page, label, items, built) {
  const place = element("div");
  const show = (number) => {
    const { before, after } = items[number];
    replace(place, built(before), curve(page, items[number]), built(after));
  };
  show(0);
  return element("div", {}, element("div", { class: "controls" },
    choice(label, items.map(({ title }) => title), show)), place);
}

function curve(page, { run: number, label, categories, at, limit, peak, peak_ns: peakNs, format }) {
  const run = page.runs[number];
  const [instants, parts] = [run.array(at), categories.map(({ array }) => run.array(array))];
  const nearLimit = limit && 3 * peak > limit;

  /** What is in use at the instants in view, each category on top of those before it. */
  function inView(from, to) {
    const first = Math.max(0, firstAbove(instants, from) - 1);
    const last = Math.max(first + 1, firstAbove(instants, to));
    const xs = [...instants.subarray(first, last), to].map((x) => Math.min(Math.max(x, from), to));
    let below = new Array(xs.length).fill(0);
    const lines = parts.map((part, place) => {
      const own = [...part.subarray(first, last), part[last - 1]]; // the last goes on to the end of the view
      below = below.map((sum, i) => sum + own[i]);
      return { label: categories[place].name, look: categories[place].look, values: below, own };
    });
    lines.reverse(); // the whole first, so that what lies below is drawn over it
    if (nearLimit) lines.push({ label: "limit", line: 1, stroke: "--error", values: xs.map(() => limit) });
    return { xs, lines };
  }
  const say = FORMATS[format];
  const marks = peakNs === null ? [] : [{ x: peakNs, y: peak, text: `peak ${say(peak)}` }];
  if (nearLimit) marks.push({ x: null, y: limit, text: `limit ${say(limit)}` });
  return chart(page, { label, curves: inView, marks, format: say, powers: format === "bytes", steps: true });
}
