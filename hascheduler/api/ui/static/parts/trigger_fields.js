// The fields of a trigger in a form. The trigger is the truth; a text that is no trigger yet stays in its field.
import { html, useState } from "../html.js";
import { myZone } from "../format.js";
import { DAYS, daysOf } from "./trigger.js";

const KINDS = { interval: "Every…", times: "At times of day", cron: "Cron", once: "Once" };
const CRON_FIELDS = ["minute", "hour", "day", "month", "weekday", "second"];
const NARROWED = ["jitter", "start_at", "end_at", "max_fires", "exclude", "calendars"];
const TIME = /^([01]?\d|2[0-3]):([0-5]\d)$/;
const ZONES = [...new Set(["UTC", myZone, ...Intl.supportedValuesOf("timeZone")])];

/** @typedef {"interval" | "times" | "cron" | "once"} Kind */
/** Times of day on some days of the week, 0 to 6 from Monday.
 * @typedef {{times: string[], days: number[]}} Daily */

/** The times of day of a trigger, or null if it is not that simple. @param {any} trigger @returns {Daily | null} */
export function dailyOf(trigger) {
  if (trigger?.type === "any") {
    const parts = (trigger.of || []).map(dailyOf);
    if (!parts.length || parts.includes(null) || new Set(parts.map((/** @type {Daily} */ part) => String(part.days))).size > 1) return null;
    return { times: parts.flatMap((/** @type {Daily} */ part) => part.times).sort(), days: parts[0].days };
  }
  const [minute, hour, day, month, week, second] = trigger?.type === "cron" ? String(trigger.expression).trim().split(/\s+/) : [];
  const days = week && !second && day === "*" && month === "*" && /^\d\d?$/.test(minute) && /^\d\d?(,\d\d?)*$/.test(hour) ? daysOf(week) : null;
  return days && { times: hour.split(",").map((each) => `${each.padStart(2, "0")}:${minute.padStart(2, "0")}`).sort(), days };
}

/** The reverse of `dailyOf`: a cron trigger, or one for each minute of the hour.
 * @param {Daily} daily @param {string} timezone */
function triggerOf({ times, days }, timezone) {
  const week = days.length === 7 ? "*" : String(days) === "0,1,2,3,4" ? "mon-fri" : days.map((day) => DAYS[day]).join(",");
  const hours = (/** @type {string[]} */ at) => [...new Set(at.map((time) => parseInt(time)))].sort((one, other) => one - other).join(",");
  const parts = [...Map.groupBy(times, (time) => Number(time.split(":")[1]))].map(([minute, at]) => ({ type: "cron", expression: `${minute} ${hours(at)} * * ${week}`, timezone }));
  return parts.length === 1 ? parts[0] : { type: "any", of: parts };
}

/** @param {any} trigger @param {Kind} kind */
const fits = (trigger, kind) => (kind === "times" ? dailyOf(trigger) !== null : trigger?.type === kind);

/** The zone of the trigger's cron expressions. @param {any} trigger @returns {string} */
const zoneIn = (trigger) => (trigger?.type === "any" ? trigger.of?.[0]?.timezone : trigger?.timezone) ?? myZone;

/** A trigger of another kind. @param {any} trigger @param {Kind} kind */
function begun(trigger, kind) {
  const tomorrow = new Date(Date.now() + 86_400_000);
  return {
    interval: { type: "interval", every: "15m" },
    times: triggerOf({ times: ["02:30"], days: [0, 1, 2, 3, 4, 5, 6] }, zoneIn(trigger)),
    cron: { type: "cron", expression: "30 2 * * *", timezone: zoneIn(trigger) },
    once: { type: "once", at: `${tomorrow.toISOString().slice(0, 14)}00:00Z` },
  }[kind];
}

