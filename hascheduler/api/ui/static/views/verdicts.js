// Verdicts of all schedules: the times that did not fire, and why.
import { html } from "../html.js";
import { Empty, Loaded, Pages, ScheduleLink, Table, Tabs, When } from "../parts/basic.js";
import { Find, filters } from "../parts/filters.js";
import { MEANINGS, NOT_FIRED, Outcome, Times, Verdict } from "../parts/verdicts.js";
import { useData } from "../query.js";
import { place } from "../router.js";
import { ofAll } from "../session.js";

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

/** @typedef {import("../wire.js").ScheduleVerdictResponse} Item */

export default function Verdicts() {
  const filter = filters(["text", "verdict", "tenant", "since", "until"], ["label"]);
  /** @type {import("../query.js").Asked<import("../wire.js").ScheduleVerdictPage>} */
  const asked = useData("/v1/verdicts", { ...filter, after: place.value.query.get("after"), limit: PAGE });
  const isFiltered = Object.values(filter).some((value) => value.length);
  const tabs = ["", ...NOT_FIRED].map((verdict) => ({ name: verdict || "All", state: verdict, query: { verdict }, current: filter.verdict === verdict }));
  return html`<div class="top"><div class="verdict"><h1>Verdicts</h1><p>Fire times that did not fire, newest decision first. Times that fired have <a href="/ui/jobs">jobs</a>.</p></div></div>
    <div class="sec"><${Find} label="Find verdicts" placeholder="Schedule, or a filter such as since:2h" fields=${ofAll.value ? FIELDS : FIELDS.filter(({ name }) => name !== "tenant")} bare=${(/** @type {string} */ text) => ({ text })} />
      <${Tabs} label="By verdict" tabs=${tabs} />
      ${filter.verdict && html`<p class="q">${filter.verdict}: ${/** @type {any} */ (MEANINGS)[filter.verdict] || "an unknown verdict"}.</p>`}</div>
    <section class="sec" aria-label="Verdicts"><${Loaded} of=${asked}>${asked.data && html`<${Rows} page=${asked.data} isFiltered=${isFiltered} /><${Pages} page=${asked.data} />`}<//></section>`;
}

/** @param {{page: import("../wire.js").ScheduleVerdictPage, isFiltered: boolean}} props */
function Rows({ page, isFiltered }) {
  if (!page.items.length) {
    if (page.next) return html`<${Empty}>No match on this page. See the next page.<//>`;
    return html`<${Empty}>${isFiltered
      ? html`No verdict matches. <a href="/ui/verdicts">Show all</a>.`
      : "Every fire time with a stored verdict has fired. Times that do not fire are listed here, with the reason."}<//>`;
  }
  return html`<${Table} label="Times that did not fire" items=${page.items} keyOf=${(/** @type {Item} */ item) => `${item.schedule} ${item.nominal_at}`} columns=${[
    { head: "Schedule", row: true, show: (/** @type {Item} */ item) => html`<${ScheduleLink} name=${item.schedule} />` },
    { head: "Verdict", cell: "n end", show: (/** @type {Item} */ item) => html`<${Verdict} item=${item} />` },
    { head: "Time", cell: "full", show: (/** @type {Item} */ item) => html`<${Times} item=${item} />` },
    { head: "Reason", cell: "full", show: (/** @type {Item} */ item) => html`<${Outcome} item=${item} />` },
    { head: "Decided", cell: "n r drop", show: (/** @type {Item} */ item) => html`<${When} at=${item.decided_at} />` },
  ]} />`;
}
