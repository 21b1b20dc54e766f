/** Time, operations and bytes by op, by node, or by name scope, whose rows open. */

import { choice, element, replace } from "./dom.js";
import { dataTable } from "./tables.js";

/** What rows may stand for: its name, the head of its first column, and the rows of a run. */
const WAYS = [
  ["ops", "Op", (run) => sums(run, "op")],
  ["nodes", "Node", (run) => sums(run, "node")],
  ["name scopes", "Name scope or node", (run) => scopes(sums(run, "node"), 0)],
];

/** @param {import("./main.js").Page} page */
export function ops({ runs, state }) {
  const place = element("div");
  let [run, way] = [runs[0], 0];
  const show = () => {
    const [name, head, rowsOf] = WAYS[way];
    const rows = rowsOf(run);
    const all = rows.reduce((sum, { time }) => sum + time, 0);
    const columns = [
      [head, "name", ({ title }) => title],
      ...(way === 1 ? [["Op", "name", ({ event }) => run.text("op", event)],
        ["Device", "name", ({ event }) => run.shortDevice(event)]] : []),
      ["Runs", "count", (row) => row.runs],
      ["Time", "ns", ({ time }) => time],
      ["Share", "share", ({ time }) => (all ? time / all : 0)],
      ["Operations", "operations", ({ flops }) => flops || null],
      ["Bytes moved", "bytes", (row) => row.bytes || null],
    ];
    replace(place, dataTable({
      label: `Table of ${name}`, columns, rows, sort: way === 1 ? 4 : 2, search: true, part: 20,
      onRow: way && (({ event }) => state.show(run, event)),
      children: ({ below, title }) => (below ? scopes(below, title.length) : []),
    }));
  };
  show();
  return element("div", {}, element("div", { class: "controls" },
    choice("Rows are", WAYS.map(([name]) => name), (number) => { way = number; show(); }),
    runs.length > 1 && choice("of", runs.map(({ name }) => name), (number) => { run = runs[number]; show(); })),
  place);
}

/** Sums of the events that occupy their stream, by a column of texts. */
function sums(run, column) {
  const found = new Array(run.record.texts[column].length);
  for (let event = 0; event < run.count; event++) {
    if (!run.occupies(event)) continue;
    const number = run[column][event];
    const row = (found[number] ??= { title: run.text(column, event), event, runs: 0, time: 0, flops: 0, bytes: 0 });
    const [runs, { duration, flops, bytes }] = [run.runs[event], run];
    add(row, { runs, time: duration[event] * runs, flops: flops[event] * runs, bytes: bytes[event] * runs });
  }
  return found.filter(Boolean);
}

function add(sums, more) {
  for (const key of ["runs", "time", "flops", "bytes"]) sums[key] += more[key];
}

/** Nodes by the next part of their names, "a/b/c" after "a/" is in "a/b/"; a scope of one node is that node. */
function scopes(nodes, begin) {
  const rows = new Map();
  for (const node of nodes) {
    const slash = node.title.indexOf("/", begin);
    const title = slash < 0 ? node.title : node.title.slice(0, slash + 1);
    const row = rows.get(title) ?? { title, event: node.event, below: [], runs: 0, time: 0, flops: 0, bytes: 0 };
    add(row, node);
    row.below.push(node);
    rows.set(title, row);
  }
  return [...rows.values()].map((row) => (row.below.length === 1 ? row.below[0] : row));
}
