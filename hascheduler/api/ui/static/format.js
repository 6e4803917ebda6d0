// Numbers, durations and instants for people; titles show the exact value.

const NUMBER = new Intl.NumberFormat("en");
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const YEAR_SHOWN_MS = 180 * DAY_MS;

/** @param {number | bigint | null | undefined} value */
export const number = (value) => (value === null || value === undefined ? "–" : NUMBER.format(value));

/** @param {number} count @param {string} noun @param {string} [nouns] */
export const counted = (count, noun, nouns) => `${number(count)} ${count === 1 ? noun : nouns || `${noun}s`}`;

/** Milliseconds in at most two units. @param {number | null | undefined} ms @returns {string} */
export function span(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 0) return `-${span(-ms)}`;
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < MINUTE_MS) return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const [whole, unit, rest, part] =
    ms < HOUR_MS
      ? [ms / MINUTE_MS, "min", (ms % MINUTE_MS) / 1_000, "s"]
      : ms < DAY_MS
        ? [ms / HOUR_MS, "h", (ms % HOUR_MS) / MINUTE_MS, "min"]
        : [ms / DAY_MS, "d", (ms % DAY_MS) / HOUR_MS, "h"];
  const more = Math.floor(Number(rest));
  return `${Math.floor(Number(whole))} ${unit}${more ? ` ${more} ${part}` : ""}`;
}

/** How long until an instant, in whole seconds. @param {string} instant @param {number} now */
export const left = (instant, now) => {
  const ms = Date.parse(instant) - now;
  return ms < 1_000 ? "0 s" : ms < 10_000 ? `${Math.floor(ms / 1_000)} s` : span(ms);
};

/** How long ago, or in how long. @param {string | null | undefined} instant @param {number} [now] */
export function ago(instant, now = Date.now()) {
  if (!instant) return "–";
  const ms = now - Date.parse(instant);
  if (Math.abs(ms) < 1_000) return "now";
  return ms >= 0 ? `${span(ms)} ago` : `in ${span(-ms)}`;
}

/** In the viewer's zone or the given one; with the year if it is far from now. @param {string | null | undefined} instant @param {string} [zone] */
export function time(instant, zone) {
  if (!instant) return "–";
  const isFar = Math.abs(Date.parse(instant) - Date.now()) > YEAR_SHOWN_MS;
  try {
    return new Intl.DateTimeFormat("en-GB", {
      timeZone: zone,
      weekday: "short",
      day: "2-digit",
      month: "short",
      year: isFar ? "numeric" : undefined,
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
      hourCycle: "h23",
    }).format(new Date(instant));
  } catch {
    return instant; // a zone that this browser does not know
  }
}

/** The time of the day alone, in the viewer's zone. @param {number} ms */
export const clock = (ms) => new Date(ms).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });

/** As short as it is clear: "08:14:32" of today, "Mon 02:30" within six days, else "06 Dec 02:30", in the given zone or the viewer's.
 * @param {string | number} instant @param {string} [zone] */
export function shortTime(instant, zone) {
  const at = new Date(instant);
  const day = (/** @type {Date} */ each) => each.toLocaleDateString("en-GB", { timeZone: zone });
  const far = Math.abs(+at - Date.now());
  try {
    const isToday = day(at) === day(new Date());
    /** @type {Intl.DateTimeFormatOptions} */
    const date = isToday ? { second: "2-digit" } : far < 6 * DAY_MS ? { weekday: "short" } : { day: "2-digit", month: "short", year: far > YEAR_SHOWN_MS ? "numeric" : undefined };
    return at.toLocaleString("en-GB", { timeZone: zone, hour: "2-digit", minute: "2-digit", hourCycle: "h23", ...date }).replace(",", "");
  } catch {
    return String(instant); // a zone that this browser does not know
  }
}

const SPAN_MS = { s: 1_000, m: MINUTE_MS, h: HOUR_MS, d: DAY_MS, w: 7 * DAY_MS };

/** The instant that a person types: a time ago ("90m", "2h", "7d"), or a date with or without a time; null if it is neither.
 * @param {string} text @param {number} [now] */
export function instantOf(text, now = Date.now()) {
  const ago = /^(\d{1,6})([smhdw])$/.exec(text.trim());
  const ms = ago ? now - Number(ago[1]) * SPAN_MS[/** @type {keyof typeof SPAN_MS} */ (ago[2])] : Date.parse(text.trim().replace(/^(\d{4}-\d{2}-\d{2})$/, "$1T00:00"));
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
