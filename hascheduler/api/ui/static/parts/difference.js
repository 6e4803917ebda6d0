// The difference of two texts, line by line, and the merge of two edits of one document.
import { html } from "../html.js";
import { counted, number, plain } from "../format.js";

const COMPARED_MAX = 4_000_000;
const CONTEXT = 3;
const SHOWN_MAX = 2_000;
const MARKS = { "+": "+", "-": "−", " ": " " };

/** @typedef {{sign: " " | "+" | "-", text: string}} Line */

/**
 * The lines of both texts in order, common lines once: by their longest common subsequence, unless they are too long for that.
 * @param {string} before @param {string} after @returns {Line[]}
 */
export function difference(before, after) {
  const [old, young] = [before.split("\n"), after.split("\n")];
  let first = 0;
  while (first < old.length && first < young.length && old[first] === young[first]) first += 1;
  let last = 0;
  while (last < old.length - first && last < young.length - first && old.at(-1 - last) === young.at(-1 - last)) last += 1;
  const [gone, come] = [old.slice(first, old.length - last), young.slice(first, young.length - last)];
  const width = come.length + 1;
  const isShort = gone.length * come.length <= COMPARED_MAX;
  const longest = new Uint32Array(isShort ? (gone.length + 1) * width : 0);
  /** How many lines are common from these on. @param {number} row @param {number} column */
  const common = (row, column) => longest[row * width + column] || 0;
  for (let row = gone.length - 1; isShort && row >= 0; row -= 1) {
    for (let column = come.length - 1; column >= 0; column -= 1) {
      longest[row * width + column] = gone[row] === come[column] ? common(row + 1, column + 1) + 1 : Math.max(common(row + 1, column), common(row, column + 1));
    }
  }
  const same = (/** @type {string} */ text) => /** @type {Line} */ ({ sign: " ", text });
  const lines = old.slice(0, first).map(same);
  for (let [row, column] = [0, 0]; row < gone.length || column < come.length; ) {
    if (row < gone.length && gone[row] === come[column]) {
      lines.push(same(gone[row]));
      [row, column] = [row + 1, column + 1];
    } else if (column === come.length || (row < gone.length && common(row + 1, column) >= common(row, column + 1))) lines.push({ sign: "-", text: gone[row++] });
    else lines.push({ sign: "+", text: come[column++] });
  }
  return [...lines, ...old.slice(old.length - last).map(same)];
}

/** Changed lines with a few around them. @param {{before: string, after: string, label: string, none?: string}} props */
export function Difference({ before, after, label, none = "No differences." }) {
  const lines = difference(before, after);
  const near = new Set(lines.flatMap((line, place) => (line.sign === " " ? [] : Array.from({ length: 2 * CONTEXT + 1 }, (_, step) => place + step - CONTEXT))));
  if (!near.size) return html`<p class="q">${none}</p>`;
  const shown = lines.map((line, place) => ({ ...line, place })).filter(({ place }) => near.has(place));
  const added = lines.filter(({ sign }) => sign === "+").length;
  const removed = lines.filter(({ sign }) => sign === "-").length;
  return html`<p class="q">${label}: ${counted(removed, "line")} removed, ${number(added)} added.</p>
    <div class="difference m" role="group" aria-label=${label}>${shown.slice(0, SHOWN_MAX).map((line, row) => html`
      ${row > 0 && shown[row - 1].place !== line.place - 1 && html`<div class="q" aria-hidden="true">…</div>`}
      <div class=${line.sign === "+" ? "good" : line.sign === "-" ? "bad" : ""}><span aria-hidden="true">${MARKS[line.sign]} </span>${line.sign !== " " && html`<span class="hide">${line.sign === "+" ? "added" : "removed"}: </span>`}<bdi>${plain(line.text, 1_000)}</bdi></div>`)}
    ${shown.length > SHOWN_MAX && html`<div class="q">and ${number(shown.length - SHOWN_MAX)} more</div>`}</div>`;
}

/** @param {any} value */
export const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** Whether two values are the same JSON. @param {any} one @param {any} other @returns {boolean} */
export function same(one, other) {
  if (Array.isArray(one)) return Array.isArray(other) && one.length === other.length && one.every((each, place) => same(each, other[place]));
  if (!isObject(one) || !isObject(other)) return one === other;
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...names].every((name) => Object.hasOwn(one, name) && Object.hasOwn(other, name) && same(one[name], other[name]));
}

/**
 * Apply the edit from `base` to `mine` to `theirs`: unchanged fields are taken from `theirs`. A list is one value.
 * @param {any} base @param {any} mine @param {any} theirs @returns {any}
 */
export function merged(base, mine, theirs) {
  if (same(base, mine)) return theirs;
  if (![base, mine, theirs].every(isObject) || base.type !== mine.type) return mine;
  /** @type {Record<string, any>} */
  const whole = {};
  for (const name of new Set([...Object.keys(theirs), ...Object.keys(mine)])) {
    const value = merged(base[name], mine[name], theirs[name]);
    if (value !== undefined) whole[name] = value;
  }
  return whole;
}

/** The JSON merge patch from `base` to `mine`. @param {any} base @param {any} mine @returns {any} */
export function patchOf(base, mine) {
  if (!isObject(base) || !isObject(mine) || base.type !== mine.type) return mine;
  /** @type {Record<string, any>} */
  const patch = {};
  for (const name of new Set([...Object.keys(base), ...Object.keys(mine)])) {
    if (!Object.hasOwn(mine, name)) patch[name] = null;
    else if (!same(base[name], mine[name])) patch[name] = patchOf(base[name], mine[name]);
  }
  return patch;
}
