/** Arrows between events: from what let one begin to it, along transfers, and from member to member of a collective. */

import { firstAbove } from "./run.js";

export const MOST_ARROWS = 500;
const TRANSFERS = ["send", "copy", "recv"];

/** The arrows of a run, as pairs of tail and head; those in view are looked for when first asked for. */
export class Arrows {
  #all;

  /** @param {import("./run.js").Run} run */
  constructor(run) {
    this.run = run;
    this.next = membersOf(run);
    this.moves = (event) => TRANSFERS.includes(run.text("kind", event));
  }

  /** Those of one event: back to what it waited for, on to what waits for it, through all of a transfer. */
  of(event) {
    const { run, next, moves } = this;
    const pairs = [];
    for (let at = event; run.cause[at] >= 0 && (at === event || moves(at)); at = run.cause[at]) {
      pairs.push([run.cause[at], at]);
    }
    for (let tails = [event]; tails.length && pairs.length < MOST_ARROWS;) {
      const on = tails.flatMap((tail) => run.waitingFor(tail).map((head) => [tail, head]));
      pairs.push(...on);
      tails = on.map(([, head]) => head).filter(moves);
    }
    let at = event;
    while (next.has(at) && (pairs.push([at, next.get(at)]), next.get(at) !== event)) at = next.get(at);
    return pairs;
  }

  /** Those that point at an event that starts in view. */
  between(from, to) {
    this.#all ??= Array.from(this.run.order).flatMap((event) => this.#into(event));
    this.starts ??= Float64Array.from(this.#all, ([, event]) => this.run.start[event]);
    return this.#all.slice(firstAbove(this.starts, from - 1e-9), firstAbove(this.starts, to));
  }

  /** From the member before it, and from what it waited for elsewhere, if that has to do with moving data. */
  #into(event) {
    const { run, next, moves } = this;
    const cause = run.cause[event];
    const pairs = next.has(event) ? [[event, next.get(event)]] : [];
    const leaves = cause >= 0 && run.device[cause] !== run.device[event];
    const turns = cause >= 0 && run.stream[cause] !== run.stream[event] && (moves(cause) || moves(event));
    return leaves || turns ? [...pairs, [cause, event]] : pairs;
  }
}

/** By member of a collective the next one; the last has the first. Members run on streams of one name, at one time. */
function membersOf(run) {
  const groups = new Map();
  const collective = run.record.kinds.indexOf("collective");
  run.kind.forEach((kind, event) => {
    if (kind !== collective) return;
    const key = `${run.stream[event]} ${run.op[event]} ${run.start[event]} ${run.end[event]}`;
    groups.get(key)?.push(event) ?? groups.set(key, [event]);
  });
  const rings = [...groups.values()].filter((members) => members.length > 1);
  return new Map(rings.flatMap((members) => members.map((one, at) => [one, members[(at + 1) % members.length]])));
}

/** From a point to another. @param {CanvasRenderingContext2D} context @param {number[]} tail @param {number[]} head */
export function drawArrow(context, [x, y], [headX, headY]) {
  const isUpright = Math.abs(headX - x) < 1;
  const bend = isUpright ? 0 : Math.max(12, Math.abs(headX - x) / 2);
  context.beginPath();
  context.moveTo(x, y);
  context.bezierCurveTo(x + bend, y, headX - bend, headY, headX, headY);
  context.stroke();
  const [dx, dy] = isUpright ? [0, Math.sign(headY - y)] : [1, 0];
  context.beginPath();
  context.moveTo(headX, headY);
  context.lineTo(headX - 6 * dx - 3 * dy, headY - 6 * dy - 3 * dx);
  context.lineTo(headX - 6 * dx + 3 * dy, headY - 6 * dy + 3 * dx);
  context.fill();
}
