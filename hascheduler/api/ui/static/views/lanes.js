// Lanes, tenants, definitions and calendars: their limits, how much is used, and edits.
import { html, useRef } from "../html.js";
import { Problem, request, segment } from "../api.js";
import { counted, number, plain, span } from "../format.js";
import { picture } from "../live.js";
import { Action } from "../parts/actions.js";
import { Empty, Failure, Link, Loaded, Menu, Pages, Table, Tabs, Unreadable } from "../parts/basic.js";
import { Bar } from "../parts/charts.js";
import { Edit, JsonField, readJson } from "../parts/edit.js";
import { tagOf } from "../parts/schedule_actions.js";
import { spanWords } from "../parts/trigger.js";
import { useSeen } from "../parts/verdicts.js";
import { useData } from "../query.js";
import { place } from "../router.js";
import { may, ofAll } from "../session.js";

const PAGE = 50;
const LANES = 100;
const FEW = 20;
const COUNTS_MS = 10_000;
const LIVE = ["pending", "dispatched", "running"];

/** @typedef {"lanes" | "tenants" | "definitions" | "calendars"} Kind */
/** @typedef {{one: string, title: string, power: "operate" | "administer", example: string, about: string, none: string, rows: Rows}} Noun */
/** The items of a table and its columns; `isWhole`: all are on this page.
 * @typedef {(page: any, isWhole: boolean) => {items: any[], columns: import("../parts/basic.js").Column<any>[]}} Rows */

/** @type {Record<Kind, Noun>} */
const NOUNS = {
  lanes: {
    one: "lane",
    title: "Lanes",
    power: "administer",
    example: '{"weight": 2, "promote_after": "1m", "policy": ["aged_priority", "arrival"]}',
    about: "Classes of work. When lanes compete, twice the weight gets twice the share. A lane that is not listed has weight 1.",
    none: "No lane is defined: all jobs share the lane default.",
    rows: lanes,
  },
  tenants: {
    one: "tenant",
    title: "Tenants",
    power: "administer",
    example: '{"max_running": 10, "max_pending": 10000, "submit_rate": {"count": 100, "per": "1s"}, "max_schedules": 200}',
    about: "Owners of jobs and schedules, with their quotas and rates. A tenant that is not listed has no limits.",
    none: "No tenant has a quota.",
    rows: tenants,
  },
  definitions: {
    one: "definition",
    title: "Definitions",
    power: "operate",
    example: '{"max_concurrency": 3, "timeout": "5m", "retry": {"attempts": 5, "backoff": "2s", "factor": 2, "max": "1m"}}',
    about: "Types of jobs, with their limits. A definition that is not listed uses the defaults.",
    none: "No definition has limits of its own.",
    rows: definitions,
  },
  calendars: {
    one: "calendar",
    title: "Calendars",
    power: "administer",
    example: '{"weekdays": ["mon-fri"], "exclude": ["--12-25", "--01-01"]}',
    about: "Sets of days that schedules share.",
    none: "There are no calendars.",
    rows: calendars,
  },
};

export default function View() {
  const asked = place.value.query.get("kind") || "";
  const kind = Object.hasOwn(NOUNS, asked) ? /** @type {Kind} */ (asked) : null;
  const kinds = /** @type {Kind[]} */ (kind ? [kind] : Object.keys(NOUNS));
  const tabs = [["", "All"], ...Object.entries(NOUNS).map(([name, { title }]) => [name, title])];
  return html`<div class="sec"><h1>Lanes and tenants</h1>
      <${Tabs} label="What is shown" tabs=${tabs.map(([name, title]) => ({ name: title, query: { kind: name, after: "" }, current: name === (kind || "") }))} /></div>
    ${kinds.map((each) => html`<${Nouns} key=${`${each} ${kind === null}`} kind=${each} isAlone=${kind !== null} />`)}`;
}

