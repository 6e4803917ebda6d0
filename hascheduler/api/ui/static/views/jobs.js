// Jobs: filtered, counted by state, grouped by error, and changed together.
import { html, useState } from "../html.js";
import { counted, number, plain, span } from "../format.js";
import { picture } from "../live.js";
import { BulkAction } from "../parts/bulk.js";
import { Empty, Failure, JobLink, Labels, Link, Loaded, Pages, State, Unreadable, When, sign } from "../parts/basic.js";
import { ChoiceFilter, InstantFilter, LabelFilter, TextFilter, filters } from "../parts/filters.js";
import { useData } from "../query.js";
import { place, setQuery } from "../router.js";
import { may, ofAll } from "../session.js";

/** @type {import("../wire.js").JobState[]} */
const STATES = ["pending", "dispatched", "running", "succeeded", "failed", "cancelled"];
const FILTERS = ["state", "definition", "schedule", "tenant", "target", "batch", "id", "since", "until", "unschedulable"];
const PAGE = 50;

export default function Jobs() {
  const filter = filters(FILTERS, ["label"]);
  const grouped = place.value.query.get("by") === "error";
  /** @type {import("../query.js").Asked<import("../wire.js").JobPage>} */
  const asked = useData(grouped ? null : "/v1/jobs", { ...filter, after: place.value.query.get("after"), limit: PAGE });
  return html`<h1>Jobs</h1>
    <${Counts} filter=${filter} />
    <section class="filters" aria-label="Filters">
      <${ChoiceFilter} name="state" label="State" values=${STATES} />
      <${TextFilter} name="definition" label="Definition" />
      <${TextFilter} name="schedule" label="Schedule" />
      <${TextFilter} name="id" label="Id begins with" />
      <${TextFilter} name="target" label="Target" />
      ${ofAll.value && html`<${TextFilter} name="tenant" label="Tenant" />`}
      <${LabelFilter} />
      <${InstantFilter} name="since" label="Submitted since" />
      <${InstantFilter} name="until" label="Submitted until" />
    </section>
    <div class="buttons">
      <button type="button" aria-pressed=${grouped} onClick=${() => setQuery({ by: grouped ? "" : "error" })}>Dead letters by error</button>
      ${may("submit") && html`<${BulkAction} path="/v1/jobs:cancel" reload=${asked.reload} filter=${filter} label="Cancel all that match" danger words="Waiting jobs are cancelled, running ones are asked to stop." />`}
      ${may("operate") && html`<${BulkAction} path="/v1/jobs:retry" reload=${asked.reload} filter=${filter} label="Retry all that match" words="Failed jobs run again, with all their tries." />
        <${BulkAction} path="/v1/jobs:reprioritize" reload=${asked.reload} filter=${filter} label="Reprioritize all that match" words="Waiting jobs get this priority." priority />`}
    </div>
    ${grouped ? html`<${Errors} filter=${filter} />` : html`<${Loaded} of=${asked}><${Table} page=${asked.data} onPick=${(/** @type {string} */ label) => setQuery({ label: [...new Set([...filter.label, label])] })} /><${Unreadable} page=${asked.data} /><${Pages} page=${asked.data} /><//>`}`;
}

/** @param {{filter: Record<string, any>}} props */
function Counts({ filter }) {
  const { state, ...rest } = filter;
  /** @type {import("../query.js").Asked<import("../wire.js").JobCountsResponse>} */
  const asked = useData("/v1/jobs:counts", rest, { everyMs: 5_000 });
  const counts = asked.data;
  return html`<${Failure} error=${asked.error} /><div class="facets" role="group" aria-label="Jobs by state">${STATES.map((each) => {
    return html`<button type="button" aria-pressed=${state === each} class=${sign(each)[1]} onClick=${() => setQuery({ state: state === each ? "" : each })}>
      <${State} state=${each} /> <strong>${counts ? `${number(counts[each])}${counts.at_least.includes(each) ? "+" : ""}` : "…"}</strong></button>`;
  })}</div>`;
}

