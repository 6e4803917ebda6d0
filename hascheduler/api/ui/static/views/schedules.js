// Schedules: those with trouble first, with their rule, next fire and last twenty, changed one by one or together.
import { html } from "../html.js";
import { may, ofAll } from "../api.js";
import { replicaNow, useData } from "../data.js";
import { counted, left, number, plain, shortTime, span, spanMs } from "../format.js";
import { Menu, Pages, ScheduleLink, State, Tabs, loaded, table } from "../parts/basic.js";
import { Bulk, BulkAction, useSelection } from "../parts/bulk.js";
import { Strip, StripLegend } from "../parts/charts.js";
import { Find, filters } from "../parts/filters.js";
import { isLate, moreActs, scheduleActs, scheduleState } from "../parts/schedule_actions.js";
import { Trigger } from "../parts/trigger.js";
import { NOT_FIRED } from "../parts/verdicts.js";
import { hasQuery, place, setQuery } from "../router.js";

const PAGE = 25;
const COUNTS_MS = 5_000;
const RECENT_MS = 10_000;
const LATE_MS_MIN = 60_000;
/** @type {import("../parts/filters.js").Field[]} */
const FIELDS = [
  { name: "text", label: "name" },
  { name: "tenant" },
  { name: "label", kind: "many" },
  { name: "verdict", label: "latest verdict", values: NOT_FIRED },
  { name: "state", hidden: true },
  { name: "failing", hidden: true },
  { name: "late", hidden: true },
];
/** The tabs: what they filter by, and which count is theirs. @type {[string, string, string, Record<string, string>][]} */
const TABS = [
  ["All", "", "matched", {}],
  ["Failing", "failing", "failing", { failing: "true" }],
  ["Late", "late", "late", { late: "true" }],
  ["Paused", "paused", "paused", { state: "paused" }],
  ["Ended", "ended", "ended", { state: "ended" }],
];


export default function Schedules() {
  const { query } = place.value;
  const filter = filters(FIELDS);
  const sort = query.get("sort") || "trouble";
  const asked = useData("/v1/schedules", { ...filter, sort, after: query.get("after"), limit: PAGE });
  const { state: _, failing: _failing, late: _late, ...rest } = filter;
  const sums = useData("/v1/schedules:counts", rest, { everyMs: COUNTS_MS });
  const counts = sums.data;
  const tabs = TABS.map(([name, state, of, by]) => {
    const count = /** @type {Record<string, any> | null} */ (counts)?.[of];
    return { name, state, count: counts?.exact === false ? `${number(count)}+` : count, query: { state: "", failing: "", late: "", ...by } };
  });
  const given = { sort, filter, total: tabs.find((tab) => hasQuery(tab.query))?.count, reload: () => [asked, sums].forEach((each) => each.reload()) };
  return html`<div class="top"><h1>Schedules</h1>${may("operate") && html`<a class="btn primary" href="/ui/schedule-new">New schedule</a>`}</div>
    <div class="sec"><${Find} label="Find schedules" placeholder="Name, or a filter such as label:owner=billing" fields=${FIELDS} />
      <${Tabs} label="By state" tabs=${tabs} /></div>
    ${loaded(asked, (page) => html`<${Rows} page=${page} ...${given} />`)}`;
}

