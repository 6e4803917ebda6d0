// Timeline: what fired and what is to come, a day each on one axis, and whether there are slots for it.
import { html } from "../html.js";
import { useData } from "../data.js";
import { HOUR_MS, clock, counted, number, plain, shortTime, span } from "../format.js";
import { Pages, ScheduleLink, State, loaded, table } from "../parts/basic.js";
import { Glyph, StripLegend } from "../parts/charts.js";
import { Find } from "../parts/filters.js";
import { place, to } from "../router.js";

const PAGE = 25;
const EVERY_MS = 15_000;
const GRID_MS = 6 * HOUR_MS;
const BAR_MS = HOUR_MS / 2;
const PLOT = 150;
const NAMED_MAX = 3;
/** How close to the end or to now a label of the axis may be, in per cent of it. */
const NEAR = 9;
const CLOSE = 1.2;

/** A time in which more slots are wanted than there are. @typedef {{definition: string | null, slots: number, wanted: number, from: number, to: number}} Excess */
/** From `page.from_ms` to `page.to_ms` in per cent. @typedef {(at: number) => number} Scale */

export default function Timeline() {
  const { query } = place.value;
  const asked = useData("/v1/timeline", { text: query.get("text"), label: query.getAll("label"), after: query.get("after"), limit: PAGE }, { everyMs: EVERY_MS });
  return loaded(asked, (page) => html`<${Shown} page=${page} />`);
}

/** @param {{page: Wire.TimelineResponse}} props */
function Shown({ page }) {
  const x = (/** @type {number} */ at) => (100 * (at - page.from_ms)) / (page.to_ms - page.from_ms);
  const excesses = excessesOf(page.load);
  return html`<${Outlook} page=${page} excesses=${excesses} />
    <section class="sec"><div class="top"><h2>Slots <small>in use, the last 24 h · wanted, the next 24 h</small></h2><p class="q">half an hour a bar</p></div>
      <${Load} page=${page} x=${x} excesses=${excesses} />
      <p class="q">Wanted: fires to come, by how long their jobs have run. Jobs that clients submit are not foreseen.${page.load.used.some((each) => each !== null) ? "" : " In use: no record, as the replica that answers has just started, or your token is of one tenant."}</p></section>
    <section class="sec"><div class="top"><h2>Schedules <small>those with trouble first on each page</small></h2></div>
      <${Find} label="Find schedules" placeholder="Name, or a filter such as label:team=a" fields=${[{ name: "text", label: "name" }, { name: "label", kind: "many" }]} />
      <${Rows} page=${page} x=${x} /><${Pages} page=${page} /></section>`;
}

/** @param {Wire.TimelineResponse["load"]} load @returns {Excess[]} all jobs first, then by time */
function excessesOf(load) {
  /** @type {Excess[]} */
  const found = [];
  for (const { definition, slots, needed } of load.items) {
    for (let first = 0; first < needed.length; first += 1) {
      if (needed[first] <= slots) continue;
      let end = first;
      while (end < needed.length && needed[end] > slots) end += 1;
      found.push({ definition, slots, wanted: Math.max(...needed.slice(first, end)), from: load.from_ms + first * load.bucket_ms, to: load.from_ms + end * load.bucket_ms });
      first = end;
    }
  }
  return found.sort((one, other) => Number(one.definition !== null) - Number(other.definition !== null) || one.from - other.from);
}

/** The verdict on the next day. @param {{page: Wire.TimelineResponse, excesses: Excess[]}} props */
function Outlook({ page, excesses }) {
  const { load } = page;
  const all = load.items[0];
  const most = Math.max(0, ...(all?.needed || []));
  const leftOut = load.left_out ? ` ${counted(load.left_out, "schedule")} could not be counted.` : "";
  const [worst, ...others] = excesses;
  if (!worst) {
    const isSure = all && !load.left_out;
    return html`<div class="verdict"><h1><span class=${isSure ? "s ok good" : "s dash warn"}>${isSure ? "There is room for every fire of the next 24 h" : "There may be room for the next 24 h"}</span></h1>
      <p>At most ${number(most)} of ${counted(all?.slots || 0, "slot")} ${most === 1 ? "is" : "are"} wanted at once.${leftOut}</p></div>`;
  }
  const whole = worst.from <= Date.parse(page.now) && worst.to >= page.to_ms - load.bucket_ms;
  const when = whole ? "All day" : worst.from <= Date.parse(page.now) ? `Until ${shortTime(worst.to)}` : `From ${shortTime(worst.from)} to ${clock(worst.to)}`;
  const title = worst.definition === null
    ? `${counted(worst.wanted, "slot")} ${worst.wanted === 1 ? "is" : "are"} wanted, and ${worst.slots ? number(worst.slots) : "none"} ${worst.slots > 1 ? "are" : "is"} there`
    : html`<bdi>${plain(worst.definition, 60)}</bdi> wants ${counted(worst.wanted, "slot")}, and its limit is ${number(worst.slots)}`;
  return html`<div class="verdict"><h1><span class=${worst.slots ? "s tri warn" : "s x bad"}>${title}</span></h1>
    <p>${when} jobs will wait. ${worst.definition === null && html`<${Causes} page=${page} excess=${worst} />`}${others.slice(0, NAMED_MAX).map((each) => html` ${shortTime(each.from)} to ${clock(each.to)}: ${number(each.wanted)} of ${counted(each.slots, "slot")}${each.definition === null ? "" : html` for <bdi>${plain(each.definition, 60)}</bdi>`}.`)}${others.length > NAMED_MAX ? ` And ${counted(others.length - NAMED_MAX, "more time", "more times")}.` : ""}${leftOut}</p></div>`;
}

