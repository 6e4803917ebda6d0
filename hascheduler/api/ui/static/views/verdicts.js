// Verdicts of all schedules: the times that did not fire, and why.
import { html } from "../html.js";
import { Empty, Loaded, Pages, ScheduleLink, When } from "../parts/basic.js";
import { ChoiceFilter, InstantFilter, LabelFilter, TextFilter, filters } from "../parts/filters.js";
import { MEANINGS, NOT_FIRED, Outcome, Times, Verdict } from "../parts/verdicts.js";
import { useData } from "../query.js";
import { place } from "../router.js";
import { ofAll } from "../session.js";

const PAGE = 50;

export default function Verdicts() {
  const filter = filters(["text", "verdict", "tenant", "since", "until"], ["label"]);
  /** @type {import("../query.js").Asked<import("../wire.js").ScheduleVerdictPage>} */
  const asked = useData("/v1/verdicts", { ...filter, after: place.value.query.get("after"), limit: PAGE });
  const isFiltered = Object.values(filter).some((value) => value.length);
  return html`<h1>Verdicts</h1>
    <p class="dim">Fire times of all schedules that did not fire, newest decision first. Times that fired have <a href="/ui/jobs">jobs</a>.</p>
    <section class="filters" aria-label="Filters">
      <${TextFilter} name="text" label="Schedule contains" />
      <${ChoiceFilter} name="verdict" label="Verdict" values=${NOT_FIRED} />
      ${ofAll.value && html`<${TextFilter} name="tenant" label="Tenant" />`}
      <${LabelFilter} />
      <${InstantFilter} name="since" label="Decided since" />
      <${InstantFilter} name="until" label="Decided until" />
    </section>
    ${filter.verdict && html`<p class="dim">${filter.verdict}: ${/** @type {any} */ (MEANINGS)[filter.verdict] || "unknown verdict"}.</p>`}
    <${Loaded} of=${asked}><${Table} page=${asked.data} isFiltered=${isFiltered} /><${Pages} page=${asked.data} /><//>`;
}

/** @param {{page: import("../wire.js").ScheduleVerdictPage, isFiltered: boolean}} props */
function Table({ page, isFiltered }) {
  if (!page.items.length) {
    if (page.next) return html`<${Empty}>No match on this page. See the next page.<//>`;
    return html`<${Empty}>${isFiltered
      ? html`No verdict matches. <a href="/ui/verdicts">Show all</a>.`
      : "Every fire time with a stored verdict has fired. Times that do not fire are listed here, with the reason."}<//>`;
  }
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Times that did not fire"><table>
    <thead><tr><th scope="col">Schedule</th><th scope="col">Verdict</th><th scope="col">Nominal time</th><th scope="col">Reason</th><th scope="col">Decided</th></tr></thead>
    <tbody>${page.items.map((item) => html`<tr key=${`${item.schedule} ${item.nominal_at}`}>
      <th scope="row"><${ScheduleLink} name=${item.schedule} /></th>
      <td><${Verdict} item=${item} /></td>
      <td class="times"><${Times} item=${item} /></td>
      <td class="clip"><${Outcome} item=${item} /></td>
      <td><${When} at=${item.decided_at} /></td></tr>`)}</tbody></table></div>`;
}
