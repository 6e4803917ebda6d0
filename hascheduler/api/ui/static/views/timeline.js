// Timeline: past and future fires of all schedules on one axis, and when slots will be short.
import { html } from "../html.js";
import { clock, counted, number, plain, span } from "../format.js";
import { Empty, Loaded, Pages, ScheduleLink, State } from "../parts/basic.js";
import { LabelFilter, TextFilter, filters } from "../parts/filters.js";
import { useData } from "../query.js";
import { place } from "../router.js";

const PAGE = 50;
const WIDTH = 1_000;
const HEIGHT = 18;
const HOUR_MS = 3_600_000;

/** The colours of the kinds of marks. */
const MARKS = { fired: "good", late: "wait", missed: "bad", unstorable: "bad", ahead: "accent" };

export default function Timeline() {
  const filter = filters(["text"], ["label"]);
  const asked = useData("/v1/timeline", { ...filter, after: place.value.query.get("after"), limit: PAGE }, { everyMs: 15_000 });
  return html`<h1>Timeline</h1>
    <section class="filters" aria-label="Filters"><${TextFilter} name="text" label="Name contains" /><${LabelFilter} /></section>
    <${Loaded} of=${asked}>${asked.data && html`<${Load} load=${asked.data.load} /><${Rows} page=${asked.data} /><${Pages} page=${asked.data} />`}<//>`;
}

/** The slots that future fires need, in words and as bars. @param {{load: any}} props */
function Load({ load }) {
  return html`<h2>Load in the next 24 hours</h2>
    ${load.too_much.length
      ? html`<ul class="peaks">${load.too_much.map((/** @type {any} */ each) => html`<li><${State} state="ticket" word=${`From ${clock(each.from_ms)} to ${clock(each.to_ms)}`} /> ${plain(each.summary)}</li>`)}</ul>`
      : html`<p><${State} state="ready" word="Enough slots" /> for all fires.</p>`}
    <div class="scroll" tabindex="0" role="region" aria-label="Load"><table class="timeline"><tbody>${load.items.map((/** @type {any} */ each) => {
      const most = Math.max(...each.needed);
      const scale = HEIGHT / Math.max(most, each.slots, 1);
      const words = `at most ${number(most)} of ${counted(each.slots, "slot")}`;
      return html`<tr><th scope="row"><bdi>${each.definition === null ? "All schedules" : plain(each.definition)}</bdi></th>
        <td class="axis"><svg viewBox=${`0 0 ${each.needed.length} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label=${words}>
          ${each.needed.map((/** @type {number} */ need, /** @type {number} */ at) => need > 0 && html`<rect class=${need > each.slots ? "bad" : "accent"} x=${at} width="1" y=${HEIGHT - need * scale} height=${need * scale} />`)}
          <line x1="0" x2=${each.needed.length} y1=${HEIGHT - each.slots * scale} y2=${HEIGHT - each.slots * scale} /></svg></td><td class="dim">${words}</td></tr>`;
    })}</tbody></table></div>
    <p class="dim">Computed from learned costs and the slots of live processors (the line). Jobs submitted by clients are not included.${load.left_out ? ` ${counted(load.left_out, "schedule")} could not be included.` : ""}</p>`;
}

/** @param {{page: any}} props */
function Rows({ page }) {
  if (!page.items.length) return html`<${Empty}>No schedule matches. Create one under <a href="/ui/schedules">Schedules</a>.<//>`;
  const { from_ms: from, to_ms: to } = page;
  const x = (/** @type {number} */ at) => ((at - from) / (to - from)) * WIDTH;
  const nowMs = Date.parse(page.now);
  const part = (/** @type {number} */ at) => `${(100 * (at - from)) / (to - from)}%`;
  /** @type {number[]} */
  const hours = [];
  const step = Math.max(HOUR_MS, Math.ceil((to - from) / 12 / HOUR_MS) * HOUR_MS);
  const offset = new Date(nowMs).getTimezoneOffset() * 60_000;
  for (let at = Math.ceil((from - offset) / step) * step + offset; at <= to; at += step) hours.push(at);
  return html`<p class="dim legend"><${Mark} kind="fired" /> fired <${Mark} kind="late" /> late <${Mark} kind="missed" /> missed <${Mark} kind="skipped" /> skipped, paused or coalesced <${Mark} kind="ahead" /> upcoming</p>
    <div class="scroll" tabindex="0" role="region" aria-label="Timeline"><table class="timeline">
    <thead><tr><th scope="col">Schedule</th><th scope="col" class="axis"><span class="hidden">When</span><svg class="hours" aria-hidden="true">${hours.map((at) => html`<line x1=${part(at)} x2=${part(at)} y1="18" y2="24" /><text x=${part(at)} y="14">${clock(at)}</text>`)}</svg></th><th scope="col">In numbers</th></tr></thead>
    <tbody>${page.items.map((/** @type {any} */ row) => html`<${Row} key=${row.name} row=${row} page=${page} x=${x} now=${nowMs} />`)}</tbody></table></div>`;
}

