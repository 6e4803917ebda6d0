// Verdicts in words: what became of a nominal time, and why; the last of a schedule as a strip of signs.
import { html, useEffect, useRef, useState } from "../html.js";
import { segment } from "../api.js";
import { number, plain, time } from "../format.js";
import { useData } from "../query.js";
import { Failure, JobLink, State, When, sign } from "./basic.js";

/** @typedef {import("../wire.js").VerdictResponse} Item */
/** Of one schedule, or of all. @typedef {Partial<Item> & Pick<Item, "verdict" | "nominal_at" | "through_at" | "count" | "because_of">} Decided */

/** What each means, for people. */
export const MEANINGS = {
  fired: "a job was made",
  skipped: "an earlier job of the schedule had not ended",
  missed: "it was decided later than the schedule's grace allows: no replica led, or the leader was too late",
  coalesced: "it was late, and a later fire stands for it too",
  paused: "the schedule was paused",
  excluded: "it lies in an exclusion window, or on a day that its calendars leave out",
  throttled: "its tenant was at a limit, and no room came in time",
  unstorable: "no database can hold its job",
};
export const VERDICTS = Object.keys(MEANINGS);
/** Times that fired have jobs: lists of verdicts over all schedules have the others. */
export const NOT_FIRED = VERDICTS.filter((verdict) => verdict !== "fired");
const STRIP_MAX = 20;
const AGAIN_MS = 10_000;

/** Signs of fires by what became of their jobs; a fire whose job failed has a sign of its own. */
const OF_JOBS = {
  pending: ["◌", "wait"],
  dispatched: ["◔", "run"],
  running: ["◑", "run"],
  failed: ["▼", "bad"],
  cancelled: ["⊖", "off"],
};

/** @param {Item} item */
const signOf = (item) => (item.verdict === "fired" && /** @type {any} */ (OF_JOBS)[item.job_state || ""]) || sign(item.verdict);

/** Why a time did not fire, or which job it made. @param {{item: Decided}} props */
export function Outcome({ item }) {
  switch (item.verdict) {
    case "fired":
      return item.job ? html`${item.job_state ? html`<${State} state=${item.job_state} /> ` : html`<span class="dim">no longer kept </span>`}<${JobLink} id=${item.job} />` : "A job was made.";
    case "skipped":
      return html`An earlier job of the schedule had not ended${item.because_of ? html`: <${JobLink} id=${item.because_of} />` : ""}.`;
    case "missed":
      if (item.because_of) return "It was decided later than its job may begin (expires_in).";
      return "No replica decided it within the schedule's grace (misfire.grace).";
    case "coalesced":
      return html`It was late; the next fire stands for it too${item.into ? html`: that of ${time(item.into)}` : ""}.`;
    case "paused":
      return "The schedule was paused then, and resumed from a later time on.";
    case "excluded":
      return "It lies in an exclusion window, or on a day that the schedule's calendars leave out.";
    case "throttled":
      return html`Its tenant was at its limit${item.because_of ? html` <code>${plain(item.because_of, 80)}</code>` : ""}, and no room came in time.`;
    case "unstorable":
      return "No database can hold its job: look at the schedule's payload.";
    default:
      return plain(item.because_of || "", 200);
  }
}

/** The nominal time, or the first and the last of several. @param {{item: Decided, zone?: string}} props */
export const Times = ({ item, zone }) =>
  html`${time(item.nominal_at, zone)}${item.count > 1 ? html` to ${time(item.through_at, zone)}` : ""} <span class="dim"><${When} at=${item.through_at} zone=${zone} /></span>`;

/** @param {{item: Decided}} props */
export const Verdict = ({ item }) =>
  html`<${State} state=${item.verdict} title=${/** @type {any} */ (MEANINGS)[item.verdict]} />${item.count > 1 ? html` <span class="number">× ${number(item.count)}</span>` : ""}`;

/** @param {Item} item */
function inOneLine(item) {
  const many = item.count > 1 ? `${number(item.count)} times, ` : "";
  const became = item.verdict === "fired" && item.job_state ? `fired, job ${item.job_state}` : item.verdict;
  return `${time(item.nominal_at)}: ${many}${became}`;
}

/** Whether an element was in sight, so that what nobody scrolls to is not asked for.
 * @param {{current: Element | null}} element */
export function useSeen(element) {
  const [seen, see] = useState(false);
  useEffect(() => {
    if (seen || !element.current) return undefined;
    const observer = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && see(true));
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [seen]);
  return seen;
}

/**
 * The last twenty verdicts of a schedule, the newest at the right; asked for when they come in sight, and again when
 * the schedule's counts have changed, which of a schedule of every second is not each time.
 * @param {{schedule: import("../wire.js").ScheduleResponse}} props
 */
export function Strip({ schedule }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  /** @type {import("../query.js").Asked<import("../wire.js").VerdictsResponse>} */
  const asked = useData(useSeen(box) ? `/v1/schedules/${segment(schedule.name)}/verdicts` : null, { limit: STRIP_MAX }, { everyMs: 0 });
  const counts = Object.values(schedule.counts).join();
  const known = useRef({ counts, at: Date.now() });
  useEffect(() => {
    if (known.current.counts === counts) return undefined;
    const timer = setTimeout(() => {
      known.current = { counts, at: Date.now() };
      asked.reload();
    }, Math.max(0, known.current.at + AGAIN_MS - Date.now()));
    return () => clearTimeout(timer);
  }, [counts]);
  const items = [...(asked.data?.items || [])].reverse();
  return html`<div ref=${box}>${asked.error ? html`<${Failure} error=${asked.error} />` : items.length
    ? html`<ol class="strip">${items.map((item) => {
        const [mark, kind] = signOf(item);
        return html`<li class=${kind} title=${inOneLine(item)}><span aria-hidden="true">${mark}</span><span class="hidden">${inOneLine(item)}</span></li>`;
      })}</ol>`
    : html`<span class="dim">${asked.data ? "nothing decided yet" : "…"}</span>`}</div>`;
}

/** What the signs of strips mean. */
export const StripLegend = () => html`<details class="dim"><summary>What the signs mean</summary><ul class="legend">
  <li><${State} state="fired" word="fired, and its job succeeded, or is no longer kept" /></li>
  ${Object.entries(OF_JOBS).map(([state, [mark, kind]]) => html`<li><span class=${`state ${kind}`}><span aria-hidden="true">${mark}</span> fired, job ${state}</span></li>`)}
  ${NOT_FIRED.map((verdict) => html`<li><${State} state=${verdict} word=${`${verdict}: ${/** @type {any} */ (MEANINGS)[verdict]}`} /></li>`)}
</ul></details>`;
