// Schedule: its next fires, verdicts, jobs and changes; edited with a difference and a dry run.
import { html, useEffect, useState } from "../html.js";
import { post, segment } from "../api.js";
import { counted, number, plain, time } from "../format.js";
import { Action } from "../parts/actions.js";
import { Empty, Failure, JobLink, Labels, Link, Loaded, Pages, State, When } from "../parts/basic.js";
import { patchOf } from "../parts/difference.js";
import { Edit } from "../parts/edit.js";
import { ChoiceFilter, filters } from "../parts/filters.js";
import { Fires } from "../parts/fires.js";
import { Hidden, payloadsAreSecret } from "../parts/hidden.js";
import { ScheduleActions, scheduleState } from "../parts/schedule_actions.js";
import { Trigger, spanWords, zonesOf } from "../parts/trigger.js";
import { MEANINGS, Outcome, Times, VERDICTS, Verdict } from "../parts/verdicts.js";
import { useData } from "../query.js";
import { go, place, to } from "../router.js";
import { may, ofAll } from "../session.js";

const FIRES = 10;
const FIRES_MORE = 50;
const LEDGER_PAGE = 25;
const RUNS = 10;
const HISTORY_PAGE = 50;
const OVERLAPS = {
  allow: "run even if an earlier job has not ended",
  skip: "do not fire while an earlier job has not ended",
  buffer_one: "wait for the earlier job; at most one waits",
  cancel_running: "cancel the earlier job first",
};
const CATCH_UP = { none: "nothing fires", latest: "only the latest fires", all: "all fire" };
/** The fields of a trigger that restrict its times; shown last. */
const NARROWING = new Set(["jitter", "start_at", "end_at", "max_fires", "exclude", "calendars"]);

export default function Schedule() {
  const name = place.value.query.get("name") || "";
  /** @type {import("../query.js").Asked<import("../wire.js").ScheduleResponse>} */
  const asked = useData(name ? `/v1/schedules/${segment(name)}` : null);
  if (!name) return html`<h1>Schedule</h1><${Empty}>The address names no schedule. See the list of <a href="/ui/schedules">schedules</a>.<//>`;
  return html`<p class="trail"><a href="/ui/schedules">Schedules</a></p><h1><bdi class="id">${plain(name, 160)}</bdi></h1>
    <${Loaded} of=${asked}>${asked.data && html`<${Shown} key=${name} schedule=${asked.data} reload=${asked.reload} />`}<//>`;
}

/** @param {{schedule: import("../wire.js").ScheduleResponse, reload: () => void}} props */
function Shown({ schedule, reload }) {
  const path = `/v1/schedules/${segment(schedule.name)}`;
  return html`
    <p><${State} state=${scheduleState(schedule)} />${schedule.paused && html` <span class="dim"><${When} at=${schedule.paused_at} />${schedule.paused_because && html`: <bdi>${plain(schedule.paused_because, 300)}</bdi>`}</span>`} <${Labels} labels=${schedule.labels} /></p>
    <p class="large"><${Trigger} trigger=${schedule.trigger} next=${schedule.next_at} /></p>
    ${schedule.warnings.map((warning) => html`<p class="banner wait">${plain(warning, 400)}</p>`)}
    <div class="buttons">
      ${may("operate") && html`<${Edit} label="Edit" what=${`schedule ${schedule.name}`} path=${path} form=${editable} done=${reload} Preview=${EditPreview}
        hint="Times that are already decided do not change. An interval without an anchor keeps the stored one." />
        <${Backfill} path=${path} name=${schedule.name} />`}
      <${ScheduleActions} schedule=${schedule} reload=${reload} gone=${() => go(to("schedules"))} />
    </div>
    <div class="columns">
      <section><h2>Details</h2><${Facts} schedule=${schedule} /></section>
      <section><h2>Last runs</h2><${Runs} name=${schedule.name} /></section>
    </div>
    <section><h2>Next fires</h2><${Preview} path=${path} rev=${schedule.rev} last=${schedule.last_nominal_at} /></section>
    <${Ledger} path=${path} schedule=${schedule} />
    <section><h2>Jobs of each fire</h2><${Jobs} schedule=${schedule} /></section>
    <section><h2>Changes</h2><${History} schedule=${schedule} path=${path} /></section>`;
}