/** What time it is in a zone, or what is wrong with its name. @param {string} zone */
function zoneHint(zone) {
  try {
    const parts = new Intl.DateTimeFormat("en-GB", { timeZone: zone, hour: "2-digit", minute: "2-digit", timeZoneName: "shortOffset" }).formatToParts(new Date());
    const part = (/** @type {string} */ type) => parts.find((each) => each.type === type)?.value || "";
    return `Now ${part("hour")}:${part("minute")} there, ${part("timeZoneName").replace("GMT", "UTC")}.`;
  } catch {
    return "A region name such as Europe/Berlin: CET or PST say too little.";
  }
}

/** Which times it fires. @param {{trigger: any, change: (trigger: any) => void, children?: any}} props  `children`: what the trigger says, in words */
export function TriggerFields({ trigger, change, children }) {
  const [chosen, choose] = useState(/** @type {Kind | ""} */ (""));
  const kind = chosen && fits(trigger, chosen) ? chosen : /** @type {Kind[]} */ (["times", "interval", "cron", "once"]).find((each) => fits(trigger, each)) || "";
  /** With the narrowing of the trigger before. @param {any} next */
  const tell = (next) => change({ ...next, ...Object.fromEntries(NARROWED.map((name) => [name, trigger?.[name]])) });
  const Fields = { interval: Every, times: Daily, cron: Cron, once: Once, "": Other }[kind];
  return html`<fieldset><legend>When</legend>
    <span class="seg">${Object.entries(KINDS).map(([name, title]) => html`<label><input type="radio" name="kind" checked=${name === kind} onChange=${() => {
      choose(/** @type {Kind} */ (name));
      if (!fits(trigger, /** @type {Kind} */ (name))) tell(begun(trigger, /** @type {Kind} */ (name)));
    }} />${title}</label>`)}</span>
    <${Fields} key=${kind} trigger=${trigger} change=${tell} />
    ${children}</fieldset>`;
}

/** @param {{trigger: any, change: (trigger: any) => void}} props */
function Every({ trigger, change }) {
  return html`<div class="field"><input aria-label="Every how long" value=${trigger.every} spellcheck=${false} autocomplete="off" maxlength="40"
      onInput=${(/** @type {any} */ event) => change({ ...trigger, every: event.target.value.trim() })} />
    <p class="q">Such as <code>30s</code>, <code>15m</code>, <code>6h</code> or <code>1d12h</code>.</p></div>`;
}

/** The times of day in a text; null if it holds anything else. @param {string} text */
function timesIn(text) {
  const times = text.split(/[\s,]+/).filter(Boolean);
  return times.length && times.every((each) => TIME.test(each)) ? times : null;
}

/** @param {{trigger: any, change: (trigger: any) => void}} props */
function Daily({ trigger, change }) {
  const { times, days } = /** @type {Daily} */ (dailyOf(trigger));
  const [text, type] = useState(times.join(", "));
  const isWrong = !timesIn(text);
  const tell = (/** @type {Daily} */ daily) => change(triggerOf(daily, zoneIn(trigger)));
  return html`<div class="field"><input aria-label="Times of day" value=${text} aria-invalid=${isWrong} autocomplete="off" maxlength="200" onInput=${(/** @type {any} */ event) => {
      type(event.target.value);
      const typed = timesIn(event.target.value);
      if (typed) tell({ times: typed, days });
    }} /><p class=${isWrong ? "bad" : "q"}>${isWrong ? "Times" : "One or more,"} such as 07:30, 18:00.</p></div>
    <span class="seg days" role="group" aria-label="Days of the week">${DAYS.map((name, day) => html`<label><input type="checkbox" checked=${days.includes(day)} onChange=${(/** @type {any} */ event) => {
      const others = days.filter((each) => each !== day);
      if (event.target.checked || others.length) tell({ times, days: event.target.checked ? [...others, day].sort() : others });
      else event.target.checked = true; // at least one day stays
    }} />${name[0].toUpperCase()}${name.slice(1)}</label>`)}</span>`;
}