/** @param {{page: Wire.SchedulePage, sort: string, total: any, filter: Record<string, any>, reload: () => void}} props */
function Rows({ page, sort, total, filter, reload }) {
  const { items } = page;
  const selection = useSelection(items);
  const recent = useData(items.length ? "/v1/schedules:recent" : null, { name: items.map((schedule) => schedule.name) }, { everyMs: RECENT_MS });
  const recents = new Map((recent.data?.items || []).map((each) => [each.name, each]));
  const mayChange = may("submit") || may("operate");
  const given = { noun: "schedule", filter, selection, reload };
  const none = page.next ? "No match on this page. See the next page."
    : Object.values(filter).some((value) => value.length) ? html`No schedule matches. <a href="/ui/schedules">Show all</a>.`
    : html`There are no schedules yet. ${may("operate") && html`Create one above, or run <code>hascheduler schedule put tick --every 10s --definition log</code>`}`;
  return html`<section class="sec" aria-label="Schedules">${table({
      label: "Schedules",
      items,
      none,
      sorted: sort,
      selection: mayChange ? selection : null,
      menu: (schedule) => html`<${Menu} name=${`Actions for ${schedule.name}`}>${scheduleActs({ schedule, reload })}${moreActs({ schedule, reload, gone: reload })}<//>`,
      columns: [
        { head: "Schedule", row: true, sort: "name", show: (schedule) => html`<${ScheduleLink} name=${schedule.name} /><${Whose} schedule=${schedule} />` },
        { head: "Rule", cell: "full", show: (schedule) => html`<${Trigger} trigger=${schedule.trigger} next=${schedule.next_at} />` },
        { head: "Next", cell: "n full nx", sort: "next", show: (schedule) => html`<${Next} schedule=${schedule} />` },
        { head: "Last 20, newest right", cell: "full", show: (schedule) => html`<${Last} schedule=${schedule} recent=${recents.get(schedule.name)} />` },
        { head: "Trouble", cell: "full", sort: "trouble", show: (schedule) => html`<${Trouble} schedule=${schedule} recent=${recents.get(schedule.name)} />` },
      ],
    })}
    ${mayChange && html`<${Bulk} selection=${selection} noun="schedule" total=${total}>
      ${may("submit") && html`<${BulkAction} ...${given} path="/v1/schedules:trigger" verb="Run now" words="Each makes a job now, even if it is paused." />`}
      ${may("operate") && html`<${BulkAction} ...${given} path="/v1/schedules:pause" verb="Pause" words="They do not fire until you resume them. Their jobs go on." reason />
        <${BulkAction} ...${given} path="/v1/schedules:resume" verb="Resume" words="They fire again from now on." />`}<//>`}
    <${Pages} page=${page} total=${total} />${items.length > 0 && html`<${StripLegend} />`}</section>`;
}

/** Its tenant and owner, and other labels as links that filter. @param {{schedule: Wire.ScheduleResponse}} props */
function Whose({ schedule }) {
  const { owner, ...labels } = schedule.labels;
  const words = [ofAll.value && schedule.job.tenant, owner].filter(Boolean).map((each) => plain(each, 60)).join(" · ");
  return html`<small>${words}${Object.entries(labels).slice(0, 2).map(([key, value], place) => html`${(words || place > 0) && " · "}<button type="button" class="bare" onClick=${() => setQuery({ label: `${key}=${value}` })}><bdi>${plain(`${key}=${value}`, 40)}</bdi></button>`)}</small>`;
}

/** The next fire: how far off, and below it when, by the reader's clock. @param {{schedule: Wire.ScheduleResponse}} props */
function Next({ schedule }) {
  if (schedule.paused) return html`paused<small>since ${shortTime(schedule.paused_at || "")}</small>`;
  if (!schedule.next_at) return html`–<small>ended</small>`;
  return html`${left(schedule.next_at, replicaNow.value)}<small>${shortTime(schedule.next_at)}</small>`;
}

/** @param {{schedule: Wire.ScheduleResponse, recent: Wire.RecentSchedule | undefined}} props */
function Last({ schedule, recent }) {
  if (!recent?.times.length) return html`<small>${recent ? "has not fired yet" : "…"}</small>`;
  return html`<${Strip} times=${recent.times.map((time) => ({ outcome: time.outcome, late: isLate(schedule, time) }))} />`;
}

/** The one thing to know first, and below it why; nothing for what is well. @param {{schedule: Wire.ScheduleResponse, recent: Wire.RecentSchedule | undefined}} props */
function Trouble({ schedule, recent }) {
  const times = recent?.times || [];
  const failed = times.filter(({ outcome }) => outcome === "failed").length;
  const missed = times.filter(({ outcome }) => outcome === "missed" || outcome === "unstorable" || outcome === "throttled").length;
  const late = times.filter((time) => isLate(schedule, time));
  const overdueMs = schedule.next_due_at && !schedule.paused ? replicaNow.value - Date.parse(schedule.next_due_at) : 0;
  const rows = /** @type {const} */ ([
    [schedule.failures_in_a_row > 0, "failing", schedule.failures_in_a_row === 1 ? "the last job failed" : `${number(schedule.failures_in_a_row)} failures in a row`, recent?.error],
    [overdueMs > Math.max(LATE_MS_MIN, spanMs(schedule.misfire.grace)), "late", `due ${span(overdueMs)} ago`, schedule.misfire.grace && "and not decided yet"],
    [schedule.ahead_until, "late", "fired ahead of time", schedule.ahead_until && `a clock was wrong, until ${shortTime(schedule.ahead_until)}`],
    [failed > 0, "late", `${number(failed)} of ${number(times.length)} failed`, recent?.error],
    [missed > 0, "late", `${number(missed)} of ${number(times.length)} did not fire`, "missed, throttled or too large"],
    [late.length > 0, "late", `${counted(late.length, "fire")} late`, `by up to ${span(Math.max(0, ...late.map(({ late_ms }) => late_ms || 0)))}`],
    [schedule.paused, "paused", "paused", schedule.paused_because && `“${schedule.paused_because}”`],
    [scheduleState(schedule) === "ended", "ended", "ended", schedule.last_nominal_at && shortTime(schedule.last_nominal_at)],
  ]);
  const shown = rows.find(([is]) => is);
  const warnings = schedule.warnings.map((warning) => html`<small class="warn">${plain(warning, 200)}</small>`);
  return html`${shown && html`<${State} state=${shown[1]} word=${shown[2]} wrap />${shown[3] && html`<small><bdi>${plain(shown[3], 120)}</bdi></small>`}`}
    ${schedule.paused && shown?.[1] !== "paused" && html`<small><bdi>${plain(`paused: “${schedule.paused_because || "no reason given"}”`, 160)}</bdi></small>`}${warnings}`;
}
