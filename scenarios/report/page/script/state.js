/**
 * What is looked at: the instants in view and the selected event. All panels share it, and so does the page's address:
 * `#t=FROM-TO&node=NAME` (nanoseconds), with `&event=RUN.NUMBER` where the name alone does not say which.
 */

/** @typedef {import("./run.js").Run} Run */
/** @typedef {"view" | "selected" | "theme"} Change */

const WRITE_AFTER_MS = 200; // browsers refuse an address that changes at every frame

/** @param {Run[]} runs */
export function createState(runs) {
  /** @type {((change: Change) => void)[]} */
  const followers = [];
  const end = Math.max(1, ...runs.map((run) => run.makespan));
  let writing = 0;

  const state = {
    /** the last instant of the longest run */
    end,
    view: { from: 0, to: end },
    /** @type {{run: Run, event: number} | null} */
    selected: null,

    /** Looks at other instants, at least 1 ns and at most all of them. @param {number} from @param {number} to */
    setView(from, to) {
      const width = Math.min(end, Math.max(1, to - from));
      const start = Math.min(Math.max(0, from), end - width);
      state.view = { from: start, to: start + width };
      state.changed("view");
    },

    /** Selects an event; nothing without one. @param {Run} [run] @param {number} [event] */
    select(run, event) {
      state.selected = run ? { run, event } : null;
      state.changed("selected");
    },

    /** Selects an event, and looks where it is if that is not in view. @param {Run} run @param {number} event */
    show(run, event) {
      const [start, stop, { from, to }] = [run.start[event], run.end[event], state.view];
      if (stop <= from || start >= to) {
        const half = Math.max(to - from, 1.5 * (stop - start)) / 2;
        state.setView((start + stop) / 2 - half, (start + stop) / 2 + half);
      }
      state.select(run, event);
      document.getElementById("timeline")?.scrollIntoView({ block: "nearest" });
    },

    /** Shows the first event of a node, in the last run that has it. @param {string} node */
    showNode(node) {
      const run = runs.findLast((one) => one.eventOf(node) >= 0);
      if (run) state.show(run, run.eventOf(node));
    },

    /** @param {(change: Change) => void} follow */
    subscribe: (follow) => followers.push(follow),

    /** @param {Change} change */
    changed(change) {
      for (const follow of followers) follow(change);
      if (change === "theme") return;
      clearTimeout(writing);
      writing = setTimeout(() => history.replaceState(history.state, "", address()), WRITE_AFTER_MS);
    },
  };

  function address() {
    const place = `#t=${Math.floor(state.view.from)}-${Math.ceil(state.view.to)}`;
    if (!state.selected) return place;
    const { run, event } = state.selected;
    const node = run.text("node", event);
    const isFirst = run === runs[0] && run.eventOf(node) === event;
    return `${place}&node=${encodeURIComponent(node)}${isFirst ? "" : `&event=${runs.indexOf(run)}.${event}`}`;
  }

  /** Follows the address; what it does not say, or says wrongly, stays as it is. */
  function read() {
    const said = new URLSearchParams(location.hash.slice(1).replaceAll("+", "%2B"));
    const times = /^(\d+)-(\d+)$/.exec(said.get("t") ?? "")?.slice(1).map(Number);
    if (times && times[0] < times[1]) state.setView(...times);
    const [node, [number, event]] = [said.get("node"), (said.get("event") ?? "0.").split(".")];
    const run = (/^\d+$/.test(number) && runs[number]) || runs[0];
    if (node === null || !run) return;
    const exact = event && run.text("node", Number(event)) === node ? Number(event) : run.eventOf(node);
    if (exact >= 0) times ? state.select(run, exact) : state.show(run, exact);
  }
  read();
  addEventListener("hashchange", read);
  return state;
}
