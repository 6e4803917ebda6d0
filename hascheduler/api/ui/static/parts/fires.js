// A preview: the next fires in the trigger's zone, and the effect of clock changes.
import { html } from "../html.js";
import { myZone, plain, span, time } from "../format.js";
import { State, When } from "./basic.js";

const HOUR_MS = 3_600_000;
const SIDE_MS = 3 * HOUR_MS;
const WIDTH = 360;
const DRAWN_MAX = 48;
const SIGNS = { "+": ["+", "good", "added"], "-": ["−", "bad", "removed"] };

/** "2027-03-28T03:00:00+02:00" as "Sun 2027-03-28 03:00:00 +02:00". @param {import("../wire.js").FireResponse} fire */
const local = (fire) => `${fire.weekday} ${fire.local.replace("T", " ").replace(/([+-]\d\d:\d\d|Z)$/, " $1")}`;

/** @param {{preview: import("../wire.js").PreviewResponse & Partial<import("../wire.js").EditPreviewResponse>}} props  with `added` and `removed`, what an edit would change */
export function Fires({ preview }) {
  const added = new Set((preview.added || []).map((fire) => fire.nominal_at));
  const rows = [
    ...preview.fires.map((fire) => ({ fire, sign: added.has(fire.nominal_at) ? "+" : "" })),
    ...(preview.removed || []).map((fire) => ({ fire, sign: "-" })),
  ].sort((one, other) => Date.parse(one.fire.nominal_at) - Date.parse(other.fire.nominal_at));
  const zone = preview.timezone || "UTC";
  const isCompared = preview.added !== undefined;
  const isElsewhere = zone !== myZone;
  const isDelayed = rows.some(({ fire }) => fire.due_at !== fire.nominal_at);
  return html`${preview.warnings.map((warning) => html`<p class="banner wait">${plain(warning, 400)}</p>`)}
    ${rows.length ? html`<div class="scroll" tabindex="0" role="region" aria-label="Next fires"><table>
      <thead><tr>${isCompared && html`<th scope="col">Change</th>`}<th scope="col">${plain(zone, 60)}</th>${isElsewhere && html`<th scope="col">Your clock (${myZone})</th>`}${isDelayed && html`<th scope="col">Jitter</th>`}<th scope="col">When</th><th scope="col">Note</th></tr></thead>
      <tbody>${rows.map(({ fire, sign }) => html`<tr>
        ${isCompared && html`<td>${sign ? html`<span class=${`state ${/** @type {any} */ (SIGNS)[sign][1]}`}><span aria-hidden="true">${/** @type {any} */ (SIGNS)[sign][0]}</span> ${/** @type {any} */ (SIGNS)[sign][2]}</span>` : html`<span class="dim">unchanged</span>`}</td>`}
        <td class="number">${local(fire)}</td>
        ${isElsewhere && html`<td class="number dim">${time(fire.nominal_at)}</td>`}
        ${isDelayed && html`<td class="number">+${span(Date.parse(fire.due_at) - Date.parse(fire.nominal_at))}</td>`}
        <td><${When} at=${fire.nominal_at} zone=${zone} /></td>
        <td>${fire.excluded && html`<${State} state="excluded" word="does not fire" /> `}${fire.note && html`<span class="wait">${plain(fire.note, 300)}</span>`}</td></tr>`)}</tbody></table></div>`
    : html`<p class="empty">It never fires again.</p>`}
    <${ClockChanges} preview=${preview} zone=${zone} />`;
}

/** @param {{preview: import("../wire.js").PreviewResponse, zone: string}} props */
function ClockChanges({ preview, zone }) {
  const changes = preview.clock_changes;
  if (!changes.length) return zone === "UTC" ? null : html`<p class="dim">Clocks in ${plain(zone, 60)} do not change within 400 days.</p>`;
  return html`<h3>Clock changes${zone === "UTC" ? "" : html` in ${plain(zone, 60)}`} within 400 days</h3>
    <ul class="changes">${changes.map((change) => html`<li>
      <p><strong>${time(change.at, zone)}</strong> <span class="dim">${change.offset_before} → ${change.offset_after}</span></p>
      <p>${plain(change.explanation, 400)}</p>
      ${zone !== "UTC" && change.fires.length < DRAWN_MAX && html`<${Night} change=${change} />`}</li>`)}</ul>
    ${zone !== "UTC" && html`<p class="dim">● it fires; ○ the same local time again, when it does not fire</p>`}`;
}

/** @param {string} offset  "+02:00" */
function offsetMs(offset) {
  const [hours, minutes] = offset.slice(1).split(":").map(Number);
  return (offset.startsWith("-") ? -1 : 1) * (hours * HOUR_MS + (minutes || 0) * 60_000);
}

/** Six hours of real time with the local hours above: one is skipped, or occurs twice. @param {{change: import("../wire.js").ClockChangeResponse}} props */
function Night({ change }) {
  const at = Date.parse(change.at);
  const [before, after] = [offsetMs(change.offset_before), offsetMs(change.offset_after)];
  const shift = after - before;
  const x = (/** @type {number} */ instant) => ((instant - at + SIDE_MS) / (2 * SIDE_MS)) * WIDTH;
  const isNear = (/** @type {number} */ instant) => Math.abs(instant - at) < SIDE_MS;
  const hours = [];
  for (let instant = at - SIDE_MS; instant < at + SIDE_MS; instant += HOUR_MS / 4) {
    const wall = instant + (instant < at ? before : after);
    if (wall % HOUR_MS === 0) hours.push({ x: x(instant), text: String(Math.floor(wall / HOUR_MS) % 24).padStart(2, "0") });
  }
  const fires = change.fires.filter((fire) => !fire.excluded).map((fire) => Date.parse(fire.nominal_at));
  const again = fires.filter((fire) => shift <= fire - at && fire < at).map((fire) => fire - shift).filter((fire) => !fires.includes(fire));
  if (!fires.some(isNear)) return null;
  return html`<svg class="night" viewBox=${`-8 0 ${WIDTH + 16} 34`} role="img" aria-label=${change.explanation}>
    <line class="axis" x1="0" x2=${WIDTH} y1="24" y2="24" />
    ${hours.map((hour) => html`<line class="axis" x1=${hour.x} x2=${hour.x} y1="20" y2="28" /><text x=${hour.x} y="12">${hour.text}</text>`)}
    <line class="change" x1=${WIDTH / 2} x2=${WIDTH / 2} y1="15" y2="34" />
    ${fires.filter(isNear).map((fire) => html`<circle class="fires" cx=${x(fire)} cy="24" r="4" />`)}
    ${again.filter(isNear).map((fire) => html`<circle class="silent" cx=${x(fire)} cy="24" r="4" />`)}
  </svg>`;
}
