// Job: its attempts, why it waits, its dependencies, payload and result.
import { html } from "../html.js";
import { post, segment } from "../api.js";
import { counted, number, plain, span, time } from "../format.js";
import { now } from "../live.js";
import { Action } from "../parts/actions.js";
import { Empty, JobLink, Labels, Link, Loaded, ScheduleLink, State, When } from "../parts/basic.js";
import { Hidden } from "../parts/hidden.js";
import { useData } from "../query.js";
import { place } from "../router.js";
import { may } from "../session.js";

const ENDED = new Set(["succeeded", "failed", "cancelled"]);

export default function Job() {
  const id = place.value.query.get("id") || "";
  /** @type {import("../query.js").Asked<import("../wire.js").JobResponse>} */
  const asked = useData(id ? `/v1/jobs/${segment(id)}` : null, undefined, { everyMs: 1_500 });
  if (!id) return html`<h1>Job</h1><${Empty}>The address names no job. See the list of <a href="/ui/jobs">jobs</a>.<//>`;
  const job = asked.data;
  return html`<p class="trail"><a href="/ui/jobs">Jobs</a></p><h1><bdi class="id">${plain(id, 160)}</bdi></h1>
    <${Loaded} of=${asked}>${job && html`<${Shown} job=${job} reload=${asked.reload} />`}<//>`;
}

/** @param {{job: import("../wire.js").JobResponse, reload: () => void}} props */
function Shown({ job, reload }) {
  const path = `/v1/jobs/${segment(job.id)}`;
  return html`
    <p><${State} state=${job.state} /> ${job.cancel_requested_at && !ENDED.has(job.state) && html`<${State} state="draining" word="asked to stop" />`} <${Labels} labels=${job.labels} /></p>
    <div class="buttons">
      ${may("submit") && !ENDED.has(job.state) && html`<${Action} label="Cancel" danger act=${() => post(`${path}/cancel`)} done=${reload}
        question=${html`<p>${job.state === "pending" ? "The job is waiting, and will not run." : "A processor has the job. It is asked to stop; if it finishes first, its result counts."}</p>`} />`}
      ${may("operate") && (job.state === "failed" || job.state === "cancelled") && html`<${Action} label="Retry" act=${(/** @type {FormData} */ form) => post(`${path}/retry`, { with_dependents: form.get("with_dependents") === "on" })} done=${reload}
        question=${html`<p>The job runs again, with all its tries and without a deadline.</p>`}><label><input type="checkbox" name="with_dependents" /> Also retry jobs that failed because they waited for this one</label><//>`}
      ${may("operate") && job.state === "pending" && html`<${Action} label="Reprioritize" act=${(/** @type {FormData} */ form) => post(`${path}/reprioritize`, { priority: Number(form.get("priority")) })} done=${reload}
        question=${html`<p>Its priority is ${number(job.priority)}; 10 is the most urgent.</p>`}><label class="field"><span>Priority</span><input type="number" name="priority" min="0" max="10" value=${job.priority} required /></label><//>`}
    </div>
    ${job.error && html`<section><h2>Error</h2><pre class="bad">${plain(job.error)}</pre></section>`}
    ${job.state === "pending" && html`<${Why} path=${path} />`}
    ${job.progress && html`<p>${job.progress.percent !== null && html`<progress max="100" value=${job.progress.percent}></progress> ${Math.round(job.progress.percent)} % `}<bdi>${plain(job.progress.text)}</bdi> <span class="dim"><${When} at=${job.progress.at} /></span></p>`}
    <section><h2>Attempts</h2><${Life} job=${job} /></section>
    <div class="columns">
      <section><h2>Details</h2><${Facts} job=${job} /></section>
      ${(job.depends_on.length > 0) && html`<section><h2>Waits for</h2><${Dependencies} job=${job} /></section>`}
    </div>
    <${Hidden} title="Payload" value=${job.payload} />
    ${job.state === "succeeded" && html`<${Hidden} title="Result" value=${job.result} />`}`;
}

/** Why the job waits: each rule, with numbers. @param {{path: string}} props */
function Why({ path }) {
  /** @type {import("../query.js").Asked<import("../wire.js").WhyResponse>} */
  const asked = useData(`${path}/why`, undefined, { everyMs: 2_000 });
  const why = asked.data;
  return html`<section aria-live="polite"><h2>Why it waits</h2><${Loaded} of=${asked}>${why && html`<p><strong>${plain(why.summary)}</strong></p>
    ${why.blocks.length > 0 && html`<ul class="rules">${why.blocks.map((/** @type {import("../wire.js").BlockResponse} */ block) => html`<li><code>${block.rule}</code> ${plain(block.because)}; ends ${plain(block.unblocked_by)}${block.until ? html` (<${When} at=${block.until} />)` : ""}</li>`)}</ul>`}
    ${why.standing && html`<p>${why.standing.ahead ? `${why.standing.exact ? "" : "At least "}${counted(why.standing.ahead, "job")} ${why.standing.ahead === 1 ? "goes" : "go"} before it; next is ` : "It goes next"}${why.standing.ahead ? html`<${JobLink} id=${why.standing.first} />` : ""}.</p>
      <div class="scroll" tabindex="0" role="region" aria-label="What orders the queue"><table><thead><tr><th scope="col">Compared</th><th scope="col">This job</th><th scope="col">The next one</th></tr></thead>
      <tbody>${why.standing.criteria.map((each) => html`<tr class=${each.criterion === why.standing?.deciding ? "decides" : ""}><th scope="row">${each.criterion}${each.criterion === why.standing?.deciding ? " (decides)" : ""}</th><td class="number">${plain(each.value, 80)}</td><td class="number">${plain(each.first, 80)}</td></tr>`)}</tbody></table></div>`}`}<//></section>`;
}

