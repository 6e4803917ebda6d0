// Schedules: filtered, with their next time and latest verdicts, and changed one by one or together.
import { html, useState } from "../html.js";
import { post } from "../api.js";
import { counted, number, plain, span, time } from "../format.js";
import { clockAheadMs, now } from "../live.js";
import { Action } from "../parts/actions.js";
import { Empty, Failure, Labels, Loaded, Pages, ScheduleLink, State, Unreadable, When, sign } from "../parts/basic.js";
import { BulkAction } from "../parts/bulk.js";
import { JsonField, readJson } from "../parts/edit.js";
import { ChoiceFilter, LabelFilter, TextFilter, filters } from "../parts/filters.js";
import { Fires } from "../parts/fires.js";
import { ScheduleActions, scheduleState } from "../parts/schedule_actions.js";
import { Trigger, zonesOf } from "../parts/trigger.js";
import { NOT_FIRED, Strip, StripLegend } from "../parts/verdicts.js";
import { useData } from "../query.js";
import { go, place, setQuery, to } from "../router.js";
import { may, ofAll } from "../session.js";

const PAGE = 25;
const COUNTS_MS = 5_000;
/** @type {("active" | "paused" | "ended")[]} */
const STATES = ["active", "paused", "ended"];
const LATE_MS = 8_000;
const NOW_MS = 4_000;
const FILTERS = ["text", "state", "tenant", "verdict"];
const EXAMPLE = `{
  "name": "nightly",
  "trigger": {"type": "cron", "expression": "30 2 * * mon-fri", "timezone": "Europe/Paris"},
  "misfire": {"grace": "5m", "catch_up": "latest"},
  "overlap": "skip",
  "job": {"definition": "log", "payload": {"message": "hello"}},
  "labels": {"team": "a"}
}`;

export default function Schedules() {
  const filter = filters(FILTERS, ["label"]);
  /** @type {import("../query.js").Asked<import("../wire.js").SchedulePage>} */
  const asked = useData("/v1/schedules", { ...filter, after: place.value.query.get("after"), limit: PAGE });
  const isFiltered = Object.values(filter).some((value) => value.length);
  return html`<h1>Schedules</h1>
    <${Counts} filter=${filter} known=${asked.error} />
    <section class="filters" aria-label="Filters">
      <${TextFilter} name="text" label="Name contains" />
      <${ChoiceFilter} name="state" label="State" values=${STATES} />
      <${ChoiceFilter} name="verdict" label="Latest verdict" values=${NOT_FIRED} />
      ${ofAll.value && html`<${TextFilter} name="tenant" label="Tenant" />`}
      <${LabelFilter} />
    </section>
    <div class="buttons">
      ${may("operate") && html`<${New} />`}
      ${may("submit") && html`<${All} filter=${filter} isFiltered=${isFiltered} reload=${asked.reload} />`}
    </div>
    <${Loaded} of=${asked}><${Table} page=${asked.data} isFiltered=${isFiltered} reload=${asked.reload} onPick=${(/** @type {string} */ label) => setQuery({ label: [...new Set([...filter.label, label])] })} />
      <${Unreadable} page=${asked.data} /><${Pages} page=${asked.data} /><//>`;
}

/** @param {{filter: Record<string, any>, known: any}} props  `known`: the error of the list with the same filters */
function Counts({ filter, known }) {
  const { state, ...rest } = filter;
  /** @type {import("../query.js").Asked<import("../wire.js").ScheduleCountsResponse>} */
  const asked = useData("/v1/schedules:counts", rest, { everyMs: COUNTS_MS });
  const counts = asked.data;
  return html`<${Failure} error=${known ? null : asked.error} /><div class="facets" role="group" aria-label="Schedules by state">${STATES.map((each) => html`<button type="button" aria-pressed=${state === each} class=${sign(each)[1]} onClick=${() => setQuery({ state: state === each ? "" : each })}>
    <${State} state=${each} /> <strong>${counts ? `${number(counts[each])}${counts.exact ? "" : "+"}` : "…"}</strong></button>`)}</div>`;
}

/** Buttons that change all schedules that match.
 * @param {{filter: Record<string, any>, isFiltered: boolean, reload: () => void}} props */
function All({ filter: which, isFiltered, reload }) {
  return html`${may("operate") && html`<${BulkAction} path="/v1/schedules:pause" reload=${reload} filter=${which} label="Pause all that match" words="They do not fire until you resume them. Their jobs go on." reason />
      <${BulkAction} path="/v1/schedules:resume" reload=${reload} filter=${which} label="Resume all that match" words="They fire again from now on." />`}
    <${BulkAction} path="/v1/schedules:trigger" reload=${reload} filter=${which} label="Trigger all that match" words="Each makes a job now, even if it is paused." />
    ${!isFiltered && html`<span class="dim">Set a filter to change all that match.</span>`}`;
}

