// Lanes, tenants, definitions and calendars: their limits, how much is used, and edits.
import { html, useRef } from "../html.js";
import { Problem, request, segment } from "../api.js";
import { counted, number, plain, span } from "../format.js";
import { picture } from "../live.js";
import { Action } from "../parts/actions.js";
import { Empty, Failure, Link, Loaded, Pages, Unreadable } from "../parts/basic.js";
import { Bar } from "../parts/charts.js";
import { Edit, JsonField, readJson } from "../parts/edit.js";
import { tagOf } from "../parts/schedule_actions.js";
import { spanWords } from "../parts/trigger.js";
import { useSeen } from "../parts/verdicts.js";
import { useData } from "../query.js";
import { place, to } from "../router.js";
import { may, ofAll } from "../session.js";

const PAGE = 50;
const LANES = 100;
const FEW = 20;
const COUNTS_MS = 10_000;
const LIVE = ["pending", "dispatched", "running"];

/** @typedef {"lanes" | "tenants" | "definitions" | "calendars"} Kind */
/** @typedef {{one: string, title: string, power: "operate" | "administer", example: string, about: string, none: string, Rows: any}} Noun */

/** @type {Record<Kind, Noun>} */
const NOUNS = {
  lanes: {
    one: "lane",
    title: "Lanes",
    power: "administer",
    example: '{"weight": 2, "promote_after": "1m", "policy": ["aged_priority", "arrival"]}',
    about: "Classes of work. When lanes compete, twice the weight gets twice the share. A lane that is not listed has weight 1.",
    none: "No lane is defined: all jobs share the lane default.",
    Rows: Lanes,
  },
  tenants: {
    one: "tenant",
    title: "Tenants",
    power: "administer",
    example: '{"max_running": 10, "max_pending": 10000, "submit_rate": {"count": 100, "per": "1s"}, "max_schedules": 200}',
    about: "Owners of jobs and schedules, with their quotas and rates. A tenant that is not listed has no limits.",
    none: "No tenant has a quota.",
    Rows: Tenants,
  },
  definitions: {
    one: "definition",
    title: "Definitions",
    power: "operate",
    example: '{"max_concurrency": 3, "timeout": "5m", "retry": {"attempts": 5, "backoff": "2s", "factor": 2, "max": "1m"}}',
    about: "Types of jobs, with their limits. A definition that is not listed uses the defaults.",
    none: "No definition has limits of its own.",
    Rows: Definitions,
  },
  calendars: {
    one: "calendar",
    title: "Calendars",
    power: "administer",
    example: '{"weekdays": ["mon-fri"], "exclude": ["--12-25", "--01-01"]}',
    about: "Sets of days that schedules share.",
    none: "There are no calendars.",
    Rows: Calendars,
  },
};

export default function View() {
  const asked = place.value.query.get("kind") || "";
  const kind = Object.hasOwn(NOUNS, asked) ? /** @type {Kind} */ (asked) : null;
  const kinds = /** @type {Kind[]} */ (kind ? [kind] : Object.keys(NOUNS));
  return html`<h1>Lanes and tenants</h1>
    <nav class="tabs" aria-label="What is shown">
      <a href=${to("lanes")} aria-current=${kind ? undefined : "true"}>All</a>
      ${Object.entries(NOUNS).map(([name, { title }]) => html`<a href=${to("lanes", { kind: name })} aria-current=${name === kind ? "true" : undefined}>${title}</a>`)}</nav>
    ${kinds.map((each) => html`<${Nouns} key=${`${each} ${kind === null}`} kind=${each} isAlone=${kind !== null} />`)}`;
}

/** Alone, a kind has pages; among others, it shows its first items. @param {{kind: Kind, isAlone: boolean}} props */
function Nouns({ kind, isAlone }) {
  const noun = NOUNS[kind];
  const after = isAlone ? place.value.query.get("after") : "";
  const asked = useData(`/v1/${kind}`, { after, limit: kind === "lanes" ? LANES : isAlone ? PAGE : FEW }, { everyMs: 5_000 });
  const mayEdit = may(noun.power) && ofAll.value;
  const page = asked.data;
  return html`<section><h2>${noun.title}</h2><p class="dim">${noun.about}</p>
    ${mayEdit && html`<div class="buttons"><${New} kind=${kind} noun=${noun} reload=${asked.reload} /></div>`}
    <${Loaded} of=${asked}>${page && (page.items.length
      ? html`<div class="scroll" tabindex="0" role="region" aria-label=${noun.title}><${noun.Rows} page=${page} isWhole=${!page.next && !after} edits=${(/** @type {any} */ item) => mayEdit && html`<td><${Edits} kind=${kind} noun=${noun} item=${item} reload=${asked.reload} /></td>`} /></div>`
      : html`<${Empty}>${noun.none} ${mayEdit ? html`Create one above, or run <code>hascheduler ${noun.one} put NAME</code>` : ""}<//>`)}
      <${Unreadable} page=${page} />${isAlone ? html`<${Pages} page=${page} />` : page?.next && html`<p><${Link} to="lanes" query=${{ kind }}>All ${noun.title.toLowerCase()}<//></p>`}<//></section>`;
}

