// Verdicts in words.
import { html, useEffect, useState } from "../html.js";
import { number, plain, shortTime, time } from "../format.js";
import { JobLink, State, When } from "./basic.js";

/** Of one schedule, or of all. @typedef {import("../wire.js").VerdictResponse} Item
 * @typedef {Partial<Item> & Pick<Item, "verdict" | "nominal_at" | "through_at" | "count" | "because_of">} Decided */

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

/** Why a time did not fire, or which job it made. @param {{item: Decided}} props */
export function Outcome({ item }) {
  switch (item.verdict) {
    case "fired":
      return item.job_state && item.job ? html`<${JobLink} id=${item.job}>Its job<//>` : "Its job is no longer stored.";
    case "skipped":
      return html`An earlier job of the schedule had not ended${item.because_of ? html`: <${JobLink} id=${item.because_of}>which it was<//>` : ""}.`;
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
  html`${shortTime(item.nominal_at, zone)}${item.count > 1 ? html` to ${shortTime(item.through_at, zone)}` : ""}<small><${When} at=${item.through_at} zone=${zone} /></small>`;

/** What came of a time: the state of its job, or its verdict. @param {{item: Decided}} props */
export const Verdict = ({ item }) => html`<${State} state=${(item.verdict === "fired" && item.job_state) || item.verdict} />${item.count > 1 ? html` <span class="n">× ${number(item.count)}</span>` : ""}`;

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
