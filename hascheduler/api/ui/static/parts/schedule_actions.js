// What can be done with one schedule: pause, resume, reset, trigger now, delete.
import { html, useState } from "../html.js";
import { post, request, segment } from "../api.js";
import { plain } from "../format.js";
import { may } from "../session.js";
import { Action } from "./actions.js";
import { JobLink } from "./basic.js";

/** @param {import("../wire.js").ScheduleResponse} schedule */
export const scheduleState = (schedule) => (schedule.paused ? "paused" : schedule.next_at ? "active" : "ended");

/** The tag of a document that an answer showed. @param {{rev: number}} shown */
export const tagOf = (shown) => `"${shown.rev}"`;

/** @param {{schedule: import("../wire.js").ScheduleResponse, reload: () => void, gone: () => void}} props */
export function ScheduleActions({ schedule, reload, gone }) {
  const [made, setMade] = useState("");
  const path = `/v1/schedules/${segment(schedule.name)}`;
  const name = html`<bdi class="id">${plain(schedule.name, 80)}</bdi>`;
  return html`<div class="buttons tight">
    ${may("operate") && (schedule.paused
      ? html`<${Action} label="Resume" done=${reload} act=${(/** @type {FormData} */ form) => post(`${path}/resume`, { catch_up: form.get("catch_up") === "on" })}
          question=${html`<p>${name} fires again from now on.</p>`}><label><input type="checkbox" name="catch_up" /> And catch up on the times since the pause, as its misfire policy says</label><//>`
      : html`<${Action} label="Pause" done=${reload} act=${(/** @type {FormData} */ form) => post(`${path}/pause`, { because: form.get("because") || null })}
          question=${html`<p>${name} does not fire until it is resumed. Jobs that it made go on.</p>`}><label class="field"><span>Why, for the others</span><input name="because" maxlength="256" /></label><//>`)}
    ${may("operate") && schedule.ahead_until && !schedule.paused && html`<${Action} label="Reset" done=${reload} act=${() => post(`${path}/reset`)}
      question=${html`<p>A clock was wrong, and ${name} fired ahead of time. If the clocks are right now, it fires again from now on; times that have a job already do not fire again.</p>`} />`}
    ${may("submit") && html`<${Action} label="Trigger now" done=${(/** @type {import("../wire.js").JobResponse} */ job) => {
      setMade(job.id);
      reload();
    }} act=${(/** @type {FormData} */ form) => post(`${path}/trigger`, form.get("overlap") ? { overlap: form.get("overlap") } : {})}
      question=${html`<p>${name} makes a job now, paused or not. It is no fire: its times and counts stay as they are.</p>`}>
      <label class="field"><span>While another job of it has not ended</span><select name="overlap">
        <option value="">as the schedule says (${schedule.overlap})</option><option value="allow">beside it</option><option value="skip">refuse</option><option value="buffer_one">after it</option><option value="cancel_running">instead of it</option>
      </select></label><//>`}
    ${may("operate") && html`<${Action} label="Delete" danger done=${gone} act=${() => request("DELETE", path, { headers: { "if-match": tagOf(schedule) } })}
      question=${html`<p>${name} is deleted, with its counts. Jobs that it made go on.</p>`} />`}
    ${made && html`<span role="status">Made <${JobLink} id=${made} /></span>`}
  </div>`;
}
