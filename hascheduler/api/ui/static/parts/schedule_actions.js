// What can be done with one schedule: entries of its menu, or buttons on its page.
import { html, useState } from "../html.js";
import { may, post, request, segment } from "../api.js";
import { useData } from "../data.js";
import { counted, number, plain, spanMs, time } from "../format.js";
import { Action, Failure, Field, JobLink, Link, loaded, payloadsAreSecret, say, useAct } from "./basic.js";
import { patchOf } from "./difference.js";
import { Edit } from "./edit.js";
import { Fires } from "./fires.js";

/** @typedef {{schedule: Wire.ScheduleResponse, reload: () => void, primary?: boolean}} Props */

const FIRES = 10;
/** The fields of a trigger that restrict its times; shown last. */
const NARROWING = new Set(["jitter", "start_at", "end_at", "max_fires", "exclude", "calendars"]);

/** What happens if the last job still runs at a fire, by `overlap`. @type {Record<string, string>} */
export const OVERLAPS = { skip: "skip this fire", buffer_one: "let one wait", allow: "run both", cancel_running: "cancel the running one" };
/** What happens to missed fires, by `misfire.catch_up`. @type {Record<string, string>} */
export const CATCH_UPS = { latest: "fire once when it is back", all: "fire each", none: "drop it" };

/** @param {Wire.ScheduleResponse} schedule */
export const scheduleState = (schedule) => (schedule.paused ? "paused" : schedule.next_at ? "active" : "ended");

/** True if the job of a time began later than the schedule's grace and jitter.
 * @param {Wire.ScheduleResponse} schedule @param {Wire.RecentTime} time */
export const isLate = ({ misfire, trigger }, { late_ms: lateMs }) => lateMs !== null && lateMs > spanMs(misfire.grace) + spanMs(trigger.jitter);

/** The `If-Match` tag of a document. @param {{rev: number}} shown */
export const tagOf = (shown) => `"${shown.rev}"`;

const pathOf = (/** @type {Wire.ScheduleResponse} */ { name }) => `/v1/schedules/${segment(name)}`;
const nameOf = (/** @type {Wire.ScheduleResponse} */ { name }) => html`<bdi class="b">${plain(name, 80)}</bdi>`;

/** What this session may do with a schedule and does most, and `moreActs` it may do. @param {Props} given */
export const scheduleActs = (given) => [
  may("submit") && html`<${RunNow} ...${given} />`,
  may("operate") && (given.schedule.paused ? html`<${Resume} ...${given} />` : html`<${Pause} ...${given} />`),
  may("operate") && html`<${EditSchedule} ...${given} />`,
];

/** @param {Props & {gone: () => void}} given */
export const moreActs = (given) => [
  may("operate") && html`<${Backfill} ...${given} />`,
  may("operate") && given.schedule.ahead_until && !given.schedule.paused && html`<${Reset} ...${given} />`,
  html`<${Link} to="jobs" query=${{ schedule: given.schedule.name }}>Its jobs<//>`,
  may("operate") && html`<hr />`,
  may("operate") && html`<${Delete} ...${given} />`,
];

/** @param {Props} props */
const RunNow = ({ schedule, reload }) => html`<${Action} label="Run now…" confirm="Run now" done=${(/** @type {Wire.JobResponse} */ job) => {
    say(html`${nameOf(schedule)} made the job <${JobLink} id=${job.id} />.`);
    reload();
  }} act=${(/** @type {FormData} */ form) => post(`${pathOf(schedule)}/trigger`, form.get("overlap") ? { overlap: form.get("overlap") } : {})}
  question=${html`<p>${nameOf(schedule)} makes a job now, even if it is paused. This does not change its fire times and counts.</p>`}>
  <label class="field"><span class="b">If an earlier job has not ended</span><select name="overlap">
    <option value="">as the schedule defines (${schedule.overlap})</option><option value="allow">run both</option><option value="skip">refuse</option><option value="buffer_one">run after it</option><option value="cancel_running">cancel it first</option>
  </select></label><//>`;

/** @param {Props} props */
const Pause = ({ schedule, reload }) => html`<${Action} label="Pause…" done=${reload} act=${(/** @type {FormData} */ form) => post(`${pathOf(schedule)}/pause`, { because: form.get("because") || null })}
  question=${html`<p>${nameOf(schedule)} does not fire until it is resumed. Its jobs go on.</p>`}><${Field} label="Reason (shown to others)" name="because" maxlength="256" /><//>`;

