/**
 * Where events are drawn: a group per device, a lane per stream, and in a lane as many tracks as events overlap.
 *
 *     ▸ gpu:0         |=====|  |==|         closed, one lane: all that takes time, of all streams
 *     ▾ gpu:1
 *         compute     |=====|  |==|         thick: what takes the time of its stream
 *                       |--|                thin: launches, waits, sends, receives
 */

import { looksOf } from "./colours.js";
import { count, percent } from "./format.js";
import { firstAbove } from "./run.js";

const [THICK, THIN, GAP] = [18, 7, 2];
export const HEADER = 22; // above all there is room for the ruler
const MOST_TRACKS = 4; // where more events overlap, the last ones are drawn over each other

/** Events of a run, by start. `reach` is the latest end so far, by which what is in view is found. */
class Track {
  constructor(run, events, height) {
    const [size, looks] = [events.length, looksOf(run)];
    Object.assign(this, { run, events, height, top: 0, look: new Uint8Array(size) });
    [this.start, this.end, this.reach] = [0, 0, 0].map(() => new Float64Array(size));
    for (let at = 0, latest = 0; at < size; at++) {
      this.look[at] = looks[events[at]];
      this.start[at] = run.start[events[at]];
      this.end[at] = run.end[events[at]];
      this.reach[at] = latest = Math.max(latest, this.end[at]);
    }
  }

  /** The event at an instant, or the nearest within some ns of it; undefined for none. */
  eventAt(time, within) {
    let [best, distance] = [undefined, Infinity];
    const stop = firstAbove(this.start, time + within);
    for (let at = firstAbove(this.reach, time - within); at < stop; at++) {
      const away = Math.max(this.start[at] - time, time - this.end[at], 0);
      if (away <= distance && away <= within) [best, distance] = [this.events[at], away];
    }
    return best;
  }
}

/** The groups of a run, one for each device that has events. @param {import("./run.js").Run} run */
export function groupsOf(run) {
  const { lanes, texts, devices } = run.record;
  const ofDevice = texts.device.map(() => []);
  const ofLane = new Map(lanes.map(({ device, stream }) => [device * texts.stream.length + stream, []]));
  for (const event of run.order) {
    ofDevice[run.device[event]].push(event);
    ofLane.get(run.device[event] * texts.stream.length + run.stream[event]).push(event);
  }
  return devices.map(({ name, short, model, stands_for: number }, place) => {
    const device = texts.device.indexOf(name);
    const ofStream = (stream) => ofLane.get(device * texts.stream.length + stream);
    return {
      run, open: true, isFirst: place === 0, label: short,
      about: [model, number > 1 && `stands for ${count(number)} devices`].filter(Boolean).join(", "),
      closed: [{ tracks: () => spreadOut(run, ofDevice[device].filter(run.occupies)) }],
      lanes: lanes.filter((lane) => lane.device === device).map(({ name: label, stream, busy }) =>
        ({ label, busy: percent(busy), tracks: () => spreadOut(run, ofStream(stream)) })),
    };
  });
}

/**
 * Places what is open below each other, with room for the names of runs.
 * @returns the tracks in order, by run the number of each event's track (-1 for none), and the height of all
 */
export function layOut(groups, named) {
  let top = HEADER;
  const tracks = [];
  const placed = new Map(groups.map(({ run }) => [run, new Int32Array(run.count).fill(-1)]));
  for (const group of groups) {
    if (named && group.isFirst) top += HEADER;
    group.top = top;
    if (group.open) top += HEADER;
    for (const lane of group.open ? group.lanes : group.closed) {
      lane.top = top;
      lane.made ??= lane.tracks();
      for (const track of lane.made) {
        track.top = top + GAP;
        top += track.height + GAP;
        const numbers = placed.get(track.run);
        for (const event of track.events) numbers[event] = tracks.length;
        tracks.push(track);
      }
      top = Math.max(top + GAP, lane.top + HEADER);
    }
  }
  return { tracks, placed, height: top };
}

/** The track that shows an event; undefined where none does. */
export const trackOf = ({ tracks, placed }, run, event) => tracks[placed.get(run)[event]];

/** What takes a stream's time above, what does not below; each event on the first track that is free at its start. */
function spreadOut(run, events) {
  return [THICK, THIN].flatMap((height) => {
    const [rows, free] = [[], []];
    for (const event of events) {
      if (run.occupies(event) !== (height === THICK)) continue;
      let at = free.findIndex((end) => end <= run.start[event]);
      if (at < 0) at = Math.min(free.length, MOST_TRACKS - 1);
      (rows[at] ??= []).push(event);
      free[at] = run.end[event];
    }
    return rows.map((row) => new Track(run, row, height));
  });
}