/** @param {{page: import("../wire.js").SchedulePage, isFiltered: boolean, reload: () => void, onPick: (label: string) => void}} props */
function Table({ page, isFiltered, reload, onPick }) {
  if (!page.items.length) {
    if (page.next) return html`<${Empty}>No match on this page. See the next page.<//>`;
    return html`<${Empty}>${isFiltered
      ? html`No schedule matches. <a href="/ui/schedules">Show all</a>.`
      : may("operate") ? html`There are no schedules yet. Create one above, or run <code>hascheduler schedule put tick --every 10s --definition log</code>` : "There are no schedules yet."}<//>`;
  }
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Schedules"><table>
    <thead><tr><th scope="col">Schedule</th><th scope="col">State</th><th scope="col">When</th><th scope="col">Next</th><th scope="col">Last verdicts</th><th scope="col">Problems</th>${(may("submit") || may("operate")) && html`<th scope="col">Do</th>`}</tr></thead>
    <tbody>${page.items.map((schedule) => html`<tr key=${schedule.name}>
      <th scope="row"><${ScheduleLink} name=${schedule.name} /> <${Labels} labels=${schedule.labels} onPick=${onPick} />${ofAll.value && html`<div class="dim">${plain(schedule.job.tenant, 60)}</div>`}</th>
      <td><${State} state=${scheduleState(schedule)} />${schedule.paused && html`<div class="dim"><${When} at=${schedule.paused_at} />${schedule.paused_because && html`: <bdi>${plain(schedule.paused_because, 200)}</bdi>`}</div>`}</td>
      <td class="clip"><${Trigger} trigger=${schedule.trigger} next=${schedule.next_at} /></td>
      <td><${Next} schedule=${schedule} /></td>
      <td><${Strip} schedule=${schedule} /></td>
      <td class="trouble"><${Trouble} schedule=${schedule} /></td>
      ${(may("submit") || may("operate")) && html`<td><${ScheduleActions} schedule=${schedule} reload=${reload} gone=${reload} /></td>`}
    </tr>`)}</tbody></table></div><${StripLegend} />`;
}

/** The next fire time, relative and in the schedule's zone. @param {{schedule: import("../wire.js").ScheduleResponse}} props */
export function Next({ schedule }) {
  if (!schedule.next_at) return html`<span class="dim">${schedule.paused ? "after resume" : "never"}</span>`;
  const zones = zonesOf(schedule.trigger);
  // A schedule that fires every few seconds has fired since the request.
  const isNow = Math.abs(now.value - clockAheadMs.value - Date.parse(schedule.next_at)) < NOW_MS;
  return html`${isNow ? "now" : html`<${When} at=${schedule.next_at} zone=${zones[0]} />`}<div class="dim nowrap">${time(schedule.next_at, zones[0])}</div>`;
}

/** Problems of a schedule: lateness, failures, missed times, warnings. @param {{schedule: import("../wire.js").ScheduleResponse}} props */
function Trouble({ schedule }) {
  const lateMs = schedule.next_due_at ? now.value - clockAheadMs.value - Date.parse(schedule.next_due_at) : 0;
  const { missed, throttled, unstorable } = schedule.counts;
  const found = [
    lateMs > LATE_MS && html`<div><${State} state="late" word=${`due ${span(lateMs)} ago`} /></div>`,
    schedule.failures_in_a_row > 0 && html`<div><${State} state="failed" word=${`${counted(schedule.failures_in_a_row, "failure")} in a row`} /></div>`,
    missed > 0 && html`<div><${State} state="missed" word=${`${number(missed)} missed`} /></div>`,
    throttled > 0 && html`<div><${State} state="throttled" word=${`${number(throttled)} throttled`} /></div>`,
    unstorable > 0 && html`<div><${State} state="unstorable" word=${`${number(unstorable)} unstorable`} /></div>`,
    ...schedule.warnings.map((warning) => html`<div class="wait">${plain(warning, 200)}</div>`),
  ].filter(Boolean);
  return found.length ? found : html`<span class="dim">none</span>`;
}

function New() {
  const [text, type] = useState(EXAMPLE);
  const [fires, setFires] = useState(/** @type {import("../wire.js").PreviewResponse | null} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  const preview = async () => {
    setError(null);
    setFires(null);
    try {
      const { name, trigger } = readJson(text);
      setFires(await post("/v1/schedules/preview", { name, trigger }));
    } catch (failed) {
      setError(failed);
    }
  };
  return html`<${Action} label="New schedule" confirm="Create" done=${(/** @type {import("../wire.js").ScheduleResponse} */ made) => go(to("schedule", { name: made.name }))}
    act=${async () => post("/v1/schedules", readJson(text))} question=${html`<p>A schedule as JSON. The <a href="/docs" target="_blank" rel="noreferrer">API documentation</a> describes the fields.</p>`}>
    <${JsonField} label="Schedule" value=${text} onType=${type} />
    <div class="buttons"><button type="button" onClick=${preview}>Preview</button></div>
    <${Failure} error=${error} />
    ${fires && html`<${Fires} preview=${fires} />`}
  <//>`;
}
