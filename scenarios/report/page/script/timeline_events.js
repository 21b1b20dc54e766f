/**
 * Draws the events of the tracks in view. What is narrower than a few pixels joins its neighbours in a block, as tall
 * as its share of the time and coloured like the longest of it. So a frame is one pass over what is in view, and what
 * it draws follows from pixels; how many events were drawn as blocks is told.
 */

import { DIMMED } from "./colours.js";
import { count, visible } from "./format.js";
import { firstAbove } from "./run.js";

const CELL = 2; // pixels of a block
const LEVEL = 3; // pixels in which its height grows: neighbours of one height are drawn as one
const WIDE = 3; // pixels from which an event is drawn by itself
const BAND = 4; // pixels of the mark along the lower edge
const LABEL_FROM = 30;

/**
 * @typedef {object} Look what a frame shows: instants, pixels per ns, colours, and which events stand out
 * @property {number} from @property {number} to @property {number} scale
 * @property {ReturnType<import("./colours.js").paints>} paints @property {string} fg @property {string} font
 * @property {Map<import("./run.js").Run, Uint8Array> | null} found @property {boolean} critical
 */

/** @param {CanvasRenderingContext2D} context @param {any[]} tracks @param {Look} look */
export function drawEvents(context, tracks, look) {
  const frame = { boxes: look.paints.map(() => []), labels: [], outlines: [], events: 0, blocks: 0, joined: 0 };
  for (const track of tracks) collect(track, look, frame);
  look.paints.forEach((paint, number) => fill(context, frame.boxes[number], paint));
  [context.strokeStyle, context.fillStyle, context.lineWidth] = [look.fg, look.fg, 2];
  for (const [x, y, width, height] of frame.outlines) {
    if (width > 5) context.strokeRect(x + 1, y, width - 2, height);
    else context.fillRect(x, y - 1, width, 3);
  }
  [context.font, context.textBaseline, context.direction] = [look.font, "middle", "ltr"];
  write(context, frame.labels, look.paints);
  return frame;
}

function collect(track, { from, to, scale, found: ofRuns, critical: wanted }, frame) {
  const { start, end, top, height, events, run } = track;
  const [found, critical, { boxes, outlines }] = [ofRuns?.get(run), wanted && run.critical, frame];
  const lookAt = (at) => (found && !found[events[at]] ? DIMMED : track.look[at]);
  let [cell, joined, sum, longest, marked] = [-1, 0, 0, 0, false];

  const single = (at) => {
    const x = Math.max(-9, (start[at] - from) * scale);
    const right = Math.min((to - from) * scale + 9, (end[at] - from) * scale);
    const width = Math.max(1, right - x - (right - x > WIDE ? 0.75 : 0));
    boxes[lookAt(at)].push(x, top, width, height);
    if (critical && critical[events[at]]) outlines.push([x, top, width, height]);
    if (width > LABEL_FROM && height > 10) frame.labels.push([track, events[at], x, width, lookAt(at)]);
  };
  const flush = () => {
    if (joined === 1) single(longest);
    else if (joined) {
      const tall = Math.ceil((height * Math.min(1, sum / CELL)) / LEVEL) * LEVEL || LEVEL;
      append(boxes[lookAt(longest)], cell * CELL, top + height - tall, tall);
      if (marked) outlines.push([cell * CELL, top, CELL, height]);
      frame.blocks++;
      frame.joined += joined;
    }
    [joined, sum, marked] = [0, 0, false];
  };

  const stop = firstAbove(start, to);
  for (let at = firstAbove(track.reach, from - 1e-9); at < stop; at++) {
    if (end[at] < from) continue;
    frame.events++;
    const width = (end[at] - start[at]) * scale;
    if (width >= WIDE) {
      flush();
      single(at);
      continue;
    }
    const here = Math.max(0, ((start[at] - from) * scale / CELL) | 0);
    if (here !== cell) flush();
    cell = here;
    if (!joined++ || end[at] - start[at] > end[longest] - start[longest]) longest = at;
    sum += width;
    if (critical && critical[events[at]]) marked = true;
  }
  flush();
}

/** Adds a block, or widens the one before where the two look like one. */
function append(boxes, x, y, height) {
  const at = boxes.length - 4;
  const joins = at >= 0 && boxes[at] + boxes[at + 2] === x && boxes[at + 1] === y && boxes[at + 3] === height;
  if (joins) boxes[at + 2] += CELL;
  else boxes.push(x, y, CELL, height);
}

function fill(context, boxes, { fill: colour, tile, isPlain }) {
  context.fillStyle = colour;
  for (let at = 0; at < boxes.length; at += 4) context.fillRect(boxes[at], boxes[at + 1], boxes[at + 2], boxes[at + 3]);
  if (isPlain) return;
  context.fillStyle = context.createPattern(tile, "repeat");
  for (let at = 0; at < boxes.length; at += 4) {
    const band = Math.min(BAND, boxes[at + 3]);
    if (boxes[at + 2] >= 8) context.fillRect(boxes[at], boxes[at + 1] + boxes[at + 3] - band, boxes[at + 2], band);
  }
}

/** As much of each name as fits: all of it, or its end, which tells siblings in one scope apart. */
function write(context, labels, paints) {
  const letter = context.measureText("m").width;
  for (const [{ run, top, height }, event, x, width, look] of labels) {
    const runs = run.runs[event] > 1 ? `×${count(run.runs[event])} ` : "";
    const left = Math.max(x, 0) + 3;
    const most = Math.floor((x + width - left - 2) / letter) - runs.length;
    if (most < 3) continue;
    const text = run.text("node", event).slice(-200);
    const leaf = text.slice(text.lastIndexOf("/") + 1);
    const shown = [text, leaf].find(({ length }) => length <= most) ?? `${leaf.slice(0, most - 1)}…`;
    context.fillStyle = paints[look].text;
    context.fillText(runs + visible(shown), left, top + (height - BAND) / 2 + 1);
  }
}
