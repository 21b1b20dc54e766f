/**
 * Tables and what stands in their cells. A table is sorted by any column, searched, opened row by row, and puts a
 * hundred rows at a time into the page, however many there are.
 */

import { filled, swatch } from "./colours.js";
import { button, element, replace } from "./dom.js";
import { bytes, count, figure, ns, percent, rate } from "./format.js";

const PART = 100;
const LONGEST = 72; // letters of a name in a cell
const SHORT = 20; // those of one that stays on its line

const FIGURES = {
  ns, bytes, count, rate, figure,
  change: (time) => `${time > 0 ? "+" : ""}${ns(time)}`,
  share: shareBar,
  operations: (flops) => rate(flops, "FLOP"),
};

/** How a column shows its values, by the name of its format. */
export const FORMATS = {
  ...FIGURES,
  text: (text) => element("span", { class: "sentence" }, text),
  name: shortName,
  category: ({ value, look }) => [look === undefined ? null : swatch(look), value],
  stack: stackedBar,
  link: (text) => element("a", { href: "#timeline" }, text),
};

/** A name that breaks after its parts; a long one is shortened in its middle, and whole as its title. */
function shortName(value) {
  const text = figure(value);
  const half = LONGEST / 2 - 1;
  const shown = text.length > LONGEST ? `${text.slice(0, half)}…${text.slice(-half)}` : text;
  const parts = shown.split(/(?<=[/])/).flatMap((part) => [part, element("wbr")]);
  const title = shown === text ? null : text.slice(0, 2000);
  return element("bdi", { class: text.length < SHORT ? "name short" : "name", title }, parts);
}

/** A share as a bar and a number. @param {number} share 0 to 1 */
function shareBar(share) {
  const bar = element("span", { class: "filled" });
  bar.style.width = `${Math.min(100, 100 * share)}%`;
  return element("span", { class: "share" },
    element("span", { class: "bar", "aria-hidden": true }, bar), element("span", {}, percent(share)));
}

/** Parts side by side, each with its filling and as long as its share of the longest bar, and in words. */
function stackedBar({ parts, most, words, sum }) {
  const widths = parts.map((value, look) => {
    const part = filled(element("span"), look);
    part.style.width = `${(100 * value) / most}%`;
    return part;
  });
  return [element("span", { class: "stack", role: "img", "aria-label": words }, widths), element("small", {}, sum)];
}

/**
 * A table of `columns`, each [title, format, value]: value(row) is what its cells show and it is sorted by, without one
 * that of the same place in the row. Options: `sort` the column to begin with (none: the order given), `search` whether
 * its texts are searched, `onRow(row)` makes the first cell a button, `children(row)` the rows below one, `part` how
 * many rows are shown at first.
 */
export function dataTable({ label, columns, rows, sort = null, search, onRow, children, part = PART }) {
  const values = columns.map(([, , value], at) => value ?? ((row) => row[at]));
  const numeric = columns.map(([, format]) => (FIGURES[format] ? "number" : null));
  let descending = sort !== null && Boolean(numeric[sort]);
  let [shown, found, ordered] = [part, rows, rows];
  const open = new Set();
  const body = element("tbody");
  const status = element("span", { class: "muted", role: "status" });
  const more = button("Show more rows", () => draw((shown += 3 * PART)), { "aria-label": `Show more rows: ${label}` });
  const heads = columns.map(([title], at) => element("th", { scope: "col", class: numeric[at] }, button(title, () => {
    [descending, sort] = [sort === at ? !descending : Boolean(numeric[at]), at];
    arrange();
  })));

  function inOrder(some) {
    if (sort === null) return some;
    const keys = new Map(some.map((row) => [row, values[sort](row)]));
    const key = (row) => keys.get(row)?.value ?? keys.get(row) ?? null;
    return [...some].sort((one, other) => {
      const [a, b] = [key(one), key(other)];
      if (a === b || a === null || b === null) return (a === null) - (b === null); // what has none is last
      return a < b === descending ? 1 : -1;
    });
  }

  function* opened(some, depth) {
    for (const row of some) {
      yield [row, depth];
      if (open.has(row)) yield* opened(inOrder(children(row)), depth + 1);
    }
  }

  function toggle(row) {
    const isOpen = open.has(row);
    const turn = () => draw(isOpen ? open.delete(row) : open.add(row), row);
    const about = { class: "toggle", "aria-expanded": isOpen, "aria-label": values[0](row) };
    return button(isOpen ? "▾" : "▸", turn, about);
  }

  function line([row, depth]) {
    const cells = columns.map(([, format], at) => {
      const value = values[at](row);
      const content = value == null ? "–" : FORMATS[format](value);
      if (at) return element("td", { class: numeric[at] }, content);
      return element("th", { scope: "row", class: numeric[at] }, children?.(row).length ? toggle(row) : null,
        onRow ? button(content, () => onRow(row), { class: "link" }) : content);
    });
    if (depth) cells[0].style.paddingLeft = `${0.6 + 1.4 * depth}rem`;
    return element("tr", {}, cells);
  }

  function draw(_, focused = null) {
    const [all, lines] = [opened(ordered, 0), new Map()];
    let next = all.next();
    for (; !next.done && lines.size < shown; next = all.next()) lines.set(next.value[0], line(next.value));
    replace(body, [...lines.values()]);
    lines.get(focused)?.querySelector(".toggle").focus();
    more.hidden = Boolean(next.done);
    const [isFiltered, whole] = [found.length < rows.length, `${count(rows.length)} rows`];
    const some = isFiltered ? `${count(found.length)} of ${whole} match` : whole;
    const cut = next.done ? "" : `, the first ${count(lines.size)} are shown`;
    status.textContent = isFiltered || cut ? some + cut : "";
  }

  function arrange() {
    const direction = descending ? "descending" : "ascending";
    heads.forEach((head, at) => head.setAttribute("aria-sort", at === sort ? direction : "none"));
    ordered = inOrder(found);
    draw();
  }

  function filter() {
    const wanted = box.value.trim().toLowerCase();
    const matches = (text) => typeof text === "string" && text.toLowerCase().includes(wanted);
    found = wanted ? rows.filter((row) => values.some((value) => matches(value(row)))) : rows;
    shown = part;
    arrange();
  }
  const about = { type: "search", placeholder: "Search", "aria-label": `Search: ${label}` };
  const box = element("input", { ...about, oninput: filter });
  arrange();
  return element("div", { class: "data" },
    element("div", { class: "controls" }, search && rows.length > 5 ? box : null, status),
    element("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": label },
      element("table", {}, element("thead", {}, element("tr", {}, heads)), body)),
    element("div", { class: "controls" }, more));
}