/** @param {{schedule: import("../wire.js").ScheduleResponse}} props */
function Facts({ schedule }) {
  const zone = zonesOf(schedule.trigger)[0];
  const { misfire } = schedule;
  const instant = (/** @type {string | null} */ at) => at && html`<${When} at=${at} zone=${zone} /> <span class="dim">${time(at, zone)}${zone ? ` ${zone}` : ""}</span>`;
  const facts = [
    ["Next", instant(schedule.next_at) || (schedule.paused ? "after resume" : "never")],
    ["With jitter", schedule.next_due_at !== schedule.next_at && instant(schedule.next_due_at)],
    ["Last decided", instant(schedule.last_nominal_at)],
    ["Ahead until", instant(schedule.ahead_until)],
    ["Overlap", html`<code>${schedule.overlap}</code> ${/** @type {any} */ (OVERLAPS)[schedule.overlap] || ""}`],
    ["Misfire", `later than ${spanWords(misfire.grace)}: ${/** @type {any} */ (CATCH_UP)[misfire.catch_up] || misfire.catch_up}${misfire.catch_up === "all" ? `, ${number(misfire.limit)} at most` : ""}`],
    ["Auto-pause", schedule.pause_after_failures && `after ${counted(schedule.pause_after_failures, "failure")} in a row (now ${number(schedule.failures_in_a_row)})`],
    ["Tenant", ofAll.value && plain(schedule.job.tenant, 80)],
    ["Created", html`<${When} at=${schedule.created_at} />`],
    ["Revision", number(schedule.rev)],
  ];
  return html`<dl class="facts">${facts.filter(([, value]) => value).map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}

/** @param {{name: string}} props */
function Runs({ name }) {
  /** @type {import("../query.js").Asked<import("../wire.js").JobPage>} */
  const asked = useData("/v1/jobs", { schedule: name, limit: RUNS });
  const items = asked.data?.items;
  return html`<${Loaded} of=${asked}>${items && (items.length
    ? html`<ul class="runs">${items.map((job) => html`<li><${State} state=${job.state} /> <${JobLink} id=${job.id} /> <span class="dim"><${When} at=${job.submitted_at} /></span>${job.error && html` <bdi class="bad">${plain(job.error, 120)}</bdi>`}</li>`)}</ul>
      <p><${Link} to="jobs" query=${{ schedule: name }}>All jobs<//></p>`
    : html`<${Empty}>No stored jobs.<//>`)}<//>`;
}

/** Reloaded when the schedule is edited or one of its times is decided.
 * @param {{path: string, rev: number, last: string | null}} props */
function Preview({ path, rev, last }) {
  const [count, setCount] = useState(FIRES);
  /** @type {import("../query.js").Asked<import("../wire.js").PreviewResponse>} */
  const asked = useData(`${path}/preview`, { count }, { everyMs: 0 });
  useEffect(() => {
    if (asked.data) asked.reload();
  }, [rev, last]);
  return html`<${Loaded} of=${asked}>${asked.data && html`<${Fires} preview=${asked.data} />
    ${asked.data.fires.length === FIRES && count === FIRES && html`<button type="button" onClick=${() => setCount(FIRES_MORE)}>Show ${FIRES_MORE}</button>`}`}<//>`;
}

/** @param {{path: string, schedule: import("../wire.js").ScheduleResponse}} props */
function Ledger({ path, schedule }) {
  const filter = filters(["verdict"]);
  /** @type {import("../query.js").Asked<import("../wire.js").VerdictsResponse>} */
  const asked = useData(`${path}/verdicts`, { ...filter, after: place.value.query.get("after"), limit: LEDGER_PAGE });
  const page = asked.data;
  const zone = zonesOf(schedule.trigger)[0];
  return html`<section><h2>Verdicts</h2>
    <ul class="legend">${Object.entries(schedule.counts).filter(([verdict, count]) => count || verdict === "fired").map(([verdict, count]) => html`<li title=${/** @type {any} */ (MEANINGS)[verdict]}><${State} state=${verdict} /> <strong>${number(/** @type {number} */ (count))}</strong></li>`)}
      ${page && page.undecided.count > 0 && html`<li><${State} state="pending" word="undecided" /> <strong>${number(page.undecided.count)}</strong> <span class="dim">since ${time(page.undecided.since, zone)}: ${undecided(page.undecided.because)}</span></li>`}</ul>
    <div class="filters"><${ChoiceFilter} name="verdict" label="Verdict" values=${VERDICTS} /></div>
    <${Loaded} of=${asked}>${page && (page.items.length
      ? html`<div class="scroll" tabindex="0" role="region" aria-label="Verdicts"><table>
        <thead><tr><th scope="col">Nominal time${zone ? ` (${zone})` : ""}</th><th scope="col">Verdict</th><th scope="col">Job or reason</th></tr></thead>
        <tbody>${page.items.map((item) => html`<tr key=${item.nominal_at}><td class="times"><${Times} item=${item} zone=${zone} /></td><td><${Verdict} item=${item} /></td><td class="clip"><${Outcome} item=${item} /></td></tr>`)}</tbody></table></div>`
      : html`<${Empty}>${filter.verdict ? "No stored verdict matches." : "No fire time has been decided yet. Trigger the schedule to run a job now."}<//>`)}
      <${Pages} page=${page} /><//></section>`;
}