/** The schedules of this page that want most then. @param {{page: Wire.TimelineResponse, excess: Excess}} props */
function Causes({ page, excess }) {
  const share = (/** @type {Wire.ScheduleTimeline} */ row) => {
    const fires = row.ahead_ms.length ? row.ahead_ms.filter((at) => at < excess.to && at + row.expected_ms > excess.from).length : (row.ahead_count * (excess.to - excess.from)) / (24 * HOUR_MS);
    return (fires * row.expected_ms) / Math.max(excess.to - excess.from, row.expected_ms);
  };
  const most = page.items.map((row) => ({ name: row.name, share: share(row) })).filter((each) => each.share > 0).sort((one, other) => other.share - one.share);
  if (!most.length) return null;
  return html`Most of it${page.next ? ", on this page" : ""}: ${most.slice(0, NAMED_MAX).map(({ name }, row) => html`${row ? ", " : ""}<${ScheduleLink} name=${name} />`)}${most.length > NAMED_MAX ? ` and ${number(most.length - NAMED_MAX)} more` : ""}.`;
}

/** The lines of the axis and their labels. @param {{page: Wire.TimelineResponse, x: Scale, y: number, height: number}} props  `y`: of the labels, 0 for none */
function Grid({ page, x, y, height }) {
  const now = Date.parse(page.now);
  const offset = new Date(now).getTimezoneOffset() * 60_000;
  const lines = [];
  for (let at = Math.ceil((page.from_ms - offset) / GRID_MS) * GRID_MS + offset; at <= page.to_ms; at += GRID_MS) {
    const [place, text] = [`${x(at)}%`, clock(at)];
    const hasRoom = Math.abs(x(at) - x(now)) > NEAR && x(at) > NEAR / 2 && x(at) < 100 - NEAR / 2;
    const day = text === "00:00" ? `${new Date(at).toLocaleDateString("en-GB", { weekday: "short" })} ` : "";
    if (height) lines.push(html`<line class="grid" x1=${place} x2=${place} y1="0" y2=${height} />`);
    if (y && hasRoom) lines.push(html`<text class=${text === "00:00" || text === "12:00" ? "" : "drop"} x=${place} y=${y} text-anchor="middle">${day}${text}</text>`);
  }
  return lines;
}

/** The largest value of each half hour, as bars. @param {(number | null)[]} values @param {number} from @param {number} everyMs */
function bars(values, from, everyMs) {
  /** @type {Map<number, number>} */
  const found = new Map();
  values.forEach((value, place) => {
    const at = Math.floor((from + place * everyMs) / BAR_MS) * BAR_MS;
    if (value !== null) found.set(at, Math.max(found.get(at) || 0, value));
  });
  return [...found];
}

