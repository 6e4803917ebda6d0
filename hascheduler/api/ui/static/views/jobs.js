// Jobs: found by one search line, counted by state, failed ones grouped by error, and changed one by one or together.
import { html, useState } from "../html.js";
import { may, ofAll, post, segment } from "../api.js";
import { now, useData } from "../data.js";
import { counted, number, plain, shortTime, span } from "../format.js";
import { Action, Failure, Field, JobLink, Link, Menu, Moment, Pages, State, Tabs, When, loaded, table } from "../parts/basic.js";
import { Bulk, BulkAction, useSelection } from "../parts/bulk.js";
import { JsonField, readJson } from "../parts/edit.js";
import { Find, filters } from "../parts/filters.js";
import { go, place, to } from "../router.js";

/** The tabs: each state in the words of people. @type {[string, Wire.JobState][]} */
const TABS = [["Waiting", "pending"], ["Dispatched", "dispatched"], ["Running", "running"], ["Failed", "failed"], ["Succeeded", "succeeded"], ["Cancelled", "cancelled"]];
export const ENDED = new Set(["succeeded", "failed", "cancelled"]);
/** @type {import("../parts/filters.js").Field[]} */
const FIELDS = [
  { name: "error" }, { name: "definition" }, { name: "schedule" }, { name: "target" }, { name: "tenant" }, { name: "batch" }, { name: "label", kind: "many" },
  { name: "id", label: "id begins with" }, { name: "failed_since", label: "failed since", kind: "instant" }, { name: "since", label: "submitted since", kind: "instant" }, { name: "until", label: "submitted until", kind: "instant" },
  { name: "unschedulable", label: "no processor can run it", values: ["true"] }, { name: "state", hidden: true },
];
const PAGE = 50;
/** What an id begins with says how the job was made. */
const OF_ID = /^(job|fire|backfill|trigger):/;

export default function Jobs() {
  const filter = filters(FIELDS);
  const asked = useData("/v1/jobs", { ...filter, after: place.value.query.get("after"), limit: PAGE });
  const { state, ...rest } = filter;
  const sums = useData("/v1/jobs:counts", rest, { everyMs: 5_000 });
  const counts = sums.data;
  const total = (/** @type {Wire.JobState} */ each) => counts && (counts.at_least.includes(each) ? `${number(counts[each])}+` : counts[each]);
  const tabs = TABS.filter(([, each]) => each !== "dispatched" || state === each || counts?.dispatched).map(([name, each]) => ({ name, state: each, query: { state: each }, count: total(each) }));
  const given = { filter, counts, total: state ? total(state) : null, reload: () => [asked, sums].forEach((each) => each.reload()) };
  return html`<div class="top"><h1>Jobs</h1>${may("submit") && html`<${Submit} />`}</div>
    <div class="sec">
      <${Find} label="Find jobs" placeholder="Id or target, or a filter such as error: or definition:" fields=${FIELDS} bare=${(/** @type {string} */ text) => (OF_ID.test(text) ? { id: text } : text.startsWith("batch:") ? { batch: text } : { target: text })} />
      <${Tabs} label="By state" tabs=${[{ name: "All", query: { state: "" } }, ...tabs]} />
      <${Failure} error=${asked.error ? null : sums.error} />
    </div>
    ${state === "failed" && html`<${Errors} filter=${rest} reload=${given.reload} />`}
    <section class="sec">${state === "failed" && html`<h2>Jobs <small>newest first</small></h2>`}
      ${loaded(asked, (page) => html`<${Rows} page=${page} ...${given} />`)}</section>`;
}

/** What people call a job: its target if it has one, else the schedule and its time, else the definition. @param {Wire.JobSummary} job */
export function jobName(job) {
  if (job.target !== job.id && !(job.schedule && job.target === job.schedule)) return job.target;
  return job.schedule && job.nominal_at ? `${job.schedule}, ${shortTime(job.nominal_at)}` : job.definition;
}