/** @param {{trigger: any, change: (trigger: any) => void}} props */
function Cron({ trigger, change }) {
  const split = (/** @type {string} */ text) => text.trim().split(/\s+/);
  const [cells, setCells] = useState(split(trigger.expression));
  const isWhole = (/** @type {string} */ text) => /\S\s+\S/.test(text) || text.trim().startsWith("@");
  const type = (/** @type {number} */ place, /** @type {string} */ text) => {
    const next = cells.map((cell, each) => (each === place ? text : cell));
    setCells(next);
    change({ ...trigger, expression: isWhole(text) ? text.trim() : next.map((cell) => cell.trim() || "*").join(" ") });
  };
  return html`<div class="cron">${cells.slice(0, CRON_FIELDS.length).map((cell, place) => html`<label>${cells.length < 5 ? "expression" : CRON_FIELDS[place]}
      <input value=${cell} spellcheck=${false} autocapitalize="off" autocomplete="off" maxlength="200" onInput=${(/** @type {any} */ event) => type(place, event.target.value)}
        onBlur=${() => isWhole(cell) && setCells(split(cell))} /></label>`)}</div>
    <p class="q">Type or paste a whole expression into any field: <code class="n">30 2 * * *</code>. Names such as MON-FRI, L, # and a sixth field for seconds work, too.</p>`;
}

/** @param {{trigger: any, change: (trigger: any) => void}} props */
function Once({ trigger, change }) {
  const at = new Date(trigger.at);
  const local = Number.isNaN(+at) ? "" : new Date(+at - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
  return html`<div class="field"><input type="datetime-local" step="1" aria-label="At" value=${local} onChange=${(/** @type {any} */ event) => {
      if (event.target.value) change({ ...trigger, at: new Date(event.target.value).toISOString() });
    }} /><p class="q">By your clock, ${myZone}.</p></div>`;
}

const Other = () => html`<p class="q">The form has no fields for this trigger. Change it as JSON, or choose a kind above.</p>`;

/** @param {{trigger: any, change: (trigger: any) => void}} props */
export function ZoneField({ trigger, change }) {
  const zone = zoneIn(trigger);
  const set = (/** @type {string} */ timezone) =>
    change(trigger.type === "any" ? { ...trigger, of: trigger.of.map((/** @type {any} */ part) => ({ ...part, timezone })) } : { ...trigger, timezone });
  return html`<div class="field"><label for="zone">Zone</label>
    <input id="zone" value=${zone} list="zones" spellcheck=${false} autocomplete="off" maxlength="80" onInput=${(/** @type {any} */ event) => set(event.target.value.trim())} />
    <datalist id="zones">${ZONES.map((each) => html`<option value=${each} />`)}</datalist>
    <p class="q">${zoneHint(zone)}</p></div>`;
}

/** Which days of the shared calendars count. @param {{trigger: any, change: (trigger: any) => void, calendars: string[]}} props */
export function CalendarField({ trigger, change, calendars }) {
  const use = trigger.calendars;
  const value = !use ? "" : JSON.stringify({ only: use.only || [], except: use.except || [] });
  const choices = [["", "every day"], ...calendars.flatMap((name) => [
    [JSON.stringify({ only: [name], except: [] }), `days of ${name}`],
    [JSON.stringify({ only: [], except: [name] }), `days not in ${name}`],
  ])];
  if (!choices.some(([each]) => each === value)) choices.push([value, "as in JSON"]);
  return html`<div class="field"><label for="calendars">Only on</label>
    <select id="calendars" value=${value} onChange=${(/** @type {any} */ event) => {
      change({ ...trigger, calendars: event.target.value ? { ...use, ...JSON.parse(event.target.value) } : undefined });
    }}>${choices.map(([each, words]) => html`<option value=${each} selected=${each === value}>${words}</option>`)}</select></div>`;
}
