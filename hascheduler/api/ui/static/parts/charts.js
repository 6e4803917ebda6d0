// Charts, each with a text for screen readers.
import { html } from "../html.js";
import { number } from "../format.js";

const WIDTH = 120;
const HEIGHT = 28;

/** A line without axes. @param {{values: number[], label: string, points?: number}} props */
export function Sparkline({ values, label, points = 120 }) {
  const shown = (values || []).slice(-points);
  const most = Math.max(1, ...shown);
  const step = WIDTH / Math.max(1, points - 1);
  const first = points - shown.length;
  const line = shown.map((value, place) => `${((first + place) * step).toFixed(1)},${(HEIGHT - 2 - (value / most) * (HEIGHT - 4)).toFixed(1)}`).join(" ");
  const last = shown.length ? shown[shown.length - 1] : 0;
  return html`<svg class="spark" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img"
    aria-label=${`${label}: ${number(last)} now, ${number(most)} at most`}><polyline points=${line} /></svg>`;
}

/** A part of a whole, as a bar with its numbers beside it. @param {{value: number, of: number, label: string, kind?: string}} props */
export function Bar({ value, of, label, kind = "accent" }) {
  const part = of > 0 ? Math.min(1, value / of) : 0;
  return html`<span class="bar" role="img" aria-label=${`${label}: ${number(value)} of ${number(of)}`} title=${`${number(value)} of ${number(of)}`}>
    <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect class="track" width="100" height="8" /><rect class=${kind} width=${100 * part} height="8" /></svg>
  </span>`;
}
