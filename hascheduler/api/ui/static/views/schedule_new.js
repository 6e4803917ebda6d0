// New schedule: a form and JSON of one document, and while one types, when it would fire and how full it is then.
import { html, signal, useState } from "../html.js";
import { may, ofAll, post, stringify } from "../api.js";
import { now, picture, useData } from "../data.js";
import { clock, counted, left, myZone, number, sentence, shortTime } from "../format.js";
import { Failure, useAct } from "../parts/basic.js";
import { isObject } from "../parts/difference.js";
import { JsonField, readJson } from "../parts/edit.js";
import { Fires } from "../parts/fires.js";
import { CATCH_UPS, OVERLAPS } from "../parts/schedule_actions.js";
import { triggerWords } from "../parts/trigger.js";
import { CalendarField, TriggerFields, ZoneField, dailyOf } from "../parts/trigger_fields.js";
import { go, to } from "../router.js";

const NAME = /^[A-Za-z0-9][A-Za-z0-9._\-]{0,127}$/;
const TYPED_MS = 350;
const FIRES = 5;
const LISTED_MAX = 500;
const MINUTE_MS = 60_000;

/** The schedule to create, as JSON. It stays while one looks at other views. */
const draft = signal("");
const first = () => stringify({
  name: "",
  trigger: { type: "cron", expression: "30 2 * * *", timezone: myZone },
  misfire: { grace: "1m", catch_up: "latest" },
  overlap: "skip",
  job: { definition: "", payload: {} },
}, 2);

/** @param {string} text @returns {{value?: any, error?: any}} */
function read(text) {
  try {
    return { value: readJson(text) };
  } catch (error) {
    return { error };
  }
}

export default function ScheduleNew() {
  if (!draft.value) draft.value = first();
  const [isJson, choose] = useState(false);
  const { busy, error, submit } = useAct();
  const { value, error: wrong } = read(draft.value);
  const body = isObject(value) ? value : null;
  const change = (/** @type {any} */ changes) => (draft.value = stringify({ ...read(draft.value).value, ...changes }, 2));
  const create = async (/** @type {FormData} */ form) => {
    const made = await post("/v1/schedules", form.has("paused") ? { ...body, paused: true } : body);
    draft.value = "";
    go(to("schedule", { name: made.name }));
  };
  if (!may("operate")) return html`<h1>New schedule</h1><p class="q">Your role may not create schedules. See the <a href="/ui/schedules">schedules</a>.</p>`;
  return html`<div class="top"><div><a class="q" href="/ui/schedules">Schedules</a><h1>New schedule</h1></div>
      <fieldset class="seg"><legend class="hide">Edit as</legend>${["Form", "JSON"].map((name) => html`<label><input type="radio" name="as" checked=${isJson === (name === "JSON")} onChange=${() => choose(name === "JSON")} />${name}</label>`)}</fieldset></div>
    <div class="two"><form class="form" onSubmit=${submit(create)}>
      ${isJson
        ? html`<${JsonField} label="The same as JSON" value=${draft.value} onType=${(/** @type {string} */ text) => (draft.value = text)} /><p class="q">What you change here is in the form, too. The <a href="/docs" target="_blank" rel="noreferrer">API documentation</a> describes the fields.</p>`
        : body ? html`<${Form} body=${body} change=${change} />` : html`<p class="q">The form shows the schedule again once the JSON can be read.</p>`}
      <${Failure} error=${wrong || error} />
      <div class="acts"><button class="primary" disabled=${busy || !body}>${busy ? "Creating…" : "Create schedule"}</button>
        <button name="paused" disabled=${busy || !body}>Create paused</button><a class="btn" href="/ui/schedules" onClick=${() => (draft.value = "")}>Cancel</a></div>
    </form><${Preview} body=${body} /></div>`;
}

