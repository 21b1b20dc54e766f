/**
 * Panels are described by Python as blocks: an element with its attributes and children, or what a script makes.
 *
 *     ["p", {"class": "lead"}, "The step takes 54.502 us."]      an element
 *     ["table", {"label": "Assumptions", ...}]                   what `MADE` has under that name
 */

import { legend } from "./colours.js";
import { curves } from "./curves.js";
import { element } from "./dom.js";
import { ops } from "./ops.js";
import { sweepChart } from "./sweep_chart.js";
import { dataTable, FORMATS } from "./tables.js";
import { timeline } from "./timeline.js";

/** @typedef {string | number | null | [tag: string, attributes: any, ...children: Block[]]} Block */

/** By tag, what a script makes of the attributes. @type {Record<string, (page: any, attributes: any) => any>} */
const MADE = {
  curves: (page, { choice, of }) => curves(page, choice, of, (block) => built(page, block)),
  legend: (_, { of }) => legend(of.map((label, look) => [look, label])),
  ops, timeline,
  figure: (_, { format, value }) => FORMATS[format](value),
  "sweep-chart": sweepChart,
  table({ runs, state }, { nodes, run, ...table }) {
    const show = (row) => (nodes ? state.showNode(row[0]) : state.show(runs[run], row.at(-1)));
    return dataTable({ ...table, onRow: (nodes || run !== null) && show });
  },
};

/** @param {import("./main.js").Page} page @param {Block} block */
export function built(page, block) {
  if (!Array.isArray(block)) return block;
  const [tag, attributes, ...children] = block;
  return MADE[tag]?.(page, attributes) ?? element(tag, attributes, children.map((child) => built(page, child)));
}
