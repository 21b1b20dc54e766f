/** The chart of a table: a chosen value over a chosen axis, with a line for each value of another axis. */

import { chart, lineMark } from "./charts.js";
import { choice, element, name, replace } from "./dom.js";
import { count, figure } from "./format.js";

const LINES = 12;

/** @param {import("./main.js").Page} page */
export function sweepChart(page) {
  const { axes, values, columns } = page.document.table;
  const chosen = { y: values[0], x: axes[0], by: axes[1] };
  const place = element("div");
  const draw = () => replace(place, curvesOf(page, chosen));
  const pick = (label, key, keys) => {
    const texts = keys.map((one) => titleOf(columns.find((column) => column.key === one)) || "nothing");
    return choice(label, texts, (at) => { chosen[key] = keys[at]; draw(); }, keys.indexOf(chosen[key]));
  };
  draw();
  const picks = [pick("Chart of", "y", values), pick("over", "x", axes)];
  picks.push(pick("with a line for each", "by", [undefined, ...axes]));
  return element("div", {}, element("div", { class: "controls" }, picks), place);
}

const titleOf = (column) => column && (column.unit ? `${column.title} (${column.unit})` : column.title);

const mean = (rows, at) => (rows.length ? rows.reduce((sum, row) => sum + row[at], 0) / rows.length : null);

function curvesOf(page, { x, y, by }) {
  const { rows, columns } = page.document.table;
  const [atX, atY, atBy] = [x, y, by !== x && by].map((key) => columns.findIndex((column) => column.key === key));
  const texts = columns[atX].numeric ? null : [...new Set(rows.map((row) => row[atX]))];
  const position = (row) => (texts ? texts.indexOf(row[atX]) : row[atX]);
  const usable = rows.filter((row) => typeof row[atY] === "number" && position(row) !== null);
  const xs = [...new Set(usable.map(position))].sort((a, b) => a - b);
  const names = [...new Set(usable.map((row) => row[atBy] ?? ""))];
  const rowsAt = (text, value) => usable.filter((row) => (row[atBy] ?? "") === text && position(row) === value);
  const lines = names.slice(0, LINES).map((text, line) =>
    ({ label: figure(text), line, values: xs.map((value) => mean(rowsAt(text, value), atY)) }));
  const margin = (xs.at(-1) - xs[0]) * 0.03 || 1;
  return [
    chart(page, {
      label: `${titleOf(columns[atY])} over ${titleOf(columns[atX])}. The table below has the figures.`,
      curves: () => ({ xs, lines }),
      span: [xs[0] - margin, xs.at(-1) + margin],
      formatX: (value) => (texts ? texts[value] ?? "" : figure(value)),
      format: figure,
    }),
    atBy >= 0 && element("ul", { class: "legend" },
      lines.map(({ label, line }) => element("li", {}, lineMark(line), name(label)))),
    element("p", { class: "muted" },
      names.some((text) => xs.some((value) => rowsAt(text, value).length > 1)) &&
        "A point is the mean of the rows that have the same values on the axis and of the line. ",
      names.length > LINES && `${count(names.length - LINES)} more lines are left out.`),
  ];
}