/** `change` removes what is undefined. @param {{body: any, change: (changes: any) => void}} props */
function Form({ body, change }) {
  const { name = "", trigger = {}, misfire = {}, overlap = "allow", labels = {}, job } = body;
  const tell = (/** @type {any} */ next) => change({ trigger: next });
  const calendars = useData("/v1/calendars", { limit: LISTED_MAX }, { everyMs: 0 });
  const hasZone = trigger.type === "cron" || (trigger.type === "any" && dailyOf(trigger));
  const text = (/** @type {any} */ event) => event.target.value;
  return html`<div class="pair">
      <div class="field"><label for="name">Name</label><input id="name" value=${name} required pattern=${NAME.source} maxlength="128" spellcheck=${false} autocomplete="off" onInput=${(/** @type {any} */ event) => change({ name: text(event).trim() })} />
        <p class=${name && !NAME.test(name) ? "bad" : "q"}>Letters, digits, “.”, “-” and “_”. It cannot be changed later.</p></div>
      ${job ? html`<${Runs} job=${job} change=${change} />` : html`<div class="field"><b>Runs</b><p class="q">A graph of ${counted(body.jobs?.length || 0, "job")}: change it as JSON.</p></div>`}</div>
    <${TriggerFields} trigger=${trigger} change=${tell}><p class="says">${sentence(triggerWords(trigger))}</p><//>
    <div class="pair">${hasZone && html`<${ZoneField} trigger=${trigger} change=${tell} />`}<${CalendarField} trigger=${trigger} change=${tell} calendars=${(calendars.data?.items || []).map((each) => each.name)} /></div>
    <div class="pair"><${Choice} id="overlap" label="If the last one still runs" value=${overlap} of=${OVERLAPS} change=${(/** @type {string} */ value) => change({ overlap: value })} />
      <${Choice} id="missed" label="If a fire was missed" value=${misfire.catch_up || "latest"} of=${CATCH_UPS} change=${(/** @type {string} */ value) => change({ misfire: { ...misfire, catch_up: value } })} /></div>
    <div class="pair"><div class="field"><label for="grace">Counts as missed</label><input id="grace" value=${misfire.grace ?? "1m"} maxlength="40" autocomplete="off" onInput=${(/** @type {any} */ event) => change({ misfire: { ...misfire, grace: text(event).trim() } })} /><p class="q">If it is later than this, such as <code>5m</code> or <code>6h</code>.</p></div>
      <div class="field"><label for="failures">Pause itself after</label><input id="failures" type="number" min="1" max="1000" placeholder="never" value=${body.pause_after_failures ?? ""} onInput=${(/** @type {any} */ event) => change({ pause_after_failures: text(event) ? Number(text(event)) : undefined })} /><p class="q">Failures in a row; empty for never.</p></div></div>
    <div class="pair"><div class="field"><label for="owner">Owner</label><input id="owner" value=${labels.owner || ""} maxlength="128" autocomplete="off" onInput=${(/** @type {any} */ event) => change({ labels: { ...labels, owner: text(event) || undefined } })} />
        <p class="q">The label “owner”, to find it by.</p></div>
      ${job && ofAll.value && html`<div class="field"><label for="tenant">Tenant</label><input id="tenant" value=${job.tenant || ""} placeholder="default" maxlength="128" autocomplete="off" onInput=${(/** @type {any} */ event) => change({ job: { ...job, tenant: text(event).trim() || undefined } })} /></div>`}</div>
    ${job && html`<${Payload} job=${job} change=${change} />`}`;
}

/** @param {{id: string, label: string, value: string, of: Record<string, string>, change: (value: string) => void}} props */
const Choice = ({ id, label, value, of, change }) => html`<div class="field"><label for=${id}>${label}</label>
  <select id=${id} value=${value} onChange=${(/** @type {any} */ event) => change(event.target.value)}>${Object.entries(of).map(([each, words]) => html`<option value=${each} selected=${each === value}>${words}</option>`)}</select></div>`;