/** @param {{kind: string}} props */
function Mark({ kind }) {
  return html`<svg class="mark" viewBox="0 0 12 12" aria-hidden="true">${shape(kind, 6, 6, 9)}</svg>`;
}

/** The shape of each kind: a bar, a bar with a cap, a cross, a ring, a hollow bar.
 * @param {string} kind @param {number} x @param {number} y @param {number} size */
function shape(kind, x, y, size) {
  const half = size / 2;
  const colour = /** @type {any} */ (MARKS)[kind] || "off";
  if (kind === "missed" || kind === "unstorable") return html`<path class=${colour} d=${`M${x - half} ${y - half}L${x + half} ${y + half}M${x - half} ${y + half}L${x + half} ${y - half}`} />`;
  if (kind === "ahead") return html`<rect class="ahead" x=${x - 1.5} y=${y - half} width="3" height=${size} />`;
  if (kind === "fired") return html`<rect class=${colour} x=${x - 1.5} y=${y - half} width="3" height=${size} />`;
  if (kind === "late") return html`<path class=${colour} d=${`M${x} ${y - half}V${y + half}M${x - 3} ${y - half}H${x + 3}`} />`;
  return html`<circle class=${colour} cx=${x} cy=${y} r="3" />`;
}

/** @param {{row: any, page: any, x: (at: number) => number, now: number}} props */
function Row({ row, page, x, now }) {
  const middle = HEIGHT / 2;
  const fired = row.fired.reduce((/** @type {number} */ sum, /** @type {number[]} */ each) => sum + (each[1] ?? 0), 0);
  const late = row.fired.reduce((/** @type {number} */ sum, /** @type {number[]} */ each) => sum + (each[2] ?? 0), 0);
  /** @type {Record<string, number>} */
  const others = {};
  for (const each of row.passed_over) others[each.verdict] = (others[each.verdict] || 0) + each.count;
  const words = [
    counted(fired, "fire"),
    late && `${number(late)} late`,
    ...Object.entries(others).map(([verdict, count]) => `${number(count)} ${verdict}`),
    row.note ? plain(row.note, 120) : row.paused ? "paused" : `${number(row.ahead_count)} upcoming${row.ahead_count ? `, about ${span(row.expected_ms)} each` : ""}`,
  ].filter(Boolean);
  // Fires too frequent to list one by one are drawn as a band.
  const band = !row.ahead_ms.length && row.ahead_count > 0;
  return html`<tr><th scope="row"><${ScheduleLink} name=${row.name} /></th>
    <td class="axis"><svg viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label=${words.join(", ")}>
      <rect class="unknown" x="0" width=${Math.max(0, x(row.known_since_ms))} height=${HEIGHT} />
      ${band && html`<rect class="ahead" x=${x(now)} y="4" width=${WIDTH - x(now)} height=${HEIGHT - 8} />`}
      ${row.ahead_ms.map((/** @type {number} */ at) => html`<rect class="ahead" x=${x(at)} y="4" width=${Math.max(3, x(at + row.expected_ms) - x(at))} height=${HEIGHT - 8} />`)}
      ${row.fired.map((/** @type {number[]} */ each) => shape((each[2] ?? 0) ? "late" : "fired", x(page.from_ms + ((each[0] ?? 0) + 0.5) * page.bucket_ms), middle, HEIGHT - 6))}
      ${row.passed_over.map((/** @type {any} */ each) => shape(each.verdict, x((each.from_ms + each.to_ms) / 2), middle, 9))}
      <line class="now" x1=${x(now)} x2=${x(now)} y1="0" y2=${HEIGHT} /></svg></td>
    <td class="dim">${words.join(" · ")}</td></tr>`;
}