/** @param {any} shown */
function editable(shown) {
  const { name, rev, ...rest } = shown;
  return rest;
}

/** @param {{kind: string, noun: Noun, item: any, reload: () => void}} props */
function Edits({ kind, noun, item, reload }) {
  const path = `/v1/${kind}/${segment(item.name)}`;
  return html`<div class="buttons tight">
    <${Edit} label="Edit" what=${`${noun.one} ${item.name}`} path=${path} form=${editable} done=${reload} />
    <${Action} label="Delete" danger done=${reload} act=${() => request("DELETE", path, { headers: { "if-match": tagOf(item) } })}
      question=${html`<p>This deletes the ${noun.one} <bdi class="id">${plain(item.name, 80)}</bdi>. ${kind === "calendars" ? "It is refused while schedules use the calendar." : "Its jobs go on with the defaults."}</p>`} />
  </div>`;
}

/** @param {{kind: string, noun: Noun, reload: () => void}} props */
function New({ kind, noun, reload }) {
  const make = async (/** @type {FormData} */ form) => {
    const name = String(form.get("name"));
    try {
      await request("PUT", `/v1/${kind}/${segment(name)}`, { body: readJson(String(form.get("body"))), headers: { "if-none-match": "*" } });
    } catch (failed) {
      throw failed instanceof Problem && failed.status === 412 ? new Error(`The ${noun.one} ${name} already exists; edit it instead.`) : failed;
    }
  };
  return html`<${Action} label=${`New ${noun.one}`} confirm="Create" done=${reload} act=${make}
    question=${html`<p>${noun.about}</p>`}>
    <label class="field"><span>Name</span><input name="name" required maxlength="128" pattern="[A-Za-z0-9][A-Za-z0-9._\\-]*" title="Letters, digits, ., _ or -, starting with a letter or digit" autocomplete="off" /></label>
    <${JsonField} label="As JSON" name="body" first=${noun.example} /><//>`;
}

/** @param {{columns: string[], page: any, edits: (item: any) => any, row: (item: any) => any, more?: any}} props  `more`: rows below */
function Table({ columns, page, edits, row, more }) {
  return html`<table><thead><tr><th scope="col">Name</th>${columns.map((name) => html`<th scope="col">${name}</th>`)}<th scope="col">Owner</th>${edits({}) && html`<th scope="col">Do</th>`}</tr></thead>
    <tbody>${page.items.map((/** @type {any} */ item) => html`<tr key=${item.name}><th scope="row" class="id"><bdi>${plain(item.name, 80)}</bdi></th>${row(item)}<td class="dim">${plain(item.owner || "–", 60)}</td>${edits(item)}</tr>`)}${more}</tbody></table>`;
}

/** A number and its limit, or the number alone if there is no limit. @param {{value: number | undefined, of: number | null, label: string, exact?: boolean}} props */
function Used({ value, of, label, exact = true }) {
  const shown = value === undefined ? "…" : `${number(value)}${exact ? "" : "+"}`;
  if (of === null) return html`<span class="number">${shown} <span class="dim">no limit</span></span>`;
  const isFull = value !== undefined && value >= of;
  return html`<span class="number">${shown} of ${number(of)}${isFull ? html` <strong class="wait">full</strong>` : ""}</span> ${value !== undefined && html`<${Bar} value=${value} of=${of} label=${label} kind=${isFull ? "wait" : "accent"} />`}`;
}

/** @param {import("../wire.js").RateLimitResponse | null} rate */
const rateText = (rate) => (rate ? `${number(rate.count)} per ${spanWords(rate.per)}` : "–");

/** How many jobs wait and run: from the picture, or requested when the row becomes visible.
 * @param {Record<string, string>} filter @param {import("../live.js").Busy | null} [seen] */
