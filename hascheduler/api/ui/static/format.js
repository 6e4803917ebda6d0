// Numbers, durations and instants for people; titles show the exact value.

const NUMBER = new Intl.NumberFormat("en");
const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const YEAR_SHOWN_MS = 180 * DAY_MS;

/** A text, such as "1,000+", is as it is. @param {number | bigint | string | null | undefined} value */
export const number = (value) => (value === null || value === undefined ? "–" : typeof value === "string" ? value : NUMBER.format(value));

/** @param {number} count @param {string} noun @param {string} [nouns] */
export const counted = (count, noun, nouns) => `${number(count)} ${count === 1 ? noun : nouns || `${noun}s`}`;

const UNITS_MS = /** @type {Record<string, number>} */ ({ d: DAY_MS, h: HOUR_MS, m: MINUTE_MS, s: 1_000, ms: 1 });

/** A span as the API and the command line write it, in at most two units: "1m30s", or "1.5s" below ten seconds.
 * @param {number | null | undefined} ms @returns {string} */
export function span(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 0) return `-${span(-ms)}`;
  if (ms >= 1_000 && ms < 9_950) return `${Number((ms / 1_000).toFixed(1))}s`;
  let rest = ms < 1_000 ? Math.round(ms) : Math.round(ms / 1_000) * 1_000;
  const parts = Object.entries(UNITS_MS).map(([unit, size]) => {
    const count = Math.floor(rest / size);
    rest -= count * size;
    return count ? `${count}${unit}` : "";
  });
  const first = parts.findIndex(Boolean);
  return first < 0 ? "0s" : parts.slice(first, first < 3 ? first + 2 : first + 1).join("");
}

const SPAN = /(\d+(?:\.\d+)?)(ms|w|d|h|m|s)/g;

/** "1m30s" in milliseconds. @param {string} text */
export const spanMs = (text) => [...String(text).matchAll(SPAN)].reduce((sum, [, count, unit]) => sum + Number(count) * (unit === "w" ? 7 * DAY_MS : UNITS_MS[unit]), 0);

/** The text with a capital. @param {string} text */
export const sentence = (text) => text.replace(/^[a-z]/, (first) => first.toUpperCase());

/** A span in whole seconds. @param {number} ms */
export const seconds = (ms) => span(Math.max(0, Math.floor(ms / 1_000) * 1_000));

/** How long until an instant. @param {string} instant @param {number} now */
export const left = (instant, now) => seconds(Date.parse(instant) - now);

/** How long ago, or in how long. @param {string | null | undefined} instant @param {number} [now] */
export function ago(instant, now = Date.now()) {
  if (!instant) return "–";
  const ms = now - Date.parse(instant);
  if (Math.abs(ms) < 1_000) return "now";
  return ms >= 0 ? `${span(ms)} ago` : `in ${span(-ms)}`;
}

/** An instant in the given zone or the viewer's; as it is if this browser does not know the zone.
 * @param {string | number} instant @param {string | undefined} zone @param {Intl.DateTimeFormatOptions} options */
export function written(instant, zone, options) {
  try {
    return new Intl.DateTimeFormat("en-GB", { timeZone: zone, hourCycle: "h23", ...options }).format(new Date(instant)).replace(/,(?= \d\d:\d\d$)/, "");
  } catch {
    return String(instant);
  }
}

/** The year, if the instant is far from now. @param {string | number} instant */
export const farYear = (instant) => (Math.abs(+new Date(instant) - Date.now()) > YEAR_SHOWN_MS ? "numeric" : undefined);
const CLOCK = /** @type {const} */ ({ hour: "2-digit", minute: "2-digit" });

/** In the viewer's zone or the given one; with the year if it is far from now. @param {string | null | undefined} instant @param {string} [zone] */
export const time = (instant, zone) =>
  instant ? written(instant, zone, { weekday: "short", day: "2-digit", month: "short", year: farYear(instant), ...CLOCK, second: "2-digit" }) : "–";

/** The time of the day alone, in the viewer's zone. @param {number} ms */
export const clock = (ms) => written(ms, undefined, CLOCK);

/** As short as it is clear: "08:14:32" of today, "Mon 02:30" within six days, else "06 Dec 02:30", in the given zone or the viewer's.
 * @param {string | number} instant @param {string} [zone] */
export function shortTime(instant, zone) {
  const day = (/** @type {string | number} */ at) => written(at, zone, { dateStyle: "short" });
  const isNear = Math.abs(+new Date(instant) - Date.now()) < 6 * DAY_MS;
  if (day(instant) === day(Date.now())) return written(instant, zone, { ...CLOCK, second: "2-digit" });
  return written(instant, zone, { ...(isNear ? { weekday: "short" } : { day: "2-digit", month: "short", year: farYear(instant) }), ...CLOCK });
}

/** The instant that a person types: a time ago ("90m", "2h", "7d"), or a date with or without a time; null if it is neither.
 * @param {string} text @param {number} [now] */
export function instantOf(text, now = Date.now()) {
  const typed = text.trim();
  const ms = /^\d{1,6}[smhdw]$/.test(typed) ? now - spanMs(typed) : Date.parse(typed.replace(/^(\d{4}-\d{2}-\d{2})$/, "$1T00:00"));
  return Number.isNaN(ms) ? null : new Date(ms).toISOString();
}

export const myZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Text that can't disturb the page: control and direction characters are made visible.
 * @param {unknown} text @param {number} [most] */
export function plain(text, most = 2_000) {
  const whole = String(text ?? "");
  const shown = whole.length > most ? `${whole.slice(0, most)}… (${number(whole.length)} characters)` : whole;
  return shown.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, (found) => {
    const code = found.codePointAt(0) || 0;
    return code < 0x20 ? String.fromCodePoint(0x2400 + code) : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}
