/** What is known of the selected event: what it is, how long it takes and how sure that is, what it waited for. */

import { button, element, name, replace } from "./dom.js";
import { bytes, count, ns, rate } from "./format.js";

const MOST_WAITING = 6;
const HINT =
  "Select an event to see what it is, where its time comes from and what it waited for: click on it, or press n in " +
  "the timeline.";

/** @param {import("./main.js").Page} page */
export function detailOf({ state }) {
  const attributes = { class: "detail", role: "region", "aria-label": "Selected event", "aria-live": "polite" };
  const made = element("div", attributes);
  const show = (change) => {
    if (change !== "selected") return;
    if (!state.selected) return replace(made, element("p", { class: "muted" }, HINT));
    const { run, event } = state.selected;
    const facts = factsOf(run, event, (other) => button(
      [`${run.text("kind", other)} `, name(run.text("node", other))], () => state.show(run, other), { class: "link" }));
    replace(made, element("h3", {}, name(run.text("node", event))),
      element("dl", {}, facts.filter(([, value]) => value).map(([what, value]) =>
        element("div", {}, element("dt", {}, what), element("dd", {}, value)))));
  };
  state.subscribe(show);
  show("selected");
  return made;
}

/** @returns {[string, import("./dom.js").Child | import("./dom.js").Child[]][]} */
function factsOf(run, event, linked) {
  const [duration, runs, amount, flops] = ["duration", "runs", "bytes", "flops"].map((column) => run[column][event]);
  const perSecond = (figure, unit) => duration > 0 && ` (${rate(figure / (duration / 1e9), unit)})`;
  const [waiting, iteration] = [run.waitingFor(event), run.text("iteration", event)];
  return [
    ["op", [name(run.text("op", event)), `, ${run.text("kind", event)}`]],
    ["device", name(run.shortDevice(event))],
    ["stream", name(run.text("stream", event))],
    ["start", ns(run.start[event])],
    ["duration", ns(duration)],
    ["in 80 % of runs", run.low[event] >= 0 ? `${ns(run.low[event])} to ${ns(run.high[event])}` : "unknown"],
    ["bytes", amount > 0 && [bytes(amount), perSecond(amount, "B/s")]],
    ["operations", flops > 0 && [count(flops), perSecond(flops, "FLOP/s")]],
    ["source of the time", name(run.text("provenance", event))],
    ["iteration", iteration && name(iteration)],
    ["stands for", runs > 1 && `${count(runs)} equal runs, one after the other`],
    ["step", run.step?.[event]],
    ["on the critical path", run.critical[event] ? "yes" : "no"],
    ["waited for", run.cause[event] < 0 ? "nothing" : linked(run.cause[event])],
    ["what waits for it", waiting.length ? waiting.slice(0, MOST_WAITING).map(linked) : "nothing"],
    ["and more", waiting.length > MOST_WAITING && count(waiting.length - MOST_WAITING)],
  ];
}
