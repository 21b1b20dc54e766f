/** Elements from values. Texts become text nodes and never markup; control characters in them become visible. */

import { visible } from "./format.js";

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * An element: `element("button", {onclick: f, "aria-pressed": true}, "text")`. A function is a listener, `false` and
 * null leave an attribute out, `true` gives it without a value, except for aria-…, which say so in a word.
 * @param {string} tag
 * @param {Record<string, unknown>} attributes
 * @param {...(Child | Child[])} children
 * @returns {HTMLElement}
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(key.slice(2), value);
    else if (value === true && !key.startsWith("aria-")) made.setAttribute(key, "");
    else if (value === false && !key.startsWith("aria-")) continue;
    else if (value != null) made.setAttribute(key, visible(String(value)));
  }
  replace(made, children);
  return made;
}

/** A button that says what it does. @param {string} label @param {(event: Event) => void} onclick */
export const button = (label, onclick, attributes = {}) =>
  element("button", { type: "button", onclick, ...attributes }, label);

/** A name out of a graph, kept apart from the direction of the text around it. @param {string} text */
export const name = (text) => element("bdi", { class: "name" }, text.length > 200 ? `${text.slice(0, 100)}…${text.slice(-100)}` : text);

/** A labelled choice among texts. @param {(number: number) => void} chosen is told the number of the text */
export function choice(label, texts, chosen, selected = 0) {
  const select = element("select", { "aria-label": label, onchange: () => chosen(select.selectedIndex) },
    texts.map((text, number) => element("option", { selected: number === selected }, text)));
  return element("label", { class: "choice" }, `${label} `, select);
}

/** Puts other children into an element. @param {Element} parent @param {...(Child | Child[])} children */
export const replace = (parent, ...children) => parent.replaceChildren(...children
  .flat(Infinity)
  .filter((child) => child != null && child !== false)
  .map((child) => (child instanceof Node ? child : visible(String(child)))));