/** The definition of its job, and who would run it. @param {{job: any, change: (changes: any) => void}} props */
function Runs({ job, change }) {
  const asked = useData("/v1/definitions", { limit: LISTED_MAX }, { everyMs: 0 });
  const alive = (picture.value?.processors?.items || []).filter((each) => each.alive && !each.draining);
  const names = new Set([...alive.flatMap((each) => each.definitions), ...(asked.data?.items || []).map((each) => each.name)]);
  const count = alive.filter((each) => each.definitions.includes(job.definition)).length;
  return html`<div class="field"><label for="definition">Runs</label><input id="definition" list="definitions" required value=${job.definition} maxlength="128" spellcheck=${false} autocomplete="off" placeholder="a definition" onInput=${(/** @type {any} */ event) => change({ job: { ...job, definition: event.target.value.trim() } })} />
    <datalist id="definitions">${[...names].sort().map((each) => html`<option value=${each} />`)}</datalist>
    <p class="q">${!job.definition ? "What processors know by this name." : count ? `${counted(count, "live processor")} ${count === 1 ? "runs" : "run"} it.` : html`<span class="s tri warn wrap">No live processor runs it: its jobs will wait.</span>`}</p></div>`;
}

/** @param {{job: any, change: (changes: any) => void}} props */
function Payload({ job, change }) {
  const [text, type] = useState(stringify(job.payload ?? null, 2));
  const { error } = read(text);
  return html`<div class="field"><label for="payload">Payload</label>
    <textarea id="payload" class="m" rows="4" spellcheck=${false} autocapitalize="off" value=${text} onInput=${(/** @type {any} */ event) => {
      type(event.target.value);
      const now = read(event.target.value);
      if (!now.error) change({ job: { ...job, payload: now.value } });
    }}></textarea>${error ? html`<p class="bad">${error.message}</p>` : html`<p class="q">JSON, as the handler gets it.</p>`}</div>`;
}

/** The next fires of what is typed, asked for once one stops typing; those of before are shown until then. @param {{body: any}} props */
function Preview({ body }) {
  const typed = body?.trigger && { ...(NAME.test(body.name || "") ? { name: body.name } : {}), trigger: body.trigger };
  /** @type {import("../data.js").Asked<Wire.PreviewResponse>} */
  const { data, error, latest } = useData(/** @type {string | null} */ (typed ? "/v1/schedules/preview" : null), { count: FIRES }, { everyMs: 0, body: typed, waitMs: TYPED_MS });
  const preview = error ? null : latest;
  const next = preview?.fires.find((fire) => !fire.excluded);
  const [sign, words] = data ? ["ok good", "follows what you type"] : error ? ["x bad", "not a rule yet"] : ["ring off", "asking…"];
  return html`<section class="card sticky" aria-label="Preview"><div class="top"><h2>Next fires</h2><span class=${`s ${sign} q`}>${words}</span></div>
    <${Failure} error=${error} />
    ${preview && html`${next && html`<p role="status">Next: <b>${shortTime(next.nominal_at, preview.timezone || undefined)}</b>, in ${left(next.nominal_at, now.value)}.</p>`}
      <${Fires} preview=${preview} /><${Busy} fires=${preview.fires} />`}</section>`;
}

/** How many slots the other schedules want at the first fire that finds too few. @param {{fires: Wire.FireResponse[]}} props */
function Busy({ fires }) {
  const asked = useData("/v1/timeline", { limit: 1 }, { everyMs: MINUTE_MS });
  const load = asked.data?.load;
  const all = load?.items[0];
  if (!load || !all) return html`<${Failure} error=${asked.error} />`;
  const at = (/** @type {Wire.FireResponse} */ fire) => Math.floor((Date.parse(fire.due_at) - load.from_ms) / load.bucket_ms);
  const seen = fires.filter((fire) => !fire.excluded && at(fire) >= 0 && at(fire) < all.needed.length);
  const busy = seen.find((fire) => all.needed[at(fire)] >= all.slots) || seen[0];
  if (!busy) return null;
  const wanted = all.needed[at(busy)];
  const words = `At ${clock(Date.parse(busy.due_at))} by your clock the schedules there are want ${number(wanted)} of ${counted(all.slots, "slot")}`;
  if (wanted < all.slots) return html`<p><span class="s ok good">Room then.</span> ${words}.</p>`;
  const free = all.needed.findIndex((need, bucket) => bucket > at(busy) && need < all.slots);
  return html`<p><span class="s tri warn">Busy then.</span> ${words}, so it may start late.${free > 0 ? ` At ${clock(load.from_ms + free * load.bucket_ms)} there is room.` : ""} <a href="/ui/timeline">See the timeline</a></p>`;
}