function useLive(filter, seen = null) {
  const cell = useRef(/** @type {HTMLElement | null} */ (null));
  const inSight = useSeen(cell);
  /** @type {import("../query.js").Asked<import("../wire.js").JobCountsResponse>} */
  const asked = useData(inSight && !seen ? "/v1/jobs:counts" : null, { ...filter, state: LIVE }, { everyMs: COUNTS_MS });
  const counts = asked.data;
  if (seen) return { cell, inSight, error: null, pending: seen.pending, busy: seen.dispatched + seen.running, exact: true };
  return { cell, inSight, error: asked.error, pending: counts?.pending, busy: counts ? counts.dispatched + counts.running : undefined, exact: counts ? counts.exact : true };
}

/** The picture's numbers for one name; null if it has none. @param {import("../live.js").Busiest | null | undefined} among @param {string} name */
function busy(among, name) {
  const found = among?.items.find((each) => each.name === name);
  return found || (among?.whole ? { name, pending: 0, dispatched: 0, running: 0, waited_ms: null } : null);
}

/** A number and its share of all. @param {{value: number | undefined, of: number, label: string}} props */
function Part({ value, of, label }) {
  if (value === undefined) return html`<span class="dim">–</span>`;
  return html`<span class="number">${number(value)}${of > 0 ? html` <span class="dim">${((100 * value) / of).toFixed(1)} %</span>` : ""}</span> <${Bar} value=${value} of=${of} label=${label} />`;
}

/** How many jobs of a lane run and wait now. @param {{name: string}} props */
function LaneUse({ name }) {
  const seen = busy(picture.value?.lanes, name);
  const { pending = 0, dispatched = 0, running = 0 } = picture.value?.numbers || {};
  return html`<td><${Part} value=${seen ? seen.dispatched + seen.running : undefined} of=${dispatched + running} label=${`Running in ${name}`} /></td>
    <td><${Part} value=${seen ? seen.pending : undefined} of=${pending} label=${`Waiting in ${name}`} />${seen?.waited_ms ? html`<div class="dim">oldest: ${span(seen.waited_ms)}</div>` : ""}</td>`;
}

/** Lanes that have jobs but are not defined. @param {{page: import("../wire.js").LanePage}} props */
function UnlistedLanes({ page }) {
  const listed = new Set(page.items.map((lane) => lane.name));
  const unlisted = (picture.value?.lanes?.items || []).filter((lane) => !listed.has(lane.name)).slice(0, FEW);
  return unlisted.map((lane) => html`<tr key=${`unlisted ${lane.name}`}><th scope="row" class="id"><bdi>${plain(lane.name, 80)}</bdi></th>
    <td class="number">${number(1)}</td><td><span class="dim">not defined</span></td><${LaneUse} name=${lane.name} /><td class="dim">–</td><td class="dim">–</td><td class="dim">–</td></tr>`);
}

/** @param {{page: import("../wire.js").LanePage, isWhole: boolean, edits: (item: any) => any}} props */
function Lanes({ page, isWhole, edits }) {
  const weights = page.items.reduce((sum, lane) => sum + lane.weight, page.items.some((lane) => lane.name === "default") ? 0 : 1);
  return html`<${Table} columns=${["Weight", "Share while all lanes have work", "Running", "Waiting", "Promote after", "Policy"]} page=${page} edits=${edits} more=${isWhole && html`<${UnlistedLanes} page=${page} />`} row=${(/** @type {import("../wire.js").LaneResponse} */ lane) => html`
    <td class="number">${number(lane.weight)}</td>
    <td>${isWhole ? html`<span class="number">${((100 * lane.weight) / weights).toFixed(1)} %</span> <${Bar} value=${lane.weight} of=${weights} label=${`Weight of ${lane.name}`} />` : html`<span class="dim">depends on lanes of other pages</span>`}</td>
    <${LaneUse} name=${lane.name} />
    <td>${Array.isArray(lane.promote_after) ? lane.promote_after.map(spanWords).join(", ") : spanWords(lane.promote_after)}</td>
    <td>${lane.policy ? lane.policy.join(", ") : html`<span class="dim">the deployment's policy</span>`}</td>`} />`;
}

/** @param {{page: import("../wire.js").TenantPage, edits: (item: any) => any}} props */
function Tenants({ page, edits }) {
  return html`<${Table} columns=${["Running", "Waiting", "Schedules", "Submits", "Fires"]} page=${page} edits=${edits} row=${(/** @type {import("../wire.js").TenantResponse} */ tenant) => html`
    <${TenantUse} tenant=${tenant} />
    <td class="number">${rateText(tenant.submit_rate)}</td><td class="number">${rateText(tenant.fire_rate)}</td>`} />`;
}

