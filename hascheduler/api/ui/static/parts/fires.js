// A preview: the next fires in the trigger's zone, and what each change of the clock does to them.
import { html } from "../html.js";
import { now } from "../data.js";
import { farYear, left, myZone, plain, span, time, written } from "../format.js";
import { cityOf } from "./trigger.js";

/** The time on a clock, with seconds only if there are some. @param {string} text  "…T03:00:00+02:00" */
const onClock = (text) => text.slice(11, text.slice(17, 19) === "00" ? 16 : 19);

/** The day of a fire in its zone: "Sun 28 Mar". @param {Wire.FireResponse} fire */
const dayOf = ({ local }) => written(`${local.slice(0, 10)}T00:00:00Z`, "UTC", { weekday: "short", day: "numeric", month: "short", year: farYear(local) }).replace(",", "");

/** The zone's short name at an instant, such as CEST. @param {string} at @param {string} zone */
const shortName = (at, zone) => written(at, zone, { hour: "numeric", timeZoneName: "short" }).split(" ").slice(1).join(" ");

/** @param {{preview: Wire.PreviewResponse & Partial<Wire.EditPreviewResponse>}} props  with `added` and `removed`, what an edit would change */
export function Fires({ preview }) {
  const added = new Set((preview.added || []).map((fire) => fire.nominal_at));
  const rows = [
    ...preview.fires.map((fire) => ({ fire, change: added.has(fire.nominal_at) ? "added" : "" })),
    ...(preview.removed || []).map((fire) => ({ fire, change: "removed" })),
  ].sort((one, other) => Date.parse(one.fire.nominal_at) - Date.parse(other.fire.nominal_at));
  const zone = preview.timezone || "UTC";
  return html`${preview.warnings.map((warning) => html`<p><span class="s tri warn wrap">${plain(warning, 400)}</span></p>`)}
    ${rows.length ? html`<table><caption class="hide">Next fires</caption>
      <thead><tr><th scope="col">Day</th><th scope="col">In ${cityOf(zone)}</th>${zone !== "UTC" && html`<th scope="col" class="drop">UTC</th>`}${zone !== myZone && myZone !== "UTC" && html`<th scope="col" class="drop">Your clock</th>`}<th scope="col" class="r">In</th></tr></thead>
      <tbody>${rows.map(({ fire, change }) => html`<${Row} key=${fire.nominal_at + change} fire=${fire} change=${change} zone=${zone} />`)}
        <${ClockChanges} preview=${preview} zone=${zone} columns=${3 + Number(zone !== "UTC") + Number(zone !== myZone && myZone !== "UTC")} /></tbody></table>`
    : html`<p class="q">It never fires.</p>`}`;
}

/** @param {{fire: Wire.FireResponse, change: string, zone: string}} props */
function Row({ fire, change, zone }) {
  const jitterMs = Date.parse(fire.due_at) - Date.parse(fire.nominal_at);
  return html`<tr><th scope="row" class="n">${dayOf(fire)}${change && html`<small class=${change === "added" ? "good" : "bad"}>${change === "added" ? "+ added" : "− removed"}</small>`}</th>
    <td><span class="n b">${onClock(fire.local)} ${shortName(fire.nominal_at, zone)}</span>
      ${jitterMs > 0 && html`<small>${span(jitterMs)} later by jitter</small>`}
      ${fire.excluded && html`<small class="off">does not fire</small>`}${fire.note && html`<small class="warn">${plain(fire.note, 300)}</small>`}</td>
    ${zone !== "UTC" && html`<td class="n q m drop">${onClock(fire.nominal_at)}Z</td>`}
    ${zone !== myZone && myZone !== "UTC" && html`<td class="n q drop">${time(fire.nominal_at).replace(/:00$/, "")}</td>`}
    <td class="r n q">${left(fire.nominal_at, now.value)}</td></tr>`;
}

/** The changes of the clock in the next 400 days that move a fire. @param {{preview: Wire.PreviewResponse, zone: string, columns: number}} props */
function ClockChanges({ preview, zone, columns }) {
  const changes = preview.clock_changes.filter((change) => !change.explanation.includes("none of its times"));
  if (!changes.length) {
    const words = preview.clock_changes.length ? "skips or repeats none of its times" : "does not change";
    return zone !== "UTC" && html`<tr><td class="q" colspan=${columns}>In the next 400 days the clock in ${cityOf(zone)} ${words}.</td></tr>`;
  }
  return changes.map((change) => {
    const [title, ...effects] = change.explanation.split("; ");
    return html`<tr class="clock" key=${change.at}><td colspan=${columns}><span class="s tri warn b wrap">${plain(title, 200)}.</span>
      <br />${plain(effects.join("; "), 400)}.</td></tr>`;
  });
}
