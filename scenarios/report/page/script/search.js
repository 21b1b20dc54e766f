/** The search field: events whose node or op has a text, or matches `/a regular expression/`; one after the other. */

import { button, element } from "./dom.js";
import { count } from "./format.js";

const WAIT_MS = 120; // a million names take longer than a letter
const EXPRESSION = /^\/(.+)\/(i?)$/;

/**
 * @param {import("./main.js").Page} page
 * @param {(found: Map<import("./run.js").Run, Uint8Array> | null) => void} onfound
 */
export function searchField({ runs, state }, onfound) {
  let [events, at, waiting] = [[], -1, 0];
  const step = (by) => {
    if (at < 0) search(); // for what was written a moment ago
    if (!events.length) return;
    at = at < 0 && by < 0 ? events.length - 1 : (at + by + events.length) % events.length;
    state.show(...events[at]);
    said.textContent = `${count(at + 1)} of ${count(events.length)}`;
  };
  const search = () => {
    clearTimeout(waiting);
    const { test, error } = testOf(input.value);
    const found = test && new Map(runs.map((run) => [run, flagsOf(run, test)]));
    const listed = (run) => Array.from(run.order.filter((event) => found.get(run)[event]), (event) => [run, event]);
    [events, at] = [found ? runs.flatMap(listed) : [], -1];
    said.textContent = error ?? (test ? `${count(events.length)} ${events.length === 1 ? "event" : "events"}` : "");
    for (const one of steps) one.disabled = !events.length;
    onfound(found);
  };
  const wait = () => {
    clearTimeout(waiting);
    [at, waiting] = [-1, setTimeout(search, WAIT_MS)];
  };
  const input = element("input", {
    type: "search", "aria-label": "Search nodes and ops", placeholder: "name, op or /regex/", spellcheck: "false",
    oninput: wait, onkeydown: (event) => event.key === "Enter" && step(event.shiftKey ? -1 : 1),
  });
  const said = element("output", { class: "muted figure" });
  const steps = [["‹", -1, "Previous"], ["›", 1, "Next"]].map(([sign, by, which]) =>
    button(sign, () => step(by), { "aria-label": `${which} event found`, disabled: true }));
  const clear = () => { input.value = ""; search(); };
  return { input, clear, controls: element("span", { class: "search", role: "search" }, input, steps, said) };
}

/** What a search asks of a text. @returns {{test: ((text: string) => boolean) | null, error?: string}} */
function testOf(text) {
  const wanted = text.trim().toLowerCase();
  const [, source, flags] = EXPRESSION.exec(text) ?? [];
  if (!source) return { test: wanted ? (other) => other.toLowerCase().includes(wanted) : null };
  try {
    const expression = new RegExp(source, flags);
    return { test: (other) => expression.test(other) };
  } catch {
    return { test: null, error: "no valid regular expression" };
  }
}

function flagsOf(run, test) {
  const [nodes, ops] = ["node", "op"].map((column) => run.record.texts[column].map((text) => Number(test(text))));
  return run.kind.map((_, event) => nodes[run.node[event]] | ops[run.op[event]]);
}