/** Alone, a kind has pages; among others, it shows its first items. @param {{kind: Kind, isAlone: boolean}} props */
function Nouns({ kind, isAlone }) {
  const noun = NOUNS[kind];
  const after = isAlone ? place.value.query.get("after") : "";
  const asked = useData(`/v1/${kind}`, { after, limit: kind === "lanes" ? LANES : isAlone ? PAGE : FEW }, { everyMs: 5_000 });
  const mayEdit = may(noun.power) && ofAll.value;
  const page = asked.data;
  const menu = (/** @type {any} */ item) => html`<${Menu} name=${`Actions for ${item.name}`}>${acts({ kind, noun, item, reload: asked.reload })}<//>`;
  return html`<section class="sec"><div class="top"><h2>${noun.title} <small>${noun.about}</small></h2>${mayEdit && html`<${New} kind=${kind} noun=${noun} reload=${asked.reload} />`}</div>
    <${Loaded} of=${asked}>${page && (page.items.length
      ? html`<${Table} label=${noun.title} keyOf=${(/** @type {any} */ item) => item.name} menu=${mayEdit ? menu : null} ...${noun.rows(page, !page.next && !after)} />`
      : html`<${Empty}>${noun.none} ${mayEdit ? html`Create one above, or run <code>hascheduler ${noun.one} put NAME</code>` : ""}<//>`)}
      <${Unreadable} page=${page} />${isAlone ? html`<${Pages} page=${page} />` : page?.next && html`<p><${Link} to="lanes" query=${{ kind }}>All ${noun.title.toLowerCase()}<//></p>`}<//></section>`;
}

/** @param {any} shown */
function editable(shown) {
  const { name, rev, ...rest } = shown;
  return rest;
}

/** The entries of a row's menu; a lane that is not defined has none. @param {{kind: string, noun: Noun, item: any, reload: () => void}} props */
function acts({ kind, noun, item, reload }) {
  if (!item.rev) return [];
  const path = `/v1/${kind}/${segment(item.name)}`;
  return [
    html`<${Edit} label="Edit…" what=${`${noun.one} ${item.name}`} path=${path} form=${editable} done=${reload} />`,
    html`<hr />`,
    html`<${Action} label="Delete…" danger done=${reload} act=${() => request("DELETE", path, { headers: { "if-match": tagOf(item) } })}
      question=${html`<p>This deletes the ${noun.one} <bdi class="b">${plain(item.name, 80)}</bdi>. ${kind === "calendars" ? "It is refused while schedules use the calendar." : "Its jobs go on with the defaults."}</p>`} />`,
  ];
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
  return html`<${Action} label=${`New ${noun.one}…`} confirm="Create" done=${reload} act=${make}
    question=${html`<p>${noun.about}</p>`}>
    <label class="field"><span class="b">Name</span><input name="name" required maxlength="128" pattern="[A-Za-z0-9][A-Za-z0-9._\\-]*" title="Letters, digits, ., _ or -, starting with a letter or digit" autocomplete="off" /></label>
    <${JsonField} label="As JSON" name="body" first=${noun.example} /><//>`;
}

/** The name, and below it its owner. @type {import("../parts/basic.js").Column<any>} */
const NAME = { head: "Name", row: true, show: (item) => html`<bdi class="b">${plain(item.name, 80)}</bdi>${item.owner && html`<small>${plain(item.owner, 60)}</small>`}` };
const none = html`<span class="off">–</span>`;

/** A number and its limit, or the number alone if there is no limit. @param {{value: number | undefined, of: number | null, label: string, exact?: boolean}} props */
function Used({ value, of, label, exact = true }) {
  const shown = value === undefined ? "…" : `${number(value)}${exact ? "" : "+"}`;
  if (of === null) return html`${shown} <span class="q">no limit</span>`;
  const isFull = value !== undefined && value >= of;
  return html`${shown} of ${number(of)}${isFull ? html` <strong class="warn">full</strong>` : ""}${value !== undefined && html`<${Bar} value=${value} of=${of} label=${label} kind=${isFull ? "k-late" : ""} />`}`;
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
  if (value === undefined) return none;
  return html`${number(value)}${value > 0 && of > 0 ? html` <span class="q">${((100 * value) / of).toFixed(1)} %</span>` : ""}<${Bar} value=${value} of=${of} label=${label} />`;
}