/** @param {Props} props */
const Resume = ({ schedule, reload, primary }) => html`<${Action} label="Resume…" primary=${primary} done=${reload} act=${(/** @type {FormData} */ form) => post(`${pathOf(schedule)}/resume`, { catch_up: form.get("catch_up") === "on" })}
  question=${html`<p>${nameOf(schedule)} fires again from now on.</p>`}><label><input type="checkbox" name="catch_up" /> Also catch up on the times since the pause, by its misfire policy</label><//>`;

/** @param {Props} props */
const Reset = ({ schedule, reload }) => html`<${Action} label="Reset…" done=${reload} act=${() => post(`${pathOf(schedule)}/reset`)}
  question=${html`<p>A clock was wrong, and ${nameOf(schedule)} fired ahead of time. If the clocks are right again, it continues from now. Times that already have a job do not fire again.</p>`} />`;

/** @param {{schedule: Wire.ScheduleResponse, gone: () => void}} props */
const Delete = ({ schedule, gone }) => html`<${Action} label="Delete…" danger done=${gone} said=${html`${nameOf(schedule)} is deleted.`} act=${() => request("DELETE", pathOf(schedule), { headers: { "if-match": tagOf(schedule) } })}
  question=${html`<p>This deletes ${nameOf(schedule)} and its counts. Its jobs go on.</p>`} />`;

/** @param {Props} props */
const EditSchedule = ({ schedule, reload }) => html`<${Edit} label="Edit…" what=${`schedule ${schedule.name}`} path=${pathOf(schedule)} form=${editable} done=${reload} Preview=${EditPreview}
  hint="Times that are already decided do not change. An interval without an anchor keeps the stored one." />`;

/** The fields of a schedule that may be sent back. Payloads that are never shown stay as stored. @param {Wire.ScheduleResponse} shown */
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
  const more = "on_failure" in shown ? { on_failure: shown.on_failure } : {};
  return { trigger: ordered, misfire, overlap, pause_after_failures, ...more, ...(jobs ? { jobs: jobs.map(lean) } : { job: lean(job) }), labels };
}

/** What an edit would change about the next fires. @param {{path: string, base: any, mine: any}} props */
function EditPreview({ path, base, mine }) {
  /** @type {import("../data.js").Asked<Wire.EditPreviewResponse>} */
  const asked = useData(`${path}/preview`, { count: FIRES }, { everyMs: 0, body: patchOf(base, mine) });
  return html`<h3>Effect on the next fires</h3>${loaded(asked, (preview) => html`<p>${counted(preview.added.length, "fire")} added and ${number(preview.removed.length)} removed, until ${time(preview.until)}.</p><${Fires} preview=${preview} />`)}`;
}

/** @param {Props} props */
function Backfill({ schedule, reload }) {
  const [found, setFound] = useState(/** @type {Wire.BackfillResponse | null} */ (null));
  const counting = useAct();
  const ask = (/** @type {FormData} */ form, more = {}) => {
    const instant = (/** @type {string} */ name) => new Date(String(form.get(name))).toISOString();
    return post(`${pathOf(schedule)}/backfill`, { from: instant("from"), to: instant("to"), overlap: form.get("overlap"), ...more });
  };
  const count = (/** @type {any} */ event) => {
    const { form } = event.target;
    setFound(null);
    if (form.reportValidity()) counting.run(async () => setFound(await ask(new FormData(form), { dry_run: true })));
  };
  return html`<${Action} label="Backfill…" confirm="Create the jobs" onOpen=${() => setFound(null)} act=${ask}
      done=${(/** @type {Wire.BackfillResponse} */ made) => {
        say(`Created ${counted(made.created, "job")}.`);
        reload();
      }}
      question=${html`<p>Creates a job for each past time of ${nameOf(schedule)} that has none, using the current trigger; at most 1,000 jobs per request.</p>`}>
      <div class="pair"><${Field} label="From (your clock)" type="datetime-local" name="from" step="1" required />
        <${Field} label="Through" type="datetime-local" name="to" step="1" required /></div>
      <label class="field"><span class="b">Concurrency</span><select name="overlap"><option value="buffer_one">one after the other</option><option value="allow">all at once</option></select></label>
      <div class="top"><span role="status">${found && `${counted(found.count, "time")}: ${number(found.created)} would get a job, ${number(found.existing)} already have one${found.undecided ? `, ${number(found.undecided)} are not decided yet` : ""}.`}</span><button type="button" onClick=${count}>Count first</button></div>
      <${Failure} error=${counting.error} />
    <//>`;
}