/** Each attempt as a bar on one axis: grey while dispatched, coloured while running. @param {{job: import("../wire.js").JobResponse}} props */
function Life({ job }) {
  /** @type {(Partial<import("../wire.js").AttemptResponse> & {state: string})[]} */
  const attempts = job.attempts.map((each) => ({ ...each, state: each.outcome }));
  if (job.state === "dispatched" || job.state === "running") {
    attempts.push({ number: job.attempt, processor: job.processor, dispatched_at: job.dispatched_at, started_at: job.started_at, finished_at: null, state: job.state });
  }
  const begin = Date.parse(job.submitted_at);
  const end = job.finished_at ? Date.parse(job.finished_at) : Math.max(now.value, begin + 1);
  const x = (/** @type {string | null | undefined} */ at, /** @type {number} */ other) => (100 * ((at ? Date.parse(at) : other) - begin)) / Math.max(1, end - begin);
  return html`<p class="dim">Submitted ${time(job.submitted_at)}${job.first_started_at ? ` · waited ${span(Date.parse(job.first_started_at) - begin)}` : ""}${job.finished_at ? ` · ended ${time(job.finished_at)}, after ${span(end - begin)}` : ""}${job.retry_at && !ENDED.has(job.state) ? html` · next try <${When} at=${job.retry_at} />` : ""}</p>
    ${attempts.length ? html`<div class="scroll" tabindex="0" role="region" aria-label="Attempts"><table class="life">
      <thead><tr><th scope="col">Attempt</th><th scope="col">Outcome</th><th scope="col">Processor</th><th scope="col">Waited</th><th scope="col">Ran</th><th scope="col" class="wide">When</th></tr></thead>
      <tbody>${attempts.map((each) => {
        const from = x(each.dispatched_at, begin);
        const began = each.started_at ? x(each.started_at, begin) : x(each.finished_at, end);
        const to = x(each.finished_at, end);
        return html`<tr><th scope="row" class="number">${each.number}</th><td><${State} state=${each.state} word=${each.state.replace("_", " ")} /></td>
          <td>${plain(each.processor || "–", 60)}</td>
          <td class="number">${each.started_at && each.dispatched_at ? span(Date.parse(each.started_at) - Date.parse(each.dispatched_at)) : "–"}</td>
          <td class="number">${each.started_at ? span((each.finished_at ? Date.parse(each.finished_at) : end) - Date.parse(each.started_at)) : "–"}</td>
          <td class="wide"><svg class="lifeline" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label=${`from ${time(each.dispatched_at)} to ${time(each.finished_at)}`}><rect class="track" width="100" height="8" /><rect class="off" x=${from} width=${Math.max(0.4, began - from)} height="8" /><rect class=${each.state === "succeeded" ? "good" : each.state === "running" ? "run" : "bad"} x=${began} width=${each.started_at ? Math.max(0.4, to - began) : 0} height="8" /></svg></td></tr>
          ${(each.error || each.traceback) && html`<tr><td></td><td colspan="5"><details><summary><bdi class="bad">${plain(each.error || "traceback", 300)}</bdi></summary>${each.traceback && html`<pre>${plain(each.traceback, 20_000)}</pre>`}</details></td></tr>`}`;
      })}</tbody></table></div>` : html`<${Empty}>No attempt yet.<//>`}`;
}

