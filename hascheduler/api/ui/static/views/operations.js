// Operations: what was asked of all that match, how far it has come, and a way to stop it.
import { html } from "../html.js";
import { post, segment } from "../api.js";
import { counted, number, plain, span } from "../format.js";
import { Action } from "../parts/actions.js";
import { Empty, Link, Loaded, Pages, State, When } from "../parts/basic.js";
import { useData } from "../query.js";
import { place } from "../router.js";
import { may } from "../session.js";

const WORDS = {
  cancel_jobs: "Cancel jobs",
  retry_jobs: "Retry jobs",
  reprioritize_jobs: "Reprioritize jobs",
  pause_schedules: "Pause schedules",
  resume_schedules: "Resume schedules",
  reset_schedules: "Reset schedules",
  trigger_schedules: "Trigger schedules",
};

/** @param {string} action */
const words = (action) => /** @type {any} */ (WORDS)[action] || action;

/** @param {any} filter */
export function filterText(filter) {
  const parts = Object.entries(filter || {}).filter(([, value]) => value && (typeof value !== "object" || Object.keys(value).length));
  return parts.map(([name, value]) => `${name}: ${typeof value === "object" ? Object.entries(value).map(([key, each]) => `${key}=${each}`).join(" ") : value}`).join(", ");
}

export default function Operations() {
  const id = place.value.query.get("id");
  return id ? html`<${One} id=${id} />` : html`<${All} />`;
}

function All() {
  const asked = useData("/v1/operations", { after: place.value.query.get("after"), limit: 50 });
  const page = asked.data;
  return html`<h1>Operations</h1><p class="dim">What was asked of all jobs or schedules that match, as it is carried out in the background.</p>
    <${Loaded} of=${asked}>${page && (page.items.length ? html`<div class="scroll" tabindex="0" role="region" aria-label="Operations"><table>
      <thead><tr><th scope="col">What</th><th scope="col">Which</th><th scope="col">State</th><th scope="col">Changed</th><th scope="col">By</th><th scope="col">Began</th><th scope="col">Took</th></tr></thead>
      <tbody>${page.items.map((/** @type {any} */ each) => html`<tr key=${each.id}><th scope="row"><${Link} to="operations" query=${{ id: each.id }}>${words(each.action)}<//></th>
        <td class="clip"><bdi>${plain(filterText(each.filter), 200)}</bdi></td><td><${State} state=${each.state} /></td>
        <td class="number">${number(each.changed)} of ${number(each.matched)}${each.exact ? "" : "+"}</td><td>${plain(each.by, 60)}</td><td><${When} at=${each.started_at} /></td>
        <td class="number">${each.ended_at ? span(Date.parse(each.ended_at) - Date.parse(each.started_at)) : "–"}</td></tr>`)}</tbody></table></div><${Pages} page=${page} />`
      : html`<${Empty}>None in the last days. <a href="/ui/jobs">Jobs</a> and <a href="/ui/schedules">Schedules</a> have buttons for all that match.<//>`)}<//>`;
}

/** @param {{id: string}} props */
function One({ id }) {
  const asked = useData(`/v1/operations/${segment(id)}`, undefined, { everyMs: 1_000 });
  const found = asked.data;
  return html`<p class="trail"><a href="/ui/operations">Operations</a></p><h1>${found ? words(found.action) : "Operation"}</h1>
    <${Loaded} of=${asked}>${found && html`
      <p><${State} state=${found.state} /> <bdi>${plain(filterText(found.filter), 400)}</bdi></p>
      <p><progress max=${Math.max(1, found.matched)} value=${Math.min(found.matched, done(found))} aria-label="How far it has come"></progress>
        <strong>${number(found.changed)}</strong> of ${number(found.matched)}${found.exact ? "" : "+"} changed${found.asked_to_stop ? `, ${counted(found.asked_to_stop, "running job")} asked to stop` : ""}${found.refused ? `, ${number(found.refused)} refused` : ""}</p>
      ${found.error && html`<p class="bad" role="alert">${plain(found.error)}</p>`}
      <dl class="facts"><dt>By</dt><dd>${plain(found.by, 80)}</dd><dt>Began</dt><dd><${When} at=${found.started_at} /></dd>${found.ended_at && html`<dt>Ended</dt><dd><${When} at=${found.ended_at} />, after ${span(Date.parse(found.ended_at) - Date.parse(found.started_at))}</dd>`}</dl>
      ${found.state === "running" && may("submit") && html`<${Action} label="Stop" danger act=${() => post(`/v1/operations/${segment(id)}/stop`)} done=${asked.reload}
        question=${html`<p>What has been changed stays changed; the rest stays as it is.</p>`} />`}`}<//>`;
}

/** @param {any} operation */
const done = (operation) => operation.changed + (operation.asked_to_stop || 0) + (operation.refused || 0);
