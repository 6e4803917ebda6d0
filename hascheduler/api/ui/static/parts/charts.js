// Charts, each with a text for screen readers.
import { html } from "../html.js";
import { HOUR_MS, counted, number } from "../format.js";

const HEIGHT = 40;

/** The sums of each minute, from the newest back; the oldest may be of less. @param {number[]} values @param {number} everyMs */
export function perMinute(values, everyMs) {
  const size = Math.max(1, Math.round(60_000 / everyMs));
  const sums = [];
  for (let end = values.length; end > 0; end -= size) sums.unshift(values.slice(Math.max(0, end - size), end).reduce((sum, value) => sum + value, 0));
  return sums;
}

/**
 * One hour, the newest at the right, with the ends of its scale below; a shorter series begins later.
 * @param {{values: number[], everyMs: number, label: string, unit?: string, bars?: boolean, marks?: number[]}} props
 *   `unit`: beside the top of the scale; `bars`: for events that are rare; `marks`: how many milliseconds ago something happened.
 */
export function Plot({ values, everyMs, label, unit = "", bars, marks = [] }) {
  const points = Math.round(HOUR_MS / everyMs);
  const shown = values.slice(-points);
  const top = Math.max(1, ...shown);
  const step = 100 / Math.max(1, points - 1);
  const y = (/** @type {number} */ value) => (HEIGHT - (HEIGHT - 2) * (value / top)).toFixed(1);
  const x = (/** @type {number} */ place) => ((points - shown.length + place) * step).toFixed(2);
  const line = shown.map((value, place) => `${x(place)},${y(value)}`).join(" ");
  return html`<svg class="plot" viewBox=${`0 0 100 ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label=${`${label}, the last hour, at most ${number(top)} ${unit}`}>
    ${bars
      ? shown.map((value, place) => html`<rect class=${value ? "k-x" : "k-z"} x=${Number(x(place)) * 0.985} width="1.2" y=${value ? y(value) : HEIGHT - 1} height=${value ? HEIGHT - Number(y(value)) : 1} />`)
      : html`<polygon class="a" points=${`${x(0)},${HEIGHT} ${line} 100,${HEIGHT}`} /><polyline class="l" points=${line} />`}
    ${marks.filter((ms) => ms >= 0 && ms <= HOUR_MS).map((ms) => html`<line class="e" x1=${100 - ms / (HOUR_MS / 100)} x2=${100 - ms / (HOUR_MS / 100)} y1="0" y2=${HEIGHT} />`)}
  </svg><span class="ends"><span>1 h ago</span><span>${shown.length ? `top ${number(top)} ${unit}` : "nothing yet"}</span></span>`;
}

/** A part of a whole, as a bar. @param {{value: number, of: number, label: string, kind?: string}} props */
export function Bar({ value, of, label, kind = "" }) {
  const part = of > 0 ? Math.min(1, value / of) : 0;
  return html`<svg class="meter" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label=${`${label}: ${number(value)} of ${number(of)}`}><rect class="k-z" width="100" height="8" /><rect class=${kind || "k-run"} width=${100 * part} height="8" /></svg>`;
}

const SLOTS_SHOWN_MAX = 40;

/** Squares, one a slot; the numbers stand beside them. @param {{used: number, of: number}} props */
export const Slots = ({ used, of }) =>
  html`<span class="slots" aria-hidden="true">${Array.from({ length: Math.min(of, SLOTS_SHOWN_MAX) }, (_, place) => html`<i class=${place < Math.round((used * Math.min(of, SLOTS_SHOWN_MAX)) / of) ? "u" : ""}></i>`)}</span>`;

const STRIP_MAX = 20;
const STEP = 8;
/** How an outcome of a fire is drawn, by its name; all others that did not fire are rings. @type {Record<string, string>} */
const KINDS = { succeeded: "ok", fired: "ok", failed: "bad", missed: "bad", unstorable: "bad", late: "late", throttled: "late", running: "run", dispatched: "run", waiting: "next", pending: "next", "failed or missed": "bad", "to come": "next" };
const STRIP_LEGEND = ["succeeded", "failed", "late", "running", "waiting", "skipped"];

/** A fire, 7 by 10, at `x`. @param {{kind: string, x: number}} props */
export function Glyph({ kind, x }) {
  if (kind === "ok") return html`<rect class="k-ok" x=${x + 2} y="3" width="3" height="10" rx="1" />`;
  if (kind === "bad") return html`<path class="k-bad" d=${`M${x} 4.5l7 7m0 -7l-7 7`} />`;
  if (kind === "late") return html`<path class="k-late" d=${`M${x + 3.5} 3l4 10h-8z`} />`;
  if (kind === "run" || kind === "next") return html`<rect class=${`k-${kind}`} x=${x + 1} y="3" width="5" height="10" rx="1" />`;
  return html`<circle class="k-off" cx=${x + 3.5} cy="8" r="2.6" />`;
}

/** A fire that succeeded late is one that was late. @param {{outcome: string, late?: boolean}} time */
const wordOf = ({ outcome, late }) => (late && KINDS[outcome] === "ok" ? "late" : outcome);
const kindOf = (/** @type {string} */ word) => KINDS[word] || "off";

/** The last twenty fires of a schedule, oldest first as given, the newest at the right. @param {{times: {outcome: string, late?: boolean}[]}} props */
export function Strip({ times }) {
  const shown = times.slice(-STRIP_MAX);
  const words = Object.entries(Object.groupBy(shown, wordOf)).map(([word, all = []]) => `${number(all.length)} ${word}`).join(", ");
  return html`<svg class="strip" viewBox="0 0 160 16" role="img" aria-label=${`Last ${counted(shown.length, "fire")}, newest at the right: ${words || "none yet"}`}>
    ${shown.map((time, place) => html`<${Glyph} kind=${kindOf(wordOf(time))} x=${(STRIP_MAX - shown.length + place) * STEP} />`)}</svg>`;
}

/** What the signs of strips mean. @param {{outcomes?: string[]}} props */
export const StripLegend = ({ outcomes = STRIP_LEGEND }) => html`<p class="legend">${outcomes.map((outcome) => html`<span><svg viewBox="-1 0 10 16" aria-hidden="true"><${Glyph} kind=${kindOf(outcome)} x=${0} /></svg>${outcome}</span>`)}</p>`;
