/**
 * The data of the page: base64 -> zip -> arrays and one document.
 *
 *     const { document, arrays } = await openArchive(text);
 *     document.title           "step.timeline"
 *     arrays.get("0/start_ns") Float64Array [0, 4000, ...]       8-byte integers become doubles, exact below 2 ** 53
 *
 * Entries are read by the directory at the end of the file, and inflated by the browser.
 */

const END = 0x06054b50; // signatures of the zip format: end of the directory, an entry in it
const ENTRY = 0x02014b50;
const DEFLATED = 8;
const TYPES = {
  "|u1": Uint8Array, "|i1": Int8Array, "|b1": Uint8Array, "<u2": Uint16Array, "<i2": Int16Array,
  "<u4": Uint32Array, "<i4": Int32Array, "<f4": Float32Array, "<f8": Float64Array,
  "<u8": BigUint64Array, "<i8": BigInt64Array,
};

/** Whether this browser can inflate what the page holds. */
export const canInflate = () => typeof DecompressionStream === "function";

/** @param {string} base64 @returns {Promise<{document: any, arrays: Map<string, ArrayLike<number>>}>} */
export async function openArchive(base64) {
  const file = bytesOf(base64);
  const named = async (entry) => [entry.name, await contentOf(file, entry)];
  const entries = await Promise.all([...directory(file)].map(named));
  const arrays = new Map();
  let document = null;
  for (const [name, content] of entries) {
    if (name === "document.json") document = JSON.parse(new TextDecoder().decode(content));
    else arrays.set(name.replace(/\.npy$/, ""), arrayOf(content));
  }
  return { document, arrays };
}

function bytesOf(base64) {
  const text = base64.trim();
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text);
  const made = new Uint8Array(letters.length);
  for (let at = 0; at < made.length; at++) made[at] = letters.charCodeAt(at);
  return made;
}

function* directory(file) {
  const data = new DataView(file.buffer, file.byteOffset, file.byteLength);
  let end = file.length - 22;
  while (end >= 0 && data.getUint32(end, true) !== END) end--;
  if (end < 0) throw new Error("the data of this page are cut off: their directory is missing");
  let at = data.getUint32(end + 16, true);
  for (let left = data.getUint16(end + 10, true); left > 0; left--) {
    if (data.getUint32(at, true) !== ENTRY) throw new Error("the data of this page are damaged");
    const [name, extra, comment] = [28, 30, 32].map((field) => data.getUint16(at + field, true));
    const local = data.getUint32(at + 42, true);
    const start = local + 30 + data.getUint16(local + 26, true) + data.getUint16(local + 28, true);
    yield {
      name: new TextDecoder().decode(file.subarray(at + 46, at + 46 + name)),
      deflated: data.getUint16(at + 10, true) === DEFLATED,
      start,
      end: start + data.getUint32(at + 20, true),
    };
    at += 46 + name + extra + comment;
  }
}

async function contentOf(file, { deflated, start, end }) {
  const stored = file.subarray(start, end);
  if (!deflated) return stored;
  const inflated = new Response(stored).body.pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(inflated).arrayBuffer());
}

/** The array of a `.npy` file of one dimension. @param {Uint8Array} npy */
function arrayOf(npy) {
  const length = npy[8] + 256 * npy[9];
  const header = new TextDecoder().decode(npy.subarray(10, 10 + length));
  const type = /'descr': '([^']+)'/.exec(header)?.[1];
  const content = npy.slice(10 + length); // a copy begins where every type may begin
  if (!TYPES[type]) throw new Error(`the data of this page hold an array of type ${type}, which it cannot read`);
  const array = new TYPES[type](content.buffer);
  return typeof array[0] === "bigint" ? Float64Array.from(array, Number) : array;
}
