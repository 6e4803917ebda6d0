// Triggers in words: "every day at 02:30 in Europe/Paris". A trigger that is too complex is shown as written.
import { html } from "../html.js";
import { counted, number, plain, time } from "../format.js";

const ALIASES = {
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
  "@monthly": "0 0 1 * *",
  "@weekly": "0 0 * * 0",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@hourly": "0 * * * *",
};
/** Monday first. */
export const DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const DAY_NAMES = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const MONTH_NAMES = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const PLACES = ["", "first", "second", "third", "fourth", "fifth"];
const SINGLE = { "1d": "day", "1h": "hour", "1m": "minute", "1s": "second" };
const CLOCK_TIMES_MAX = 6;

/** The place that names a zone: "Berlin" of Europe/Berlin. @param {string | null | undefined} zone */
export const cityOf = (zone) => String(zone || "UTC").split("/").slice(-1)[0].replaceAll("_", " ");

/** @param {string[]} words @param {string} [last] */
const listed = (words, last = "and") => (words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} ${last} ${words[words.length - 1]}`);
const two = (/** @type {number} */ value) => String(value).padStart(2, "0");

/** @param {number} value */
function ordinal(value) {
  const ending = value % 100 >= 11 && value % 100 <= 13 ? "th" : ["th", "st", "nd", "rd"][value % 10] || "th";
  return `${value}${ending}`;
}

/** Thrown for a field that has no wording. */
class Odd extends Error {}

/** A field of whole numbers: all of them, each n-th, a span, or a list.
 * @typedef {{kind: "all"} | {kind: "step", step: number} | {kind: "span", low: number, high: number} | {kind: "list", values: number[]}} Field
 * @param {string} text @param {number} low @param {number} high @param {string[]} [words] @returns {Field} */
function field(text, low, high, words = []) {
  const value = (/** @type {string} */ each) => {
    const found = words.includes(each) ? words.indexOf(each) + low : /^\d{1,2}$/.test(each) ? Number(each) : NaN;
    if (!(found >= low && found <= high)) throw new Odd(text);
    return found;
  };
  if (text === "*" || text === "?") return { kind: "all" };
  const step = /^\*\/(\d{1,2})$/.exec(text);
  if (step) return Number(step[1]) === 1 ? { kind: "all" } : { kind: "step", step: Number(step[1]) };
  if (!text.includes(",") && text.includes("-")) {
    const [first, last] = text.split("-").map(value);
    if (last <= first) throw new Odd(text);
    return { kind: "span", low: first, high: last };
  }
  return { kind: "list", values: [...new Set(text.split(",").map(value))].sort((one, other) => one - other) };
}

/** The time of day; it begins with "at" if it is a few times on the clock. @param {Field} minute @param {Field} hour @param {Field} second @returns {string} */
function clock(minute, hour, second) {
  const single = (/** @type {Field} */ each) => (each.kind === "list" && each.values.length === 1 ? each.values[0] : null);
  const every = (/** @type {Field} */ each, /** @type {string} */ unit, /** @type {number} */ whole) =>
    each.kind === "all" ? `every ${unit}` : each.kind === "step" && whole % each.step === 0 ? `every ${each.step} ${unit}s` : "";
  const at = single(second);
  if (at === null) {
    const words = minute.kind === "all" && hour.kind === "all" && every(second, "second", 60);
    if (words) return words;
    throw new Odd();
  }
  const minutely = every(minute, "minute", 60);
  const often = minutely && at ? `${minutely}, ${at} s past the minute` : minutely;
  const [low, high] = hour.kind === "span" ? [hour.low, hour.high] : [single(hour), single(hour)];
  if (often && hour.kind === "all") return often;
  if (often && low !== null) return `${often} from ${two(low)}:00 to ${two(Number(high))}:59`;
  if (minute.kind !== "list") throw new Odd();
  const minutes = minute.values.map((each) => two(each) + (at ? `:${two(at)}` : ""));
  if (hour.kind === "all") return String(minutes) === "00" ? "every hour, on the hour" : `every hour at ${listed(minutes.map((each) => `:${each}`))}`;
  if (hour.kind === "list" && hour.values.length * minutes.length <= CLOCK_TIMES_MAX) return `at ${listed(hour.values.flatMap((each) => minutes.map((rest) => `${two(each)}:${rest}`)))}`;
  const hourly = every(hour, "hour", 24);
  if (minutes.length === 1 && hour.kind === "span") return `every hour from ${two(hour.low)}:${minutes[0]} to ${two(hour.high)}:${minutes[0]}`;
  if (minutes.length === 1 && hourly) return `${hourly} from 00:${minutes[0]} on`;
  throw new Odd();
}

/** The days of the week that a list of days and spans names, 0 to 6 from Monday; null if it is anything else. @param {string} field @returns {number[] | null} */
export function daysOf(field) {
  if (field === "*" || field === "?") return DAYS.map((_, day) => day);
  const place = (/** @type {string} */ name) => (/^[0-7]$/.test(name) ? (Number(name) + 6) % 7 : DAYS.indexOf(name));
  const spans = field.toLowerCase().split(",").map((part) => part.split("-").map(place));
  if (spans.flat().includes(-1)) return null;
  return [...new Set(spans.flatMap(([first, last = first]) => Array.from({ length: ((last - first + 7) % 7) + 1 }, (_, step) => (first + step) % 7)))].sort();
}

/** Days of the week; null: all. @param {string} text */
function weekdays(text) {
  const name = (/** @type {string} */ each) => {
    const days = daysOf(each);
    if (days?.length !== 1) throw new Odd(text);
    return DAY_NAMES[days[0]];
  };
  const numbered = /^(\w+)#([1-5])$/.exec(text);
  if (numbered) return `on the ${PLACES[Number(numbered[2])]} ${name(numbered[1])} of the month`;
  const last = /^l([0-7])$/.exec(text) || /^([a-z]{3}|[0-7])l$/.exec(text);
  if (last) return `on the last ${name(last[1])} of the month`;
  const days = daysOf(text);
  if (!days) throw new Odd(text);
  if (days.length === 7) return null;
  if (String(days) === "0,1,2,3,4") return "every weekday";
  return /^\w+-\w+$/.test(text) ? text.split("-").map(name).join(" to ") : `every ${listed(days.map((day) => DAY_NAMES[day]))}`;
}

/** Days of the month; null: all. @param {string} text */
function monthdays(text) {
  if (text === "*" || text === "?") return null;
  if (text === "l") return "on the last day of the month";
  if (text === "lw") return "on the last weekday of the month";
  const before = /^l-(\d{1,2})$/.exec(text);
  if (before) return `${counted(Number(before[1]), "day")} before the last of the month`;
  const near = /^(\d{1,2})w$/.exec(text);
  if (near) return `on the weekday nearest to the ${ordinal(Number(near[1]))} of the month`;
  const found = field(text, 1, 31);
  if (found.kind === "span") return `from the ${ordinal(found.low)} to the ${ordinal(found.high)} of the month`;
  if (found.kind === "list") return `on the ${listed(found.values.map(ordinal))} of the month`;
  throw new Odd(text);
}

/** @param {string} text */
function months(text) {
  const found = field(text, 1, 12, MONTHS);
  if (found.kind === "all") return "";
  if (found.kind === "span") return `${MONTH_NAMES[found.low - 1]} to ${MONTH_NAMES[found.high - 1]}`;
  if (found.kind === "list") return listed(found.values.map((each) => MONTH_NAMES[each - 1]));
  throw new Odd(text);
}

/** A cron expression in words, or null if it is too complex.
 * @param {string} expression @param {string} zone @returns {string | null} */
export function cronWords(expression, zone) {
  const text = String(expression).trim().toLowerCase();
  const fields = (/** @type {any} */ (ALIASES)[text] || text).split(/\s+/);
  if (fields.length !== 5 && fields.length !== 6) return null;
  try {
    const [minute, hour] = [field(fields[0], 0, 59), field(fields[1], 0, 23)];
    const when = clock(minute, hour, field(fields[5] || "0", 0, 59));
    const [inMonth, inWeek, month] = [monthdays(fields[2]), weekdays(fields[4]), months(fields[3])];
    // If both are restricted, a day need match only one.
    const days = [inMonth, inWeek].filter(Boolean).join(", and ");
    const isOfMonth = month && days.includes("of the month");
    const ofMonths = isOfMonth ? days.replaceAll("of the month", `of ${month}`) : days;
    const inMonths = month && !isOfMonth ? `in ${month}` : "";
    // The offsets of zones are whole quarters of an hour.
    const isAnywhere = hour.kind === "all" && !days && !month && (minute.kind === "all" || (minute.kind === "step" && 15 % minute.step === 0));
    const where = isAnywhere ? "" : `in ${cityOf(zone)}`;
    const words = when.startsWith("at ") ? `${ofMonths || "every day"} ${when}` : [when, ofMonths].filter(Boolean).join(", ");
    return [words, inMonths, where].filter(Boolean).join(" ");
  } catch (error) {
    if (error instanceof Odd) return null;
    throw error;
  }
}

/** @param {any} part @param {string | null | undefined} next @returns {string} */
function pattern(part, next) {
  switch (part?.type) {
    case "cron":
      return cronWords(part.expression, part.timezone) || `cron ${part.expression} in ${cityOf(part.timezone)}`;
    case "interval":
      return `every ${/** @type {any} */ (SINGLE)[part.every] || part.every}`;
    case "once":
      return `once, ${time(part.at)}`;
    case "times": {
      const all = part.at || [];
      const ahead = all.filter((/** @type {string} */ at) => Date.parse(at) > Date.now()).length;
      return `${counted(all.length, "time")}, ${ahead ? `${number(ahead)} to come${next ? `, next ${time(next)}` : ""}` : "all past"}`;
    }
    case "any":
      return listed((part.of || []).map((/** @type {any} */ each) => pattern(each, next)), "or");
    default:
      return String(part?.type ?? "–");
  }
}

/** The restrictions of a trigger, each in words. @param {any} trigger @returns {string[]} */
function narrowing(trigger) {
  const use = trigger.calendars;
  return [
    trigger.jitter && trigger.jitter !== "0s" ? `up to ${trigger.jitter} later` : "",
    trigger.start_at ? `from ${time(trigger.start_at)} on` : "",
    trigger.end_at ? `until ${time(trigger.end_at)}` : "",
    trigger.max_fires ? `at most ${counted(trigger.max_fires, "fire")}` : "",
    trigger.exclude?.length ? `not in ${counted(trigger.exclude.length, "window")}` : "",
    use?.only?.length ? `only on days of ${listed(use.only)}` : "",
    use?.except?.length ? `not on days of ${listed(use.except)}` : "",
  ].filter(Boolean);
}

/** @param {any} trigger @param {string | null} [next] the next nominal time, if it is known */
export const triggerWords = (trigger, next) => [pattern(trigger, next), ...narrowing(trigger)].join(", ");

/** The distinct zones of a trigger. @param {any} trigger @returns {string[]} */
export const zonesOf = (trigger) =>
  [...new Set(trigger.type === "any" ? trigger.of.map((/** @type {any} */ each) => each.timezone) : [trigger.timezone])].filter(Boolean);

/** The trigger as written, for people who know cron. @param {any} trigger @returns {string} */
function written(trigger) {
  if (trigger.type === "cron") return `${trigger.expression} · ${trigger.timezone || "UTC"}`;
  if (trigger.type === "interval") return `every ${trigger.every}`;
  if (trigger.type === "once") return String(trigger.at);
  return trigger.type === "any" ? trigger.of.map(written).join(" | ") : "";
}

/** In words, and below as written. @param {{trigger: any, next?: string | null}} props */
export const Trigger = ({ trigger, next }) =>
  html`<bdi>${plain(triggerWords(trigger, next), 400)}</bdi><small class="m"><bdi>${plain(written(trigger), 200)}</bdi></small>`;