/** @param {string | null} because */
const undecided = (because) =>
  because === "paused" ? "decided on resume" : because === "excluded" ? "decided when the window ends" : "the leader is about to decide them";

/** @param {{schedule: import("../wire.js").ScheduleResponse}} props */
function Jobs({ schedule }) {
  /** @type {(import("../wire.js").TemplateResponse & Partial<import("../wire.js").GraphJobResponse>)[]} */
  const jobs = schedule.jobs || [schedule.job];
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Jobs of a fire"><table>
    <thead><tr>${schedule.jobs && html`<th scope="col">Ref</th><th scope="col">After</th>`}<th scope="col">Definition</th><th scope="col">Target</th><th scope="col">Lane</th><th scope="col">Priority</th><th scope="col">Mode</th><th scope="col">Needs</th></tr></thead>
    <tbody>${jobs.map((job) => html`<tr>${schedule.jobs && html`<th scope="row"><bdi>${plain(job.ref, 80)}</bdi></th><td>${plain((job.depends_on || []).join(", ") || "–", 200)}</td>`}
      <td><${Link} to="jobs" query=${{ definition: job.definition }}>${plain(job.definition, 80)}<//></td><td><bdi>${plain(job.target, 120)}</bdi></td><td>${plain(job.lane, 80)}</td><td class="number">${number(job.priority)}</td><td>${plain(job.mode, 20)}</td>
      <td>${job.resources ? Object.entries(job.resources).map(([name, units]) => `${name} ${units}`).join(", ") : html`<span class="dim">from its definition</span>`}</td></tr>`)}</tbody></table></div>
    <${Hidden} title=${schedule.jobs ? "Payloads" : "Payload"} value=${schedule.jobs ? Object.fromEntries(schedule.jobs.map((job) => [job.ref, job.payload])) : schedule.job.payload} />`;
}

/** The fields of a schedule that may be sent back. Payloads that are never shown stay as stored. @param {import("../wire.js").ScheduleResponse} shown */
function editable(shown) {
  const { trigger, misfire, overlap, pause_after_failures, job, jobs, labels } = shown;
  const lean = (/** @type {any} */ each) => {
    const { target, fairness_key, payload, ...rest } = each;
    return {
      ...rest,
      ...(target === shown.name ? {} : { target }),
      ...(fairness_key === each.tenant ? {} : { fairness_key }),
      ...(payloadsAreSecret() ? {} : { payload }),
    };
  };
  const ordered = Object.fromEntries(Object.entries(trigger).sort(([one], [other]) => Number(NARROWING.has(one)) - Number(NARROWING.has(other))));
  return { trigger: ordered, misfire, overlap, pause_after_failures, ...(jobs ? { jobs: jobs.map(lean) } : { job: lean(job) }), labels };
}

/** What an edit would change about the next fires. @param {{path: string, base: any, mine: any}} props */
function EditPreview({ path, base, mine }) {
  const [preview, show] = useState(/** @type {import("../wire.js").EditPreviewResponse | null} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  useEffect(() => {
    post(`${path}/preview?count=${FIRES}`, patchOf(base, mine)).then(show, setError);
  }, []);
  return html`<h3>Effect on the next fires</h3><${Failure} error=${error} />
    ${!error && !preview && html`<p class="empty" role="status">Loading…</p>`}
    ${preview && html`<p>${counted(preview.added.length, "fire")} added and ${number(preview.removed.length)} removed, until ${time(preview.until)}.</p><${Fires} preview=${preview} />`}`;
}

/** @param {{path: string, name: string}} props */
function Backfill({ path, name }) {
  const [found, setFound] = useState(/** @type {import("../wire.js").BackfillResponse | null} */ (null));
  const [made, setMade] = useState(/** @type {import("../wire.js").BackfillResponse | null} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  const body = (/** @type {FormData} */ form) => ({
    from: new Date(String(form.get("from"))).toISOString(),
    to: new Date(String(form.get("to"))).toISOString(),
    overlap: form.get("overlap"),
  });
  const count = async (/** @type {any} */ event) => {
    const form = event.target.form;
    if (!form.reportValidity()) return;
    setError(null);
    setFound(null);
    try {
      setFound(await post(`${path}/backfill`, { ...body(new FormData(form)), dry_run: true }));
    } catch (failed) {
      setError(failed);
    }
  };
  return html`<${Action} label="Backfill" confirm="Create the jobs" onOpen=${() => setFound(null)} done=${setMade}
      act=${(/** @type {FormData} */ form) => post(`${path}/backfill`, body(form))}
      question=${html`<p>Creates a job for each past time of <bdi class="id">${plain(name, 80)}</bdi> that has none, using the current trigger; at most 1,000 jobs per request.</p>`}>
      <label class="field"><span>From (your clock)</span><input type="datetime-local" name="from" step="1" required /></label>
      <label class="field"><span>Through</span><input type="datetime-local" name="to" step="1" required /></label>
      <label class="field"><span>Concurrency</span><select name="overlap"><option value="buffer_one">one after the other</option><option value="allow">all at once</option></select></label>
      <div class="buttons"><button type="button" onClick=${count}>Count first</button>
        <span role="status">${found && `${counted(found.count, "time")}: ${number(found.created)} would get a job, ${number(found.existing)} already have one${found.undecided ? `, ${number(found.undecided)} are not decided yet` : ""}.`}</span></div>
      <${Failure} error=${error} />
    <//>
    ${made && html`<span role="status">Created ${counted(made.created, "job")}.</span>`}`;
}

const ACTS = { PUT: "edited", PATCH: "edited", DELETE: "deleted", pause: "paused", resume: "resumed", reset: "reset", trigger: "triggered now", backfill: "backfilled" };

/** What a request did, in words. @param {import("../wire.js").AuditResponse} record */
function act(record) {
  const last = record.path.slice(record.path.lastIndexOf("/") + 1);
  return /** @type {any} */ (ACTS)[record.method === "POST" ? last : record.method] || plain(`${record.method} ${record.path}`, 200);
}

/** A page of the audit log, the newest first.
 * @param {{schedule: import("../wire.js").ScheduleResponse, path: string}} props */
function History({ schedule, path }) {
  const [after, goOn] = useState("");
  /** @type {import("../query.js").Asked<import("../wire.js").AuditPage>} */
  const asked = useData(may("administer") ? "/v1/audit" : null, { path, after, limit: HISTORY_PAGE }, { everyMs: after ? 0 : 10_000 });
  if (!may("administer")) return html`<${Empty}>Only an admin sees changes, which come from the audit log.<//>`;
  // Paths of other schedules may begin with this one's.
  const items = asked.data?.items.filter((each) => each.path === path || each.path.startsWith(`${path}/`));
  return html`<${Loaded} of=${asked}>${items && (items.length
    ? html`<div class="scroll" tabindex="0" role="region" aria-label="Changes"><table>
      <thead><tr><th scope="col">When</th><th scope="col">Who</th><th scope="col">What</th><th scope="col">Why</th><th scope="col">From</th></tr></thead>
      <tbody>${items.map((each) => html`<tr key=${each.id}><td><${When} at=${each.at} /></td><td><bdi>${plain(each.who, 80)}</bdi> <span class="dim">${plain(each.role || "", 20)}</span></td>
        <td>${each.status < 400 ? act(each) : html`<${State} state="cancelled" word=${`${act(each)}: refused (${each.status})`} />`}</td>
        <td><bdi>${plain(each.because || "", 200)}</bdi></td><td class="dim">${plain(each.address, 60)}</td></tr>`)}</tbody></table></div>`
    : html`<${Empty}>${asked.data?.next ? "No changes of this schedule on this page; older pages may have some." : after ? "No older changes in the audit log." : "No changes in the audit log."}<//>`)}
    ${(after || asked.data?.next) && html`<nav class="pages" aria-label="Pages of changes">
      ${after && html`<button type="button" onClick=${() => goOn("")}>Newest changes</button>`}
      ${asked.data?.next && html`<button type="button" onClick=${() => goOn(asked.data?.next || "")}>Older changes</button>`}</nav>`}
    <p class="dim">Created <${When} at=${schedule.created_at} />.</p><//>`;
}