/** @param {{page: import("../wire.js").JobPage, onPick: (label: string) => void}} props */
function Table({ page, onPick }) {
  if (!page.items.length) {
    return html`<${Empty}>${page.next ? "Few of many jobs match; the next page goes on." : html`No job matches. ${may("submit") ? html`Submit one: <code>hascheduler job submit log --payload '{"message": "hello"}'</code>` : ""}`}<//>`;
  }
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Jobs"><table>
    <thead><tr><th scope="col">Job</th><th scope="col">State</th><th scope="col">Definition</th><th scope="col">Target</th>${ofAll.value && html`<th scope="col">Tenant</th>`}<th scope="col">Lane</th><th scope="col">Tries</th><th scope="col">Submitted</th><th scope="col">Took</th><th scope="col">Error or progress</th></tr></thead>
    <tbody>${page.items.map((job) => html`<tr key=${job.id}>
      <th scope="row"><${JobLink} id=${job.id} /> <${Labels} labels=${job.labels} onPick=${onPick} /></th>
      <td><${State} state=${job.state} />${job.unschedulable && html` <${State} state="missed" word="no processor can run it" />`}</td>
      <td>${plain(job.definition, 60)}</td><td><bdi>${plain(job.target, 60)}</bdi></td>
      ${ofAll.value && html`<td>${plain(job.tenant, 40)}</td>`}<td>${plain(job.lane, 40)}</td>
      <td class="number">${number(job.tries)}</td><td><${When} at=${job.submitted_at} /></td>
      <td class="number">${took(job)}</td>
      <td class="clip">${job.error ? html`<bdi class="bad">${plain(job.error, 160)}</bdi>` : job.progress ? html`${job.progress.percent === null ? "" : `${Math.round(job.progress.percent)} % `}<bdi>${plain(job.progress.text, 120)}</bdi>` : ""}</td>
    </tr>`)}</tbody></table></div>`;
}

/** @param {import("../wire.js").JobSummary} job */
function took(job) {
  if (!job.started_at) return "–";
  const end = job.finished_at ? Date.parse(job.finished_at) : picture.value ? Date.parse(picture.value.at) : Date.now();
  return span(Math.max(0, end - Date.parse(job.started_at)));
}

/** @param {{filter: Record<string, any>}} props */
function Errors({ filter }) {
  const { state, unschedulable, ...rest } = filter;
  /** @type {import("../query.js").Asked<import("../wire.js").JobErrorsResponse>} */
  const asked = useData("/v1/jobs:errors", rest, { everyMs: 10_000 });
  const [open, setOpen] = useState(-1);
  const page = asked.data;
  return html`<${Loaded} of=${asked}>${page && (page.groups.length
    ? html`<p class="dim">Among the newest ${counted(page.examined, "failed job")} that match${page.complete ? "" : "; there are more"}.</p>
      <div class="scroll" tabindex="0" role="region" aria-label="Dead letters by error"><table>
        <thead><tr><th scope="col">Jobs</th><th scope="col">Definition</th><th scope="col">Error</th><th scope="col">First</th><th scope="col">Last</th><th scope="col">Example</th></tr></thead>
        <tbody>${page.groups.map((group, row) => html`<tr>
          <td class="number">${number(group.count)}</td>
          <td><${Link} to="jobs" query=${{ state: "failed", definition: group.definition }}>${plain(group.definition, 60)}<//></td>
          <td class="clip"><button type="button" class="bare" aria-expanded=${open === row} onClick=${() => setOpen(open === row ? -1 : row)}><bdi>${plain(group.fault, 200)}</bdi></button>${open === row && html`<pre>${plain(group.error)}</pre>`}</td>
          <td><${When} at=${group.first_at} /></td><td><${When} at=${group.last_at} /></td>
          <td><${JobLink} id=${group.job} /></td></tr>`)}</tbody></table></div>
      ${page.others.count > 0 && html`<p class="dim">And ${counted(page.others.count, "failed job")} with ${counted(page.others.groups, "other error")}.</p>`}`
    : html`<${Empty}>No failed job matches.<//>`)}<//>`;
}