/** @param {{page: Wire.JobPage, filter: Record<string, any>, counts: Wire.JobCountsResponse | null, total: number | string | null, reload: () => void}} props */
function Rows({ page, filter, counts, total, reload }) {
  const selection = useSelection(page.items);
  const acts = may("submit") || may("operate");
  return html`${table({
      label: "Jobs",
      items: page.items,
      none: page.next ? "Few of many jobs match; the next page goes on." : html`No job matches. ${may("submit") && html`Submit one above, or run <code>hascheduler job submit log --payload '{"message": "hello"}'</code>`}`,
      nameOf: jobName,
      selection: acts ? selection : null,
      menu: acts && ((job) => html`<${JobMenu} job=${job} reload=${reload} />`),
      columns: [
        { head: "Job", row: true, show: (job) => html`<${JobLink} id=${job.id}>${plain(jobName(job), 80)}<//><small>${jobName(job) !== job.definition && html`<bdi>${plain(job.definition, 60)}</bdi> · `}<bdi class="m">${plain(job.id, 80)}</bdi></small>` },
        { head: "State", cell: "full", show: (job) => html`<${JobState} job=${job} />` },
        { head: ofAll.value ? "Tenant, lane" : "Lane", cell: "drop", show: (job) => (ofAll.value ? html`${plain(job.tenant, 40)}<small>${plain(job.lane, 40)}</small>` : plain(job.lane, 40)) },
        { head: "Submitted", cell: "n drop r", show: (job) => html`<${Moment} at=${job.submitted_at} />` },
        { head: "Took", cell: "n drop r", show: took },
      ],
    })}
    <${Bulk} selection=${selection} noun="job" total=${total}><${BulkActs} filter=${filter} counts=${counts} selection=${selection} reload=${reload} jobs=${page.items} /><//>
    <${Pages} page=${page} total=${total} />`;
}

/** Only what can do something for a selected job.
 * @param {{filter: Record<string, any>, counts: Wire.JobCountsResponse | null, selection: import("../parts/bulk.js").Selection, reload: () => void, jobs: Wire.JobSummary[]}} props */
function BulkActs({ filter, counts, selection, reload, jobs }) {
  /** How many of all that match, or of the selected rows, are in a state. @param {Wire.JobState} state */
  const count = (state) => (selection.all ? (filter.state && filter.state !== state ? 0 : counts?.[state]) : jobs.filter((job) => selection.has(job.id) && job.state === state).length);
  const has = (/** @type {Wire.JobState[]} */ ...some) => some.some(count);
  const shared = { noun: "job", filter, selection, reload };
  return html`${may("operate") && (has("failed") || ((!selection.all || filter.state === "cancelled") && has("cancelled"))) && html`<${BulkAction} ...${shared} path="/v1/jobs:retry" verb="Retry" words="They run again, with all their tries." />`}
    ${may("submit") && has("pending", "dispatched", "running") && html`<${BulkAction} ...${shared} path="/v1/jobs:cancel" verb="Cancel" danger words="Waiting jobs are cancelled, running ones are asked to stop." />`}
    ${may("operate") && has("pending") && html`<${BulkAction} ...${shared} path="/v1/jobs:reprioritize" verb="Reprioritize" words="Waiting jobs get this priority." priority />`}
    ${may("operate") && selection.all && has("succeeded", "failed", "cancelled") && html`<${BulkAction} ...${shared} path="/v1/jobs:delete" verb="Delete" danger words="Ended jobs are deleted, with their results and errors." />`}
    ${!selection.all && !has("pending", "dispatched", "running", "failed", "cancelled") && html`<span class="q">Jobs that succeeded can't be retried or cancelled.</span>`}`;
}

/** @param {{job: Wire.JobSummary}} props */
function JobState({ job }) {
  const tries = job.tries > 1 || job.state === "failed" ? `after ${counted(job.tries, "try", "tries")}` : "";
  return html`<${State} state=${job.state} /> <span class="q n">${job.cancel_requested_at && !ENDED.has(job.state) ? "asked to stop" : tries}</span>
    ${job.unschedulable && html` <${State} state="missed" word="no processor can run it" />`}
    ${job.error ? html`<small><bdi>${plain(job.error.split("\n")[0], 160)}</bdi></small>` : job.progress && html`<small>${job.progress.percent === null ? "" : `${Math.round(job.progress.percent)} % `}<bdi>${plain(job.progress.text, 120)}</bdi></small>`}`;
}

/** @param {Wire.JobSummary} job */
function took(job) {
  if (!job.started_at) return "–";
  return span(Math.max(0, (job.finished_at ? Date.parse(job.finished_at) : now.value) - Date.parse(job.started_at)));
}

/** What can be done with one job, as entries of a menu or as buttons. @param {{job: Wire.JobSummary, reload: () => void}} props */
export function JobActions({ job, reload }) {
  const path = `/v1/jobs/${segment(job.id)}`;
  return html`${may("operate") && (job.state === "failed" || job.state === "cancelled") && html`<${Action} label="Retry…" act=${(/** @type {FormData} */ form) => post(`${path}/retry`, { with_dependents: form.get("with_dependents") === "on" })} done=${reload} said="The job waits to run again."
      question=${html`<p>The job runs again, with all its tries and without a deadline.</p>`}><label><input type="checkbox" name="with_dependents" /> Also retry jobs that failed because they waited for this one</label><//>`}
    ${may("operate") && job.state === "pending" && html`<${Action} label="Reprioritize…" act=${(/** @type {FormData} */ form) => post(`${path}/reprioritize`, { priority: Number(form.get("priority")) })} done=${reload} said="The job has its new priority."
      question=${html`<p>Its priority is ${number(job.priority)}; 10 is the most urgent.</p>`}><${Field} label="Priority" type="number" name="priority" min="0" max="10" value=${job.priority} required /><//>`}
    ${may("submit") && !ENDED.has(job.state) && html`<${Action} label="Cancel the job…" danger act=${() => post(`${path}/cancel`)} done=${reload}
      question=${html`<p>${job.state === "pending" ? "The job is waiting, and will not run." : "A processor has the job. It is asked to stop; if it finishes first, its result counts."}</p>`} />`}`;
}

/** @param {{job: Wire.JobSummary, reload: () => void}} props */
const JobMenu = ({ job, reload }) => html`<${Menu} name=${`Actions for ${jobName(job)}`}><${JobActions} job=${job} reload=${reload} />
  <${Link} to="job" query=${{ id: job.id }}>Its tries<//>
  <${Link} to="jobs" query=${{ definition: job.definition }}>All of ${plain(job.definition, 40)}<//>
  ${job.schedule && html`<${Link} to="schedule" query=${{ name: job.schedule }}>Its schedule<//>`}
  ${job.batch && html`<${Link} to="jobs" query=${{ batch: job.batch }}>Its batch<//>`}<//>`;