/** @param {{job: import("../wire.js").JobResponse}} props */
function Facts({ job }) {
  const facts = [
    ["Definition", html`<${Link} to="jobs" query=${{ definition: job.definition }}>${plain(job.definition, 80)}<//>`],
    ["Target", html`<bdi>${plain(job.target, 120)}</bdi>`],
    ["Schedule", job.schedule && html`<${ScheduleLink} name=${job.schedule} />${job.nominal_at ? ` for ${time(job.nominal_at)}` : ""}`],
    ["Tenant", plain(job.tenant, 80)],
    ["Lane", plain(job.lane, 80)],
    ["Priority", number(job.priority)],
    ["Mode", job.mode],
    ["Fairness key", plain(job.fairness_key, 80)],
    ["Resources", job.resources && Object.entries(job.resources).map(([name, units]) => `${name} ${units}`).join(", ")],
    ["Batch", job.batch && html`<${Link} to="jobs" query=${{ batch: job.batch }}>${plain(job.batch, 80)}<//>`],
    ["Not before", job.not_before && html`<${When} at=${job.not_before} />`],
    ["Expires", job.expires_at && html`<${When} at=${job.expires_at} />`],
    ["Failures", job.failures ? number(job.failures) : null],
    ["Losses", job.losses ? number(job.losses) : null],
    ["Revivals", job.revivals ? number(job.revivals) : null],
  ];
  return html`<dl class="facts">${facts.filter(([, value]) => value).map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}

const DEPENDENCIES_SHOWN_MAX = 20;

/** The jobs that this one depends on. @param {{job: import("../wire.js").JobResponse}} props */
function Dependencies({ job }) {
  const shown = job.depends_on.slice(0, DEPENDENCIES_SHOWN_MAX);
  return html`<ul class="graph">${shown.map((/** @type {string} */ id) => html`<${Dependency} id=${id} />`)}</ul>
    <p class="dim">${job.depends_on.length > shown.length ? `and ${number(job.depends_on.length - shown.length)} more; ` : ""}${job.on_dependency_failure === "fail" ? "If one of them fails, so does this job." : "It runs when all have ended, even if some failed."}</p>`;
}

/** @param {{id: string}} props */
function Dependency({ id }) {
  return id.startsWith("batch:")
    ? html`<li><${Link} to="jobs" query=${{ batch: id }}>${plain(id, 80)}<//> <span aria-hidden="true">→</span></li>`
    : html`<${JobDependency} id=${id} />`;
}

/** @param {{id: string}} props */
function JobDependency({ id }) {
  const asked = useData(`/v1/jobs/${segment(id)}`, undefined, { everyMs: 5_000 });
  return html`<li>${asked.data ? html`<${State} state=${asked.data.state} />` : asked.error ? html`<span class="dim">gone</span>` : "…"} <${JobLink} id=${id} /> <span aria-hidden="true">→</span></li>`;
}