/** How many jobs of a lane run or wait now. @param {{name: string, of: "running" | "pending"}} props */
function LaneUse({ name, of }) {
  const seen = busy(picture.value?.lanes, name);
  const { pending = 0, dispatched = 0, running = 0 } = picture.value?.numbers || {};
  if (of === "running") return html`<${Part} value=${seen ? seen.dispatched + seen.running : undefined} of=${dispatched + running} label=${`Running in ${name}`} />`;
  return html`<${Part} value=${seen ? seen.pending : undefined} of=${pending} label=${`Waiting in ${name}`} />${seen?.waited_ms ? html`<small>oldest: ${span(seen.waited_ms)}</small>` : ""}`;
}

/** Lanes, and those that have jobs but are not defined. @type {Rows} */
function lanes(page, isWhole) {
  /** @typedef {import("../wire.js").LaneResponse} Lane */
  const weights = page.items.reduce((/** @type {number} */ sum, /** @type {Lane} */ lane) => sum + lane.weight, page.items.some((/** @type {Lane} */ lane) => lane.name === "default") ? 0 : 1);
  const listed = new Set(page.items.map((/** @type {Lane} */ lane) => lane.name));
  const unlisted = isWhole ? (picture.value?.lanes?.items || []).filter((lane) => !listed.has(lane.name)).slice(0, FEW) : [];
  return {
    items: [...page.items, ...unlisted.map(({ name }) => ({ name, weight: 1 }))],
    columns: [
      NAME,
      { head: "Weight", cell: "n end", show: (/** @type {Lane} */ lane) => number(lane.weight) },
      { head: "Share while all lanes have work", cell: "full", show: (/** @type {Lane} */ lane) => (!lane.rev ? html`<span class="q">not defined</span>` : isWhole
        ? html`${((100 * lane.weight) / weights).toFixed(1)} %<${Bar} value=${lane.weight} of=${weights} label=${`Weight of ${lane.name}`} />`
        : html`<span class="q">depends on lanes of other pages</span>`) },
      { head: "Running", cell: "full", show: (/** @type {Lane} */ lane) => html`<${LaneUse} name=${lane.name} of="running" />` },
      { head: "Waiting", cell: "full", show: (/** @type {Lane} */ lane) => html`<${LaneUse} name=${lane.name} of="pending" />` },
      { head: "Policy", cell: "full", show: (/** @type {Lane} */ lane) => (!lane.rev ? none : html`${lane.policy ? lane.policy.join(", ") : html`<span class="q">the deployment's policy</span>`}<small>promoted after ${[lane.promote_after].flat().map(spanWords).join(", ")}</small>`) },
    ],
  };
}

/** @type {Rows} */
function tenants(page) {
  /** @typedef {import("../wire.js").TenantResponse} Tenant */
  return {
    items: page.items,
    columns: [
      NAME,
      { head: "Running, waiting, schedules", cell: "full", show: (/** @type {Tenant} */ tenant) => html`<${TenantUse} tenant=${tenant} />` },
      { head: "Submits", cell: "n full", show: (/** @type {Tenant} */ tenant) => html`${rateText(tenant.submit_rate)}<span class="nar"> submits</span>` },
      { head: "Fires", cell: "n full", show: (/** @type {Tenant} */ tenant) => html`${rateText(tenant.fire_rate)}<span class="nar"> fires</span>` },
    ],
  };
}

/** @param {{tenant: import("../wire.js").TenantResponse}} props */
function TenantUse({ tenant }) {
  const seen = busy(picture.value?.tenants, tenant.name);
  const live = useLive({ tenant: tenant.name }, seen);
  /** @type {import("../query.js").Asked<import("../wire.js").ScheduleCountsResponse>} */
  const schedules = useData(live.pending === undefined || !live.inSight ? null : "/v1/schedules:counts", { tenant: tenant.name }, { everyMs: COUNTS_MS });
  return html`<div ref=${live.cell} class="uses">${live.error ? html`<${Failure} error=${live.error} />` : html`<div><${Used} value=${live.busy} of=${tenant.max_running} label="Running" exact=${live.exact} /></div>`}
    <div><${Link} to="jobs" query=${{ tenant: tenant.name, state: "pending" }}><${Used} value=${live.pending} of=${tenant.max_pending} label="Waiting" exact=${live.exact} /><//></div>
    <div><${Link} to="schedules" query=${{ tenant: tenant.name }}><${Used} value=${schedules.data?.matched} of=${tenant.max_schedules} label="Schedules" exact=${schedules.data?.exact} /><//></div></div>`;
}

/** @type {Rows} */
function definitions(page) {
  /** @typedef {import("../wire.js").DefinitionResponse} Definition */
  return {
    items: page.items,
    columns: [
      NAME,
      { head: "Running, waiting", cell: "full", show: (/** @type {Definition} */ definition) => html`<${DefinitionUse} definition=${definition} />` },
      { head: "Tries", cell: "full", show: ({ retry }) => html`${counted(retry.attempts, "try", "tries")}<small>${spanWords(retry.backoff)} × ${retry.factor}, at most ${spanWords(retry.max)}</small>` },
      { head: "Timeout", cell: "full", show: (/** @type {Definition} */ { timeout, total_timeout: total }) => html`${timeout ? spanWords(timeout) : html`<span class="q">no timeout</span>`}${total && html`<small>${spanWords(total)} in all</small>`}` },
      { head: "Cost", cell: "n drop", show: (/** @type {Definition} */ definition) => html`${spanWords(definition.default_cost)}<small>until learned</small>` },
      { head: "Also", cell: "full", show: also },
    ],
  };
}

/** @param {import("../wire.js").DefinitionResponse} definition */
function also(definition) {
  const { conflict_group: group, conflict_scope: scope, key_limits: limits, unique, resources, tier, rate_limit: rate } = definition;
  const found = [
    rate && `starts ${rateText(rate)}`,
    tier !== null && `tier ${tier}`,
    "on_failure" in definition && definition.on_failure && `a failure submits ${definition.on_failure}`,
    group && `excludes others of ${group} on one target (${scope})`,
    limits.length && counted(limits.length, "limit for keys", "limits for keys"),
    unique && `unique by ${unique.by.join(", ")}: ${unique.on_duplicate}`,
    Object.keys(resources).length && `needs ${Object.entries(resources).map(([name, units]) => `${name} ${units}`).join(", ")}`,
  ].filter(Boolean);
  return found.map((text) => html`<small><bdi>${plain(text, 200)}</bdi></small>`);
}

/** @param {{definition: import("../wire.js").DefinitionResponse}} props */
function DefinitionUse({ definition }) {
  const live = useLive({ definition: definition.name });
  return html`<div ref=${live.cell} class="uses">${live.error ? html`<${Failure} error=${live.error} />` : html`<div><${Used} value=${live.busy} of=${definition.max_concurrency} label="Running" exact=${live.exact} /></div>`}
    <div><${Link} to="jobs" query=${{ definition: definition.name, state: "pending" }}>${live.pending === undefined ? "…" : `${number(live.pending)} wait`}<//></div></div>`;
}

const DAYS_SHOWN = 12;

/** @param {string[]} days */
const daysText = (days) => (days.length ? `${days.slice(0, DAYS_SHOWN).join(", ")}${days.length > DAYS_SHOWN ? ` and ${number(days.length - DAYS_SHOWN)} more` : ""}` : "–");

/** @type {Rows} */
function calendars(page) {
  /** @typedef {import("../wire.js").CalendarResponse} Calendar */
  return {
    items: page.items,
    columns: [
      NAME,
      { head: "Weekdays", cell: "full", show: (/** @type {Calendar} */ calendar) => calendar.weekdays.join(", ") || "–" },
      { head: "Also", cell: "full", show: (/** @type {Calendar} */ calendar) => html`<span class="nar">also </span>${daysText(calendar.include)}` },
      { head: "Except", cell: "full", show: (/** @type {Calendar} */ calendar) => html`<span class="nar">except </span>${daysText(calendar.exclude)}` },
    ],
  };
}
