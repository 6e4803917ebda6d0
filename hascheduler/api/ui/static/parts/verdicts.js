// Verdicts in words.
import { html } from "../html.js";
import { number, plain, sentence, shortTime, time } from "../format.js";
import { JobLink, State, When } from "./basic.js";

/** Of one schedule, or of all. @typedef {Partial<Wire.VerdictResponse> & Pick<Wire.VerdictResponse, "verdict" | "nominal_at" | "through_at" | "count" | "because_of">} Decided */

/** What each verdict means. @type {Record<string, string>} */
const MEANINGS = {
  fired: "a job was made",
  skipped: "an earlier job of the schedule had not ended",
  missed: "it was decided later than the schedule's grace (misfire.grace): no replica led, or the leader was late",
  coalesced: "it was late; a later fire covers it",
  paused: "the schedule was paused at this time",
  excluded: "it is in an exclusion window, or on a day that the schedule's calendars exclude",
  throttled: "its tenant was at its limit until it was too late",
  unstorable: "its job is too large to store: make the schedule's payload smaller",
};
export const VERDICTS = Object.keys(MEANINGS);
/** The verdicts in lists over all schedules; times that fired have jobs instead. */
export const NOT_FIRED = VERDICTS.filter((verdict) => verdict !== "fired");

/** What the verdict that is filtered by means. @param {{verdict: string}} props */
export const Meaning = ({ verdict }) => verdict && html`<p class="q">${verdict}: ${MEANINGS[verdict] || "an unknown verdict"}.</p>`;

/** Why a time did not fire, or which job it made. @param {{item: Decided}} props */
export function Outcome({ item: { verdict, job, job_state: state, because_of: because, into } }) {
  if (verdict === "fired") return state && job ? html`<${JobLink} id=${job}>Its job<//>` : "Its job is no longer stored.";
  if (verdict === "missed" && because) return "It was decided after its job would have expired (expires_in).";
  const more = verdict === "skipped" && because ? html`: <${JobLink} id=${because}>which it was<//>` : verdict === "throttled" && because ? html`: <code>${plain(because, 80)}</code>` : into ? `: that of ${time(into)}` : "";
  return html`${sentence(MEANINGS[verdict] || plain(because || verdict, 200))}${more}.`;
}

/** The nominal time, or the first and the last of several. @param {{item: Decided, zone?: string}} props */
export const Times = ({ item, zone }) =>
  html`${shortTime(item.nominal_at, zone)}${item.count > 1 ? html` to ${shortTime(item.through_at, zone)}` : ""}<small><${When} at=${item.through_at} zone=${zone} /></small>`;

/** What came of a time: the state of its job, or its verdict. @param {{item: Decided}} props */
export const Verdict = ({ item }) => html`<${State} state=${(item.verdict === "fired" && item.job_state) || item.verdict} />${item.count > 1 ? html` <span class="n">× ${number(item.count)}</span>` : ""}`;
