// Schedule: whether it is well, its next fires, verdicts, jobs and changes.
import { html, useEffect, useState } from "../html.js";
import { may, ofAll, segment } from "../api.js";
import { replicaNow, useData } from "../data.js";
import { counted, left, number, plain, shortTime, time } from "../format.js";
import { Empty, Hidden, Labels, Link, Menu, Pages, State, Tabs, When, factList, loaded, table } from "../parts/basic.js";
import { Strip, StripLegend } from "../parts/charts.js";
import { Fires } from "../parts/fires.js";
import { CATCH_UPS, OVERLAPS, isLate, moreActs, scheduleActs, scheduleState } from "../parts/schedule_actions.js";
import { Trigger, zonesOf } from "../parts/trigger.js";
import { Meaning, Outcome, Times, VERDICTS, Verdict } from "../parts/verdicts.js";
import { go, place, to } from "../router.js";
import { changed } from "./now.js";

const FIRES = 5;
const FIRES_MORE = 50;
const LEDGER_PAGE = 20;
const HISTORY_PAGE = 50;
const RECENT_MS = 10_000;
/** When times that are undecided will be. @type {Record<string, string>} */
const UNDECIDED = { paused: "decided on resume", excluded: "decided when the window ends" };


export default function View() {
  const name = place.value.query.get("name") || "";
  const asked = useData(name ? `/v1/schedules/${segment(name)}` : null);
  if (!name) return html`<h1>Schedule</h1><${Empty}>The address names no schedule. See the list of <a href="/ui/schedules">schedules</a>.<//>`;
  const { data: schedule, reload } = asked;
  return html`<div class="top"><div><a class="q" href="/ui/schedules">Schedules</a><h1><bdi>${plain(name, 160)}</bdi></h1></div>
      ${schedule && html`<div key=${name} class="acts">${scheduleActs({ schedule, reload, primary: true })}
        <${Menu} name="More actions">${moreActs({ schedule, reload, gone: () => go(to("schedules")) })}<//></div>`}</div>
    ${loaded(asked, (schedule) => html`<${Shown} key=${name} schedule=${schedule} />`)}`;
}

/** @param {{schedule: Wire.ScheduleResponse}} props */
function Shown({ schedule }) {
  const asked = useData("/v1/schedules:recent", { name: schedule.name }, { everyMs: RECENT_MS });
  const recent = asked.data?.items[0];
  return html`<${Verdicts} schedule=${schedule} error=${recent?.error} />
    <div class="two"><div class="stack">
      ${recent && recent.times.length > 0 && html`<section class="sec"><h2>Last ${number(recent.times.length)} <small>newest at the right</small></h2>
        <${Strip} times=${recent.times.map((time) => ({ outcome: time.outcome, late: isLate(schedule, time) }))} /><${StripLegend} /></section>`}
      <${Ledger} schedule=${schedule} />
      <section class="sec"><h2>${schedule.jobs ? `Jobs of each fire` : "Job of each fire"}</h2><${Jobs} schedule=${schedule} /></section>
      <section class="sec"><h2>Changes</h2><${History} schedule=${schedule} /></section>
    </div><div class="stack">
      <section class="card"><h2>Next fires</h2><${Preview} schedule=${schedule} /></section>
      <section class="card"><h2>Details</h2><${Facts} schedule=${schedule} /></section>
    </div></div>`;
}

/** How it is, in one sentence. @param {{schedule: Wire.ScheduleResponse, error: string | null | undefined}} props */
function Verdicts({ schedule, error }) {
  const { failures_in_a_row: failures, paused_because: because } = schedule;
  const state = failures > 0 ? "failing" : scheduleState(schedule);
  const next = schedule.next_at ? `Next in ${left(schedule.next_at, replicaNow.value)}, ${shortTime(schedule.next_at)}.` : schedule.paused ? "It fires again after it is resumed." : "It never fires again.";
  const words = failures > 0 ? (failures === 1 ? "the last job failed" : `${number(failures)} failures in a row`) : undefined;
  return html`<div class="stack"><div class="says"><${Trigger} trigger=${schedule.trigger} next=${schedule.next_at} /></div>
    <p><${State} state=${state} word=${words} /> ${failures > 0 && schedule.paused && html`<${State} state="paused" /> `}${schedule.paused && html`<span class="q"><${When} at=${schedule.paused_at} />${because && html`: <bdi>“${plain(because, 300)}”</bdi>`}</span> `}${next} <${Labels} labels=${schedule.labels} view="schedules" /></p>
    ${error && failures > 0 && html`<p class="bad"><bdi>${plain(error, 300)}</bdi></p>`}
    ${schedule.warnings.map((warning) => html`<p><span class="s tri warn wrap">${plain(warning, 400)}</span></p>`)}</div>`;
}

/** @param {{schedule: Wire.ScheduleResponse}} props */
function Facts({ schedule }) {
  const zone = zonesOf(schedule.trigger)[0];
  const { misfire } = schedule;
  const instant = (/** @type {string | null} */ at) => at && html`<${When} at=${at} zone=${zone} /> <span class="q">${time(at, zone)}${zone ? ` ${zone}` : ""}</span>`;
  return factList([
    ["With jitter", schedule.next_due_at !== schedule.next_at && instant(schedule.next_due_at)],
    ["Last decided", instant(schedule.last_nominal_at)],
    ["Ahead until", instant(schedule.ahead_until)],
    ["Overlap", html`<code>${schedule.overlap}</code> if the last one still runs: ${OVERLAPS[schedule.overlap]}`],
    ["Misfire", `if later than ${misfire.grace}: ${CATCH_UPS[misfire.catch_up]}${misfire.catch_up === "all" ? `, ${number(misfire.limit)} at most` : ""}`],
    ["Auto-pause", schedule.pause_after_failures && `after ${counted(schedule.pause_after_failures, "failure")} in a row (now ${number(schedule.failures_in_a_row)})`],
    ["On failure", "on_failure" in schedule && schedule.on_failure && `a job of ${plain(schedule.on_failure, 80)} is submitted`],
    ["Tenant", ofAll.value && plain(schedule.job.tenant, 80)],
    ["Created", html`<${When} at=${schedule.created_at} />`],
    ["Revision", number(schedule.rev)],
  ]);
}

/** Reloaded when the schedule is edited or one of its times is decided. @param {{schedule: Wire.ScheduleResponse}} props */
function Preview({ schedule }) {
  const [count, setCount] = useState(FIRES);
  const asked = useData(`/v1/schedules/${segment(schedule.name)}/preview`, { count }, { everyMs: 0 });
  useEffect(() => {
    if (asked.data) asked.reload();
  }, [schedule.rev, schedule.last_nominal_at]);
  return loaded(asked, (preview) => html`<${Fires} preview=${preview} />
    ${preview.fires.length === FIRES && count === FIRES && html`<button type="button" onClick=${() => setCount(FIRES_MORE)}>Show ${FIRES_MORE}</button>`}`);
}

/** @param {{schedule: Wire.ScheduleResponse}} props */
function Ledger({ schedule }) {
  const verdict = place.value.query.get("verdict") || "";
  const asked = useData(`/v1/schedules/${segment(schedule.name)}/verdicts`, { verdict, after: place.value.query.get("after"), limit: LEDGER_PAGE });
  const undecided = asked.data?.undecided;
  const zone = zonesOf(schedule.trigger)[0];
  const counts = /** @type {Record<string, number>} */ (/** @type {unknown} */ (schedule.counts));
  const tabs = VERDICTS.filter((each) => counts[each] || each === verdict).map((each) => ({ name: each, state: each, count: counts[each], query: { verdict: each } }));
  return html`<section class="sec"><div class="top"><h2>Fire times <small>newest first${zone ? `, in ${zone}` : ""}</small></h2><${Link} class="q" to="jobs" query=${{ schedule: schedule.name }}>All its jobs<//></div>
    ${tabs.length > 1 && html`<${Tabs} label="By verdict" tabs=${[{ name: "All", query: { verdict: "" } }, ...tabs]} />`}
    <${Meaning} verdict=${verdict} />
    ${undecided && undecided.count > 0 && html`<p><${State} state="pending" word=${`${number(undecided.count)} undecided`} /> since ${time(undecided.since, zone)}: ${UNDECIDED[undecided.because || ""] || "the leader is about to decide them"}.</p>`}
    ${loaded(asked, (page) => html`${table({
      label: "Fire times",
      items: page.items,
      none: verdict ? "No stored verdict matches." : "No fire time has been decided yet. Run it now to make a job.",
      columns: [
        { head: "Time", row: true, show: (item) => html`<${Times} item=${item} zone=${zone} />` },
        { head: "What came of it", cell: "n end", show: (item) => html`<${Verdict} item=${item} />` },
        { head: "Job or reason", cell: "full", show: (item) => html`<${Outcome} item=${item} />` },
      ],
    })}<${Pages} page=${page} />`)}</section>`;
}

/** @param {{schedule: Wire.ScheduleResponse}} props */
function Jobs({ schedule }) {
  /** @type {(Wire.TemplateResponse & Partial<Wire.GraphJobResponse>)[]} */
  const jobs = schedule.jobs || [schedule.job];
  return html`${table({ label: "Jobs of a fire", items: jobs, columns: [
      schedule.jobs && { head: "Ref", row: true, show: (job) => html`<bdi>${plain(job.ref, 80)}</bdi>${job.depends_on?.length ? html`<small>after ${plain(job.depends_on.join(", "), 200)}</small>` : ""}` },
      { head: "Definition", row: !schedule.jobs, show: (job) => html`<${Link} to="jobs" query=${{ definition: job.definition }}>${plain(job.definition, 80)}<//><small><bdi>${plain(job.target, 120)}</bdi></small>` },
      { head: "Lane", cell: "full", show: (job) => html`${plain(job.lane, 80)}<small>priority ${number(job.priority)}, ${plain(job.mode, 20)}</small>` },
      { head: "Needs", cell: "full", show: (job) => (job.resources ? Object.entries(job.resources).map(([name, units]) => `${name} ${units}`).join(", ") : html`<span class="q">what its definition says</span>`) },
    ] })}
    <${Hidden} title=${schedule.jobs ? "Payloads" : "Payload"} value=${schedule.jobs ? Object.fromEntries(schedule.jobs.map((job) => [job.ref, job.payload])) : schedule.job.payload} />`;
}

/** A page of the audit log, the newest first. @param {{schedule: Wire.ScheduleResponse}} props */
function History({ schedule }) {
  const path = `/v1/schedules/${segment(schedule.name)}`;
  const [after, goOn] = useState("");
  const asked = useData(may("administer") ? "/v1/audit" : null, { path, after, limit: HISTORY_PAGE }, { everyMs: after ? 0 : 10_000 });
  if (!may("administer")) return html`<${Empty}>Only an admin sees changes, which come from the audit log.<//>`;
  return loaded(asked, ({ items, next }) => html`${table({
      label: "Changes",
      // Paths of other schedules may begin with this one's.
      items: items.filter((each) => each.path === path || each.path.startsWith(`${path}/`)),
      none: next ? "No changes of this schedule on this page; older pages may have some." : after ? "No older changes in the audit log." : "No changes in the audit log.",
      columns: [
        { head: "What", row: true, show: (each) => (each.status < 400 ? changed(each) : html`<${State} state="cancelled" word=${`${changed(each)}: refused (${each.status})`} wrap />`) },
        { head: "When", cell: "n r end", show: (each) => html`<${When} at=${each.at} />` },
        { head: "Who", cell: "full", show: (each) => html`<bdi>${plain(each.who, 80)}</bdi><small>${plain(each.role || "", 20)}, ${plain(each.address, 60)}</small>` },
        { head: "Why", cell: "full", show: (each) => html`<bdi>${plain(each.because || "", 200)}</bdi>` },
      ],
    })}
    ${(after || next) && html`<nav class="pages" aria-label="Pages of changes"><span></span><span class="acts">
      ${after && html`<button type="button" onClick=${() => goOn("")}>Newest changes</button>`}
      ${next && html`<button type="button" onClick=${() => goOn(next)}>Older changes</button>`}</span></nav>`}
    <p class="q">Created <${When} at=${schedule.created_at} />.</p>`);
}