/** The newest failed jobs in groups of one error, each with a retry of exactly its jobs. @param {{filter: Record<string, any>, reload: () => void}} props */
function Errors({ filter, reload }) {
  const { unschedulable, ...which } = filter;
  const asked = useData("/v1/jobs:errors", which, { everyMs: 10_000 });
  const [open, setOpen] = useState("");
  const page = asked.data;
  if (page && !page.groups.length) return null;
  const again = () => [asked.reload, reload].forEach((each) => each());
  return html`<section class="sec"><h2>By error <small>${page && `${counted(page.examined, "job")}, ${counted(page.groups.length + page.others.groups, "error")}${page.complete ? "" : "; there are more jobs"}`}</small></h2>
    ${loaded(asked, ({ groups, others }) => html`${table({ label: "Failed jobs by error", items: groups.map((group) => ({ ...group, id: group.job })), columns: [
      { head: "Jobs", cell: "r b n big end", show: (group) => number(group.count) },
      { head: "Error", row: true, cell: "first", show: ({ job, fault, error }) => html`<button type="button" class="bare bad" aria-expanded=${open === job} onClick=${() => setOpen(open === job ? "" : job)}><bdi>${plain(fault, 200)}</bdi></button>
        ${open === job && html`<pre tabindex="0">${plain(error)}</pre><small>An example: <${JobLink} id=${job} /></small>`}` },
      { head: "Definition", cell: "full", show: ({ definition }) => html`<${Link} to="jobs" query=${{ state: "failed", definition }}>${plain(definition, 60)}<//>` },
      { head: "Last", cell: "n q drop", show: (group) => html`<${When} at=${group.last_at} /><small>first ${shortTime(group.first_at)}</small>` },
      may("operate") && { head: "Retry", hidden: true, cell: "r full", show: (group) => html`<${BulkAction} path="/v1/jobs:retry" label=${`Retry ${number(group.count)}…`} verb="Retry" noun="job" which=${group.filter} reload=${again} words="The failed jobs of this error run again, with all their tries." />` },
    ] })}${others.count > 0 && html`<p class="q">And ${counted(others.count, "failed job")} with ${counted(others.groups, "other error")}.</p>`}`)}</section>`;
}

/** A job as a form: a definition and a payload. */
function Submit() {
  return html`<${Action} label="Submit a job…" confirm="Submit" question=${html`<p>A job of a definition that a processor runs.</p>`}
    act=${(/** @type {FormData} */ form) => post("/v1/jobs", { definition: form.get("definition"), payload: readJson(String(form.get("payload")) || "null"), ...(form.get("target") ? { target: form.get("target") } : {}) })}
    done=${(/** @type {{id: string}} */ made) => go(to("job", { id: made.id }))}>
    <${Field} label="Definition" name="definition" required maxlength="128" autocomplete="off" />
    <${Field} label="Target (what the job works on; may be empty)" name="target" maxlength="256" autocomplete="off" />
    <${JsonField} label="Payload (JSON)" name="payload" first=${'{"message": "hello"}'} /><//>`;
}
