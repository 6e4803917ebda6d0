// Verdicts of all schedules: the times that did not fire, and why.
import { html } from "../html.js";
import { useData } from "../data.js";
import { Pages, ScheduleLink, Tabs, When, loaded, table } from "../parts/basic.js";
import { Find, filters } from "../parts/filters.js";
import { Meaning, NOT_FIRED, Outcome, Times, Verdict } from "../parts/verdicts.js";
import { place } from "../router.js";

const PAGE = 50;
/** @type {import("../parts/filters.js").Field[]} */
const FIELDS = [
  { name: "text", label: "schedule" },
  { name: "tenant" },
  { name: "label", kind: "many" },
  { name: "since", label: "decided since", kind: "instant" },
  { name: "until", label: "decided until", kind: "instant" },
  { name: "verdict", hidden: true },
];

export default function Verdicts() {
  const filter = filters(FIELDS);
  const asked = useData("/v1/verdicts", { ...filter, after: place.value.query.get("after"), limit: PAGE });
  const none = Object.values(filter).some((value) => value.length)
    ? html`No verdict matches. <a href="/ui/verdicts">Show all</a>.`
    : "Every fire time with a stored verdict has fired. Times that do not fire are listed here, with the reason.";
  return html`<div class="top"><div class="verdict"><h1>Verdicts</h1><p>Fire times that did not fire, newest decision first. Times that fired have <a href="/ui/jobs">jobs</a>.</p></div></div>
    <div class="sec"><${Find} label="Find verdicts" placeholder="Schedule, or a filter such as since:2h" fields=${FIELDS} />
      <${Tabs} label="By verdict" tabs=${["", ...NOT_FIRED].map((verdict) => ({ name: verdict || "All", state: verdict, query: { verdict } }))} />
      <${Meaning} verdict=${filter.verdict} /></div>
    <section class="sec" aria-label="Verdicts">${loaded(asked, (page) => html`${table({
      label: "Times that did not fire",
      items: page.items,
      none: page.next ? "No match on this page. See the next page." : none,
      columns: [
        { head: "Schedule", row: true, show: (item) => html`<${ScheduleLink} name=${item.schedule} />` },
        { head: "Verdict", cell: "n end", show: (item) => html`<${Verdict} item=${item} />` },
        { head: "Time", cell: "full", show: (item) => html`<${Times} item=${item} />` },
        { head: "Reason", cell: "full", show: (item) => html`<${Outcome} item=${item} />` },
        { head: "Decided", cell: "n r drop", show: (item) => html`<${When} at=${item.decided_at} />` },
      ],
    })}<${Pages} page=${page} />`)}</section>`;
}
