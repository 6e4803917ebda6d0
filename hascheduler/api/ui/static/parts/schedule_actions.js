// Buttons for one schedule: pause, resume, reset, trigger now, delete.
import { html, useState } from "../html.js";
import { post, request, segment } from "../api.js";
import { plain } from "../format.js";
import { may } from "../session.js";
import { Action } from "./actions.js";
import { JobLink } from "./basic.js";

/** @param {import("../wire.js").ScheduleResponse} schedule */
export const scheduleState = (schedule) => (schedule.paused ? "paused" : schedule.next_at ? "active" : "ended");

/** The `If-Match` tag of a document. @param {{rev: number}} shown */
export const tagOf = (shown) => `"${shown.rev}"`;

/** @param {{schedule: import("../wire.js").ScheduleResponse, reload: () => void, gone: () => void}} props */
export function ScheduleActions({ schedule, reload, gone }) {
  const [made, setMade] = useState("");
  const path = `/v1/schedules/${segment(schedule.name)}`;
  const name = html`<bdi class="id">${plain(schedule.name, 80)}</bdi>`;
  return html`<div class="buttons tight">
    ${may("operate") && (schedule.paused
      ? html`<${Action} label="Resume" done=${reload} act=${(/** @type {FormData} */ form) => post(`${path}/resume`, { catch_up: form.get("catch_up") === "on" })}
          question=${html`<p>${name} fires again from now on.</p>`}><label><input type="checkbox" name="catch_up" /> Also catch up on the times since the pause, by its misfire policy</label><//>`
      : html`<${Action} label="Pause" done=${reload} act=${(/** @type {FormData} */ form) => post(`${path}/pause`, { because: form.get("because") || null })}
          question=${html`<p>${name} does not fire until it is resumed. Its jobs go on.</p>`}><label class="field"><span>Reason (shown to others)</span><input name="because" maxlength="256" /></label><//>`)}
    ${may("operate") && schedule.ahead_until && !schedule.paused && html`<${Action} label="Reset" done=${reload} act=${() => post(`${path}/reset`)}
      question=${html`<p>A clock was wrong, and ${name} fired ahead of time. If the clocks are right again, it continues from now. Times that already have a job do not fire again.</p>`} />`}
    ${may("submit") && html`<${Action} label="Trigger now" done=${(/** @type {import("../wire.js").JobResponse} */ job) => {
      setMade(job.id);
      reload();
    }} act=${(/** @type {FormData} */ form) => post(`${path}/trigger`, form.get("overlap") ? { overlap: form.get("overlap") } : {})}
      question=${html`<p>${name} makes a job now, even if it is paused. This does not change its fire times and counts.</p>`}>
      <label class="field"><span>If an earlier job has not ended</span><select name="overlap">
        <option value="">as the schedule defines (${schedule.overlap})</option><option value="allow">run both</option><option value="skip">refuse</option><option value="buffer_one">run after it</option><option value="cancel_running">cancel it first</option>
      </select></label><//>`}
    ${may("operate") && html`<${Action} label="Delete" danger done=${gone} act=${() => request("DELETE", path, { headers: { "if-match": tagOf(schedule) } })}
      question=${html`<p>This deletes ${name} and its counts. Its jobs go on.</p>`} />`}
    ${made && html`<span role="status">Created <${JobLink} id=${made} /></span>`}
  </div>`;
}
