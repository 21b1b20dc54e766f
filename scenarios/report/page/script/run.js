/**
 * One step (or session) in columns: row i of every column belongs to event i.
 *
 *     run.start[i], run.end[i], run.duration[i]      nanoseconds
 *     run.text("node", i)                            its name; text columns hold numbers
 *     run.cause[i]                                   the event that it waited for, -1 for none
 *
 * A stored column is plain, or differences from the row before, or from another column, so that it deflates well.
 */

const TEXTS = ["device", "stream", "node", "op", "provenance", "iteration"];
const NUMBERS = ["bytes", "flops", "runs", "low_ns", "high_ns"];
const OCCUPYING = ["compute", "copy", "collective"];

/** The first place of a sorted array whose value is above another. @param {ArrayLike<number>} sorted */
export function firstAbove(sorted, value) {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

export class Run {
  /** @param {any} record a run of the page's document @param {Map<string, ArrayLike<number>>} arrays */
  constructor(record, arrays) {
    const { name, events, makespan_ns: makespan, kinds } = record;
    Object.assign(this, { record, arrays, name, makespan, count: events });
    for (const column of TEXTS) this[column] = this.#column(column, Uint32Array);
    this.kind = this.#column("kind", Uint8Array);
    this.cause = this.#column("cause", Int32Array);
    this.start = this.#column("start_ns", Float64Array);
    this.end = this.#column("end_ns", Float64Array);
    this.duration = this.end.map((end, event) => end - this.start[event]);
    for (const column of NUMBERS) this[column.replace("_ns", "")] = this.#column(column, Float64Array);
    this.step = record.columns.step ? this.#column("step", Float64Array) : null;
    const occupies = kinds.map((kind) => OCCUPYING.includes(kind));
    this.occupies = (event) => occupies[this.kind[event]];
    this.criticalPath = record.critical_path ? this.array(record.critical_path) : [];
    this.critical = new Uint8Array(events);
    for (const event of this.criticalPath) this.critical[event] = 1;
    /** the events by their starts */
    this.order = Uint32Array.from(this.start.keys());
    const isSorted = this.start.every((start, event) => !event || this.start[event - 1] <= start);
    if (!isSorted) this.order.sort((one, other) => this.start[one] - this.start[other] || one - other);
  }

  /** An array of the archive by its name. @param {string} name */
  array(name) {
    const found = this.arrays.get(name);
    if (!found) throw new Error(`the data of this page lack the array ${name}`);
    return found;
  }

  /** A text of an event: "" for none. @param {string} column @param {number} event */
  text(column, event) {
    return (column === "kind" ? this.record.kinds : this.record.texts[column])[this[column][event]] ?? "";
  }

  /** The name of an event's device as people write it: "gpu:0". @param {number} event */
  shortDevice(event) {
    const full = this.text("device", event);
    return this.record.devices.find(({ name }) => name === full)?.short ?? full;
  }

  /** The first event of a node that takes its stream's time, else its first one; -1 for none. @param {string} node */
  eventOf(node) {
    const number = this.record.texts.node.indexOf(node);
    let first = -1;
    for (let event = this.count - 1; event >= 0 && number >= 0; event--) {
      if (this.node[event] === number && (first < 0 || this.occupies(event) || !this.occupies(first))) first = event;
    }
    return first;
  }

  /** The events that waited for one. @param {number} event @returns {number[]} */
  waitingFor(event) {
    const found = [];
    for (let at = this.cause.indexOf(event); at >= 0; at = this.cause.indexOf(event, at + 1)) found.push(at);
    return found;
  }

  #column(name, Type) {
    const { array, coding = "plain", integers } = this.record.columns[name];
    if (integers) return Type.from(integers, Number);
    const stored = this.array(array);
    const made = new Type(stored);
    const base = this[coding.replace(/^from:|_ns$/g, "")];
    for (let at = 0, sum = 0; coding !== "plain" && at < made.length; at++) {
      if (coding === "differences") made[at] = sum += stored[at];
      else made[at] = stored[at] + (base ? base[at] : at); // "from:row" has no column
    }
    return made;
  }
}