/** @param {{tenant: import("../wire.js").TenantResponse}} props */
function TenantUse({ tenant }) {
  const seen = busy(picture.value?.tenants, tenant.name);
  const live = useLive({ tenant: tenant.name }, seen);
  /** @type {import("../query.js").Asked<import("../wire.js").ScheduleCountsResponse>} */
  const schedules = useData(live.pending === undefined || !live.inSight ? null : "/v1/schedules:counts", { tenant: tenant.name }, { everyMs: COUNTS_MS });
  return html`<td ref=${live.cell}>${live.error ? html`<${Failure} error=${live.error} />` : html`<${Used} value=${live.busy} of=${tenant.max_running} label="Running" exact=${live.exact} />`}</td>
    <td><${Link} to="jobs" query=${{ tenant: tenant.name, state: "pending" }}><${Used} value=${live.pending} of=${tenant.max_pending} label="Waiting" exact=${live.exact} /><//></td>
    <td><${Link} to="schedules" query=${{ tenant: tenant.name }}><${Used} value=${schedules.data?.matched} of=${tenant.max_schedules} label="Schedules" exact=${schedules.data?.exact} /><//></td>`;
}

/** @param {{page: import("../wire.js").DefinitionPage, edits: (item: any) => any}} props */
function Definitions({ page, edits }) {
  return html`<${Table} columns=${["Running", "Waiting", "Starts", "Tier", "Tries", "Timeout", "Cost", "Also"]} page=${page} edits=${edits} row=${(/** @type {import("../wire.js").DefinitionResponse} */ definition) => html`
    <${DefinitionUse} definition=${definition} />
    <td class="number">${rateText(definition.rate_limit)}</td>
    <td class="number">${definition.tier ?? "–"}</td>
    <td>${number(definition.retry.attempts)}<div class="dim">${spanWords(definition.retry.backoff)} × ${definition.retry.factor}, at most ${spanWords(definition.retry.max)}</div></td>
    <td>${definition.timeout ? spanWords(definition.timeout) : html`<span class="dim">none</span>`}${definition.total_timeout && html`<div class="dim">${spanWords(definition.total_timeout)} in all</div>`}</td>
    <td>${spanWords(definition.default_cost)}<div class="dim">until learned</div></td>
    <td>${also(definition)}</td>`} />`;
}

/** @param {import("../wire.js").DefinitionResponse} definition */
function also(definition) {
  const { conflict_group: group, conflict_scope: scope, key_limits: limits, unique, resources } = definition;
  const found = [
    group && `excludes others of ${group} on one target (${scope})`,
    limits.length && counted(limits.length, "limit for keys", "limits for keys"),
    unique && `unique by ${unique.by.join(", ")}: ${unique.on_duplicate}`,
    Object.keys(resources).length && `needs ${Object.entries(resources).map(([name, units]) => `${name} ${units}`).join(", ")}`,
  ].filter(Boolean);
  return found.length ? found.map((text) => html`<div><bdi>${plain(text, 200)}</bdi></div>`) : html`<span class="dim">–</span>`;
}

/** @param {{definition: import("../wire.js").DefinitionResponse}} props */
function DefinitionUse({ definition }) {
  const live = useLive({ definition: definition.name });
  return html`<td ref=${live.cell}>${live.error ? html`<${Failure} error=${live.error} />` : html`<${Used} value=${live.busy} of=${definition.max_concurrency} label="Running" exact=${live.exact} />`}</td>
    <td class="number"><${Link} to="jobs" query=${{ definition: definition.name, state: "pending" }}>${live.pending === undefined ? "…" : number(live.pending)}<//></td>`;
}

const DAYS_SHOWN = 12;

/** @param {string[]} days */
const daysText = (days) => (days.length ? `${days.slice(0, DAYS_SHOWN).join(", ")}${days.length > DAYS_SHOWN ? ` and ${number(days.length - DAYS_SHOWN)} more` : ""}` : "–");

/** @param {{page: import("../wire.js").CalendarPage, edits: (item: any) => any}} props */
function Calendars({ page, edits }) {
  return html`<${Table} columns=${["Weekdays", "Also", "Except"]} page=${page} edits=${edits} row=${(/** @type {import("../wire.js").CalendarResponse} */ calendar) => html`
    <td>${calendar.weekdays.join(", ") || "–"}</td><td class="clip">${daysText(calendar.include)}</td><td class="clip">${daysText(calendar.exclude)}</td>`} />`;
}
