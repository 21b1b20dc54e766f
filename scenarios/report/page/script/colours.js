/** How kinds of work and categories look: colours that people who see few colours tell apart, and a mark on each. */

import { element } from "./dom.js";

/** Categories of charts have the first eight. @type {[label: string, keys: string[], fill: string, mark: string][]} */
const LOOKS = [
  ["matrix products", ["product"], "--c1", "0000"],
  ["memory-bound ops", ["memory-bound"], "--c2", "0001 0010 0100 1000"],
  ["copies", ["copy"], "--c3", "0100 0000 0001 0000"],
  ["attention", ["attention"], "--c4", "0110 0110 1001 1001"],
  ["convolutions", ["convolution"], "--c5", "0000 1111 0000 1111"],
  ["collectives", ["collective"], "--c6", "1111 1000 1000 1000"],
  ["factorisations", ["factorisation"], "--c7", "1010 1010 1010 1010"],
  ["launches, waits, sends, receives", ["send", "recv", "launch", "wait"], "--c8", "0000"],
  ["grouped products", ["grouped product"], "--c1", "0100 0000 0001 0000"],
  ["not found", [], "--line", "0000"],
];

/** The number of the look of what a search has not found. */
export const DIMMED = LOOKS.length - 1;

const DARK = "--c1"; // which has light text and marks

export const colour = (property) => getComputedStyle(document.documentElement).getPropertyValue(property).trim();

const lookOf = (key) => LOOKS.findIndex(([, keys]) => keys.includes(key));

/** The look of every event. @param {import("./run.js").Run} run @returns {Uint8Array} */
export function looksOf(run) {
  const ofKind = run.record.kinds.map(lookOf); // -1 for "compute", whose ops differ
  const ofOp = run.record.op_classes.map(lookOf);
  return (run.looks ??= run.kind.map((kind, event) => (ofKind[kind] < 0 ? ofOp[run.op[event]] : ofKind[kind])));
}

/** Colour, text and filling of every look, as the page's theme has them now. */
export const paints = () => LOOKS.map((_, look) => paintOf(look));

export function paintOf(look) {
  const [, , property, mark] = LOOKS[look];
  const [fill, text] = [colour(property), colour(property === DARK ? "--on-dark" : "--on-light")];
  return { fill, text, tile: tileOf(fill, text, mark.split(" ")), isPlain: !mark.includes("1") };
}

function tileOf(fill, ink, mark) {
  const tile = element("canvas", { width: 4, height: 4 });
  const context = tile.getContext("2d");
  context.fillStyle = fill;
  context.fillRect(0, 0, 4, 4);
  context.fillStyle = ink;
  mark.forEach((line, y) => [...line].forEach((dot, x) => dot === "1" && context.fillRect(x, y, 1, 1)));
  return tile;
}

/** An element with the filling of a look. */
export function filled(made, look) {
  made.style.backgroundImage = `url(${paintOf(look).tile.toDataURL()})`;
  return made;
}

/** What fillings mean. @param {[look: number, label: string][]} fillings */
export const legend = (fillings, more) => element("ul", { class: "legend" },
  fillings.map(([look, label]) => element("li", {}, swatch(look), label)), more);

/** The mark of a look in a legend or a table. */
export const swatch = (look) => filled(element("span", { class: "swatch", "aria-hidden": true }), look);

/** What the looks of some runs mean. @param {import("./run.js").Run[]} runs */
export function legendOf(runs) {
  const present = new Set(runs.flatMap((run) => [...new Set(looksOf(run))]));
  const outline = element("span", { class: "outlined", "aria-hidden": true });
  return legend(LOOKS.map(([label], look) => [look, label]).filter(([look]) => present.has(look)),
    runs.some((run) => run.criticalPath.length) && element("li", {}, outline, " critical path"));
}