/** @param {{page: Wire.TimelineResponse, x: Scale, excesses: Excess[]}} props */
function Load({ page, x, excesses }) {
  const { load } = page;
  const all = load.items[0];
  const now = Date.parse(page.now);
  const { used } = load;
  const ahead = bars(all?.needed || [], load.from_ms, load.bucket_ms).filter(([at]) => at + BAR_MS <= page.to_ms + BAR_MS / 2);
  const past = bars(used, load.from_ms - used.length * load.bucket_ms, load.bucket_ms).filter(([at]) => at >= page.from_ms);
  const slots = all?.slots || 0;
  const top = Math.max(1, slots, ...ahead.map(([, value]) => value), ...past.map(([, value]) => value)) * 1.15;
  const y = (/** @type {number} */ value) => PLOT - (PLOT * value) / top;
  const peak = ahead.reduce((most, each) => (each[1] > most[1] ? each : most), [0, 0]);
  const isOver = peak[1] > slots;
  const bar = (/** @type {string} */ kind, /** @type {number} */ at, /** @type {number} */ value, base = 0) =>
    html`<rect class=${kind} x=${`${x(Math.max(at, kind === "bar" ? page.from_ms : now))}%`} width=".8%" y=${y(value)} height=${y(base) - y(value)} />`;
  const words = `Slots in use in the last 24 hours and wanted in the next 24 hours, against ${counted(slots, "slot")}. ${excesses.length ? `More are wanted than there are from ${shortTime(excesses[0].from)} on.` : `At most ${number(peak[1])} are wanted.`}`;
  return html`<svg class="load" role="img" aria-label=${words}><${Grid} page=${page} x=${x} y=${PLOT + 16} height=${PLOT} />
    ${past.map(([at, value]) => value > 0 && bar("bar", at, value))}
    ${ahead.map(([at, value]) => html`${value > 0 && bar("fut", at, Math.min(value, slots))}${value > slots && bar("over", at, value, slots)}`)}
    <line class="cap" x1="0" x2="100%" y1=${y(slots)} y2=${y(slots)} /><text x="4" y=${y(slots) - 6}>${counted(slots, "slot")}</text>
    ${isOver && html`<text class="lab" x=${`${Math.min(98, x(peak[0]) - 0.6)}%`} y=${Math.max(10, y(peak[1]) + 10)} text-anchor=${x(peak[0]) > 56 ? "end" : "start"}>${number(peak[1])} wanted</text>`}
    <line class="nowl" x1=${`${x(now)}%`} x2=${`${x(now)}%`} y1="-4" y2=${PLOT} /><text class="lab" x=${`${x(now)}%`} y=${PLOT + 16} text-anchor="middle">now</text></svg>`;
}

/** @param {{page: Wire.TimelineResponse, x: Scale}} props */
function Rows({ page, x }) {
  const rank = (/** @type {Wire.ScheduleTimeline} */ row) => {
    const { failed, missed, late } = countsOf(row);
    return failed || missed || row.note ? 0 : late ? 1 : row.paused ? 3 : 2;
  };
  const items = [...page.items].sort((one, other) => rank(one) - rank(other));
  const axis = html`<span class="hide">From 24 h ago to 24 h ahead</span><svg class="axis" aria-hidden="true"><${Grid} page=${page} x=${x} y=${15} height=${0} /><text class="lab" x=${`${x(Date.parse(page.now))}%`} y="15" text-anchor="middle">now</text></svg>`;
  return html`<div class="lines">${table({ label: "Schedules, a line each", items, none: html`No schedule matches. <a href=${to("schedule-new")}>Create one</a>.`, columns: [
    { head: "Schedule", row: true, show: (row) => html`<${ScheduleLink} name=${row.name} />` },
    { head: axis, cell: "ax full", show: (row) => html`<${Line} row=${row} page=${page} x=${x} />` },
    { head: "In numbers", cell: "full", show: (row) => html`<${Numbers} row=${row} />` },
  ] })}</div>${items.length > 0 && html`<${StripLegend} outcomes=${["fired", "late", "failed or missed", "skipped", "to come"]} />`}`;
}

/** How many fires of a row came to what. @param {Wire.ScheduleTimeline} row */
function countsOf(row) {
  const sum = (/** @type {number} */ place) => row.fired.reduce((total, bucket) => total + (bucket[place] || 0), 0);
  /** @type {Record<string, number>} */
  const others = {};
  for (const { verdict, count } of row.passed_over) others[verdict] = (others[verdict] || 0) + count;
  const { missed = 0, unstorable = 0, ...rest } = others;
  return { fired: sum(1), late: sum(2), failed: sum(3), missed: missed + unstorable, rest };
}

/** @param {{row: Wire.ScheduleTimeline}} props */
function Numbers({ row }) {
  const { fired, late, failed, missed, rest } = countsOf(row);
  const trouble = [
    failed > 0 && html`<${State} state="failed" word=${`${number(failed)} failed`} />`,
    missed > 0 && html`<${State} state="missed" word=${`${number(missed)} missed`} />`,
    late > 0 && html`<${State} state="late" word=${`${number(late)} late`} />`,
    row.paused && html`<${State} state="paused" />`,
  ].filter(Boolean);
  const words = [fired > 0 && `${number(fired)} fired`, ...Object.entries(rest).map(([verdict, count]) => `${number(count)} ${verdict}`), row.ahead_count > 0 && `${number(row.ahead_count)} to come`].filter(Boolean).join(", ");
  return html`${trouble.map((each, place) => html`${place > 0 && ", "}${each}`)}${trouble.length && words ? ", " : ""}${words || (!trouble.length && "no fire in this time")}
    <small>${row.note ? html`<span class="bad">${plain(row.note, 120)}</span>` : row.ahead_count > 0 && `about ${span(row.expected_ms)} each`}</small>`;
}

