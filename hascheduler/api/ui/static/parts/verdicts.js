// Verdicts in words, and a schedule's latest verdicts as a strip of signs.
import { html, useEffect, useRef, useState } from "../html.js";
import { segment } from "../api.js";
import { number, plain, time } from "../format.js";
import { useData } from "../query.js";
import { Failure, JobLink, State, When, sign } from "./basic.js";

/** @typedef {import("../wire.js").VerdictResponse} Item */
/** Of one schedule, or of all. @typedef {Partial<Item> & Pick<Item, "verdict" | "nominal_at" | "through_at" | "count" | "because_of">} Decided */

/** What each verdict means. */
export const MEANINGS = {
  fired: "a job was made",
  skipped: "an earlier job of the schedule had not ended",
  missed: "it was decided later than the schedule's grace: no replica led, or the leader was late",
  coalesced: "it was late, and a later fire covers it",
  paused: "the schedule was paused",
  excluded: "it is in an exclusion window, or on a day that its calendars exclude",
  throttled: "its tenant was at a limit until it was too late",
  unstorable: "its job is too large to store",
};
export const VERDICTS = Object.keys(MEANINGS);
/** The verdicts in lists over all schedules; times that fired have jobs instead. */
export const NOT_FIRED = VERDICTS.filter((verdict) => verdict !== "fired");
const STRIP_MAX = 20;
const AGAIN_MS = 10_000;

/** Signs of fires by the state of their jobs. */
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
      return item.job ? html`${item.job_state ? html`<${State} state=${item.job_state} /> ` : html`<span class="dim">no longer stored </span>`}<${JobLink} id=${item.job} />` : "A job was made.";
    case "skipped":
      return html`An earlier job of the schedule had not ended${item.because_of ? html`: <${JobLink} id=${item.because_of} />` : ""}.`;
    case "missed":
      if (item.because_of) return "It was decided after its job would have expired (expires_in).";
      return "No replica decided it within the schedule's grace (misfire.grace).";
    case "coalesced":
      return html`It was late; a later fire covers it${item.into ? html`: that of ${time(item.into)}` : ""}.`;
    case "paused":
      return "The schedule was paused at this time.";
    case "excluded":
      return "It is in an exclusion window, or on a day that the schedule's calendars exclude.";
    case "throttled":
      return html`Its tenant was at its limit${item.because_of ? html` <code>${plain(item.because_of, 80)}</code>` : ""} until it was too late.`;
    case "unstorable":
      return "Its job is too large to store: make the schedule's payload smaller.";
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

/** True once an element has been visible, so that nothing is requested for those never scrolled to.
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
 * The latest twenty verdicts of a schedule, the newest at the right; requested when they become visible, and again when
 * the schedule's counts have changed, at most every ten seconds.
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
  <li><${State} state="fired" word="fired; its job succeeded or is no longer stored" /></li>
  ${Object.entries(OF_JOBS).map(([state, [mark, kind]]) => html`<li><span class=${`state ${kind}`}><span aria-hidden="true">${mark}</span> fired, job ${state}</span></li>`)}
  ${NOT_FIRED.map((verdict) => html`<li><${State} state=${verdict} word=${`${verdict}: ${/** @type {any} */ (MEANINGS)[verdict]}`} /></li>`)}
</ul></details>`;