/** Places that are closer than marks are wide, as one band each. @param {number[]} places @returns {[number, number][]} */
function groups(places) {
  /** @type {[number, number][]} */
  const found = [];
  for (const place of places) {
    const last = found.at(-1);
    if (last && place - last[1] < CLOSE) last[1] = place;
    else found.push([place, place]);
  }
  return found;
}

/** The buckets of the past of a row that have a fire of each kind. @param {Wire.ScheduleTimeline} row @param {Wire.TimelineResponse} page */
function kindsOf(row, page) {
  const kinds = { ok: new Set(), off: new Set(), late: new Set(), bad: new Set() };
  for (const [bucket, fired, late = 0, failed = 0] of row.fired) {
    if (fired > late + failed) kinds.ok.add(bucket);
    if (late) kinds.late.add(bucket);
    if (failed) kinds.bad.add(bucket);
  }
  const bucketOf = (/** @type {number} */ at) => Math.max(0, Math.floor((at - page.from_ms) / page.bucket_ms));
  for (const { verdict, from_ms, to_ms } of row.passed_over) {
    const kind = verdict === "missed" || verdict === "unstorable" ? kinds.bad : kinds.off;
    for (let bucket = bucketOf(from_ms); bucket <= bucketOf(to_ms); bucket += 1) kind.add(bucket);
  }
  return Object.entries(kinds);
}

const BANDS = /** @type {Record<string, string>} */ ({ ok: "k-ok", off: "k-o", late: "k-late", bad: "k-x" });

/** @param {{row: Wire.ScheduleTimeline, page: Wire.TimelineResponse, x: Scale}} props */
function Line({ row, page, x }) {
  const now = Date.parse(page.now);
  const { fired, late, failed, missed } = countsOf(row);
  const words = `${counted(fired, "fire")}, ${number(failed)} failed, ${number(missed)} missed, ${number(late)} late; ${row.paused ? "paused" : `${number(row.ahead_count)} to come`}`;
  const middle = (/** @type {number} */ bucket) => Math.min(x(now), x(page.from_ms + (bucket + 0.5) * page.bucket_ms));
  return html`<svg class="axis" role="img" aria-label=${words}><${Grid} page=${page} x=${x} y=${0} height=${22} />
    ${row.known_since_ms > page.from_ms && html`<rect class="k-z" x="0" width=${`${x(row.known_since_ms)}%`} y="10" height="2" />`}
    ${kindsOf(row, page).flatMap(([kind, buckets]) => groups([...buckets].sort((one, other) => one - other).map(middle)).map(([first, last]) => html`
      ${last > first && html`<rect class=${BANDS[kind]} x=${`${first}%`} width=${`${last - first}%`} y=${kind === "ok" ? 7 : 9} height=${kind === "ok" ? 8 : 4} rx="2" />`}
      ${(kind !== "ok" || last === first) && html`<${Mark} kind=${kind} x=${`${(first + last) / 2}%`} />`}`))}
    ${row.ahead_ms.length
      ? groups(row.ahead_ms.map(x)).map(([first, last]) => html`<rect class="k-next" x=${`${first}%`} width=${last > first ? `${last - first}%` : "4"} y=${last > first ? 7 : 5.5} height=${last > first ? 8 : 11} rx="1" />`)
      : row.ahead_count > 0 && html`<rect class="k-next" x=${`${x(now) + 0.3}%`} width=${`${99.7 - x(now)}%`} y="7" height="8" rx="2" />`}
    <line class="nowl" x1=${`${x(now)}%`} x2=${`${x(now)}%`} y1="-8" y2="30" /></svg>`;
}

/** The shape of a kind, on the ground so that it can be seen on a band. @param {{kind: string, x: string}} props */
const Mark = ({ kind, x }) => html`<svg x=${x} y="1" overflow="visible">
  ${kind !== "ok" && html`<rect class="k-g" x="-7" y="3" width="14" height="14" />`}<g transform="scale(1.25) translate(-3.5)"><${Glyph} kind=${kind} x=${0} /></g></svg>`;
