// Lanes, tenants, definitions and calendars: their limits, how much is used, and edits.
import { html, useEffect, useRef, useState } from "../html.js";
import { Problem, may, ofAll, request, segment } from "../api.js";
import { picture, useData } from "../data.js";
import { counted, number, plain, sentence, span } from "../format.js";
import { Action, Failure, Field, Link, Menu, Pages, Tabs, loaded, table } from "../parts/basic.js";
import { Bar } from "../parts/charts.js";
import { Edit, JsonField, readJson } from "../parts/edit.js";
import { tagOf } from "../parts/schedule_actions.js";
import { place } from "../router.js";

const PAGE = 50;
const LANES = 100;
const FEW = 20;
const COUNTS_MS = 10_000;
const DAYS_SHOWN = 12;

/** @typedef {"lanes" | "tenants" | "definitions" | "calendars"} Kind */
/** What the tables of all kinds share. @typedef {{label: string, none: any, menu: any, named: boolean}} Shared */
/** `rows`: the table of a page; `isWhole`: all items are on this page.
 * @typedef {{power: "operate" | "administer", example: string, about: string, none: string, rows: (page: any, shared: Shared, isWhole: boolean) => any}} Noun */

/** @type {Record<Kind, Noun>} */
const NOUNS = {
  lanes: {
    power: "administer",
    example: '{"weight": 2, "promote_after": "1m", "policy": ["aged_priority", "arrival"]}',
    about: "Classes of work. When lanes compete, twice the weight gets twice the share. A lane that is not listed has weight 1.",
    none: "No lane is defined: all jobs share the lane default.",
    rows: lanes,
  },
  tenants: {
    power: "administer",
    example: '{"max_running": 10, "max_pending": 10000, "submit_rate": {"count": 100, "per": "1s"}, "max_schedules": 200}',
    about: "Owners of jobs and schedules, with their quotas and rates. A tenant that is not listed has no limits.",
    none: "No tenant has a quota.",
    rows: tenants,
  },
  definitions: {
    power: "operate",
    example: '{"max_concurrency": 3, "timeout": "5m", "retry": {"attempts": 5, "backoff": "2s", "factor": 2, "max": "1m"}}',
    about: "Types of jobs, with their limits. A definition that is not listed uses the defaults.",
    none: "No definition has limits of its own.",
    rows: definitions,
  },
  calendars: {
    power: "administer",
    example: '{"weekdays": ["mon-fri"], "exclude": ["--12-25", "--01-01"]}',
    about: "Sets of days that schedules share.",
    none: "There are no calendars.",
    rows: calendars,
  },
};
const KINDS = /** @type {Kind[]} */ (Object.keys(NOUNS));
const oneOf = (/** @type {Kind} */ kind) => kind.slice(0, -1);

export default function View() {
  const kind = KINDS.find((each) => each === place.value.query.get("kind"));
  return html`<div class="sec"><h1>Lanes and tenants</h1>
      <${Tabs} label="What is shown" tabs=${[{ name: "All", query: { kind: "" } }, ...KINDS.map((each) => ({ name: sentence(each), query: { kind: each } }))]} /></div>
    ${(kind ? [kind] : KINDS).map((each) => html`<${Nouns} key=${`${each} ${kind}`} kind=${each} isAlone=${Boolean(kind)} />`)}`;
}

/** Alone, a kind has pages; among others, it shows its first items. @param {{kind: Kind, isAlone: boolean}} props */
function Nouns({ kind, isAlone }) {
  const { power, about, none, rows } = NOUNS[kind];
  const after = isAlone ? place.value.query.get("after") : "";
  const asked = useData(`/v1/${kind}`, { after, limit: kind === "lanes" ? LANES : isAlone ? PAGE : FEW }, { everyMs: 5_000 });
  const mayEdit = may(power) && ofAll.value;
  const shared = {
    named: true,
    label: sentence(kind),
    none: html`${none} ${mayEdit && html`Create one above, or run <code>hascheduler ${oneOf(kind)} put NAME</code>`}`,
    menu: mayEdit && ((/** @type {any} */ item) => html`<${Menu} name=${`Actions for ${item.name}`}>${acts(kind, item, asked.reload)}<//>`),
  };
  return html`<section class="sec"><div class="top"><h2>${sentence(kind)} <small>${about}</small></h2>${mayEdit && html`<${New} kind=${kind} reload=${asked.reload} />`}</div>
    ${loaded(asked, (page) => html`${rows(page, shared, !page.next && !after)}
      <${Pages} page=${isAlone ? page : { ...page, next: null }} />${!isAlone && page.next && html`<p><${Link} to="lanes" query=${{ kind }}>All ${kind}<//></p>`}`)}</section>`;
}

/** @param {any} shown */
function editable(shown) {
  const { name, rev, ...rest } = shown;
  return rest;
}

/** The entries of a row's menu; a lane that is not defined has none. @param {Kind} kind @param {any} item @param {() => void} reload */
function acts(kind, item, reload) {
  if (!item.rev) return [];
  const path = `/v1/${kind}/${segment(item.name)}`;
  return [
    html`<${Edit} label="Edit…" what=${`${oneOf(kind)} ${item.name}`} path=${path} form=${editable} done=${reload} />`,
    html`<hr />`,
    html`<${Action} label="Delete…" danger done=${reload} act=${() => request("DELETE", path, { headers: { "if-match": tagOf(item) } })}
      question=${html`<p>This deletes the ${oneOf(kind)} <bdi class="b">${plain(item.name, 80)}</bdi>. ${kind === "calendars" ? "It is refused while schedules use the calendar." : "Its jobs go on with the defaults."}</p>`} />`,
  ];
}

/** @param {{kind: Kind, reload: () => void}} props */
function New({ kind, reload }) {
  const { about, example } = NOUNS[kind];
  const make = async (/** @type {FormData} */ form) => {
    const name = String(form.get("name"));
    try {
      await request("PUT", `/v1/${kind}/${segment(name)}`, { body: readJson(String(form.get("body"))), headers: { "if-none-match": "*" } });
    } catch (failed) {
      throw failed instanceof Problem && failed.status === 412 ? new Error(`The ${oneOf(kind)} ${name} already exists; edit it instead.`) : failed;
    }
  };
  return html`<${Action} label=${`New ${oneOf(kind)}…`} confirm="Create" done=${reload} act=${make} question=${html`<p>${about}</p>`}>
    <${Field} label="Name" name="name" required maxlength="128" pattern="[A-Za-z0-9][A-Za-z0-9._\\-]*" title="Letters, digits, ., _ or -, starting with a letter or digit" autocomplete="off" />
    <${JsonField} label="As JSON" name="body" first=${example} /><//>`;
}

/** The name, and below it its owner. @type {import("../parts/basic.js").Column<any>} */
const NAME = { head: "Name", row: true, show: (item) => html`<bdi class="b">${plain(item.name, 80)}</bdi>${item.owner && html`<small>${plain(item.owner, 60)}</small>`}` };
const none = html`<span class="off">–</span>`;
const percent = (/** @type {number} */ value, /** @type {number} */ of) => `${((100 * value) / of).toFixed(1)} %`;

/** @param {Wire.RateLimitResponse | null} rate */
const rateText = (rate) => (rate ? `${number(rate.count)} per ${rate.per}` : "–");

/** The picture's numbers for one name; null if it has none. @param {import("../data.js").Busiest | null | undefined} among @param {string} name */
function busy(among, name) {
  const found = among?.items.find((each) => each.name === name);
  return found || (among?.whole ? { name, pending: 0, dispatched: 0, running: 0, waited_ms: null } : null);
}

/** How many jobs of a lane are in these states now, and their part of all. @param {{name: string, label: string, states: ("pending" | "dispatched" | "running")[]}} props */
function LaneUse({ name, label, states }) {
  const seen = busy(picture.value?.lanes, name);
  const all = picture.value?.numbers;
  if (!seen || !all) return none;
  const sum = (/** @type {typeof all} */ numbers) => states.reduce((total, state) => total + numbers[state], 0);
  const [value, of] = [sum(seen), sum(all)];
  return html`${number(value)}${value > 0 && of > 0 && html` <span class="q">${percent(value, of)}</span>`}<${Bar} value=${value} of=${of} label=${`${label} in ${name}`} />
    ${label === "Waiting" && seen.waited_ms && html`<small>oldest: ${span(seen.waited_ms)}</small>`}`;
}

/** Lanes, and those that have jobs but are not defined. @param {Wire.LanePage} page @param {Shared} shared @param {boolean} isWhole */
function lanes({ items }, shared, isWhole) {
  /** @typedef {{name: string, weight: number} & Partial<Wire.LaneResponse>} Lane */
  const weights = items.reduce((sum, lane) => sum + lane.weight, items.some((lane) => lane.name === "default") ? 0 : 1);
  const unlisted = isWhole ? (picture.value?.lanes?.items || []).filter(({ name }) => !items.some((lane) => lane.name === name)).slice(0, FEW) : [];
  return table({ ...shared, items: /** @type {Lane[]} */ ([...items, ...unlisted.map(({ name }) => ({ name, weight: 1 }))]), columns: [
    NAME,
    { head: "Weight", cell: "n end", show: (lane) => number(lane.weight) },
    { head: "Share while all lanes have work", cell: "full", show: ({ name, rev, weight }) => (!rev ? html`<span class="q">not defined</span>` : isWhole
      ? html`${percent(weight, weights)}<${Bar} value=${weight} of=${weights} label=${`Weight of ${name}`} />`
      : html`<span class="q">depends on lanes of other pages</span>`) },
    { head: "Running", cell: "full", show: ({ name }) => html`<${LaneUse} name=${name} label="Running" states=${["dispatched", "running"]} />` },
    { head: "Waiting", cell: "full", show: ({ name }) => html`<${LaneUse} name=${name} label="Waiting" states=${["pending"]} />` },
    { head: "Policy", cell: "full", show: ({ rev, policy, promote_after: after }) => (!rev ? none : html`${policy ? policy.join(", ") : html`<span class="q">the deployment's policy</span>`}<small>promoted after ${[after].flat().join(", ")}</small>`) },
  ] });
}

/** @param {Wire.TenantPage} page @param {Shared} shared */
function tenants({ items }, shared) {
  return table({ ...shared, items, columns: [
    NAME,
    { head: "Running, waiting, schedules", cell: "full", show: ({ name, max_running: running, max_pending: pending, max_schedules: schedules }) =>
      html`<${Uses} of=${{ tenant: name }} seen=${busy(picture.value?.tenants, name)} limits=${{ running, pending, schedules }} />` },
    { head: "Submits", cell: "n full", show: (tenant) => html`${rateText(tenant.submit_rate)}` },
    { head: "Fires", cell: "n full", show: (tenant) => html`${rateText(tenant.fire_rate)}` },
  ] });
}

/** @param {Wire.DefinitionPage} page @param {Shared} shared */
function definitions({ items }, shared) {
  return table({ ...shared, items, columns: [
    NAME,
    { head: "Running, waiting", cell: "full", show: ({ name, max_concurrency: running }) => html`<${Uses} of=${{ definition: name }} limits=${{ running }} />` },
    { head: "Tries", cell: "full", show: ({ retry }) => html`${counted(retry.attempts, "try", "tries")}<small>${retry.backoff} × ${retry.factor}, at most ${retry.max}</small>` },
    { head: "Timeout", cell: "full", show: ({ timeout, total_timeout: total }) => html`${timeout || html`<span class="q">no timeout</span>`}${total && html`<small>${total} in all</small>`}` },
    { head: "Cost", cell: "n drop", show: (definition) => html`${definition.default_cost}<small>until learned</small>` },
    { head: "Also", cell: "full", show: also },
  ] });
}

/** @param {Wire.DefinitionResponse} definition */
function also({ conflict_group: group, conflict_scope: scope, key_limits: limits, unique, resources, tier, rate_limit: rate, on_failure: onFailure }) {
  const found = [
    rate && `starts ${rateText(rate)}`,
    tier !== null && `tier ${tier}`,
    onFailure && `a failure submits ${onFailure}`,
    group && `excludes others of ${group} on one target (${scope})`,
    limits.length && counted(limits.length, "limit for keys", "limits for keys"),
    unique && `unique by ${unique.by.join(", ")}: ${unique.on_duplicate}`,
    Object.keys(resources).length && `needs ${Object.entries(resources).map(([name, units]) => `${name} ${units}`).join(", ")}`,
  ].filter(Boolean);
  return found.map((text) => html`<small><bdi>${plain(text, 200)}</bdi></small>`);
}

/** @param {string[]} days */
const daysText = (days) => (days.length ? `${days.slice(0, DAYS_SHOWN).join(", ")}${days.length > DAYS_SHOWN ? ` and ${number(days.length - DAYS_SHOWN)} more` : ""}` : "–");

/** @param {Wire.CalendarPage} page @param {Shared} shared */
function calendars({ items }, shared) {
  return table({ ...shared, items, columns: [
    NAME,
    { head: "Weekdays", cell: "full", show: (calendar) => calendar.weekdays.join(", ") || "–" },
    { head: "Also", cell: "full", show: (calendar) => html`${daysText(calendar.include)}` },
    { head: "Except", cell: "full", show: (calendar) => html`${daysText(calendar.exclude)}` },
  ] });
}

/**
 * What the jobs and schedules of a tenant or of a definition use of their limits: from the picture, or requested once the row is visible.
 * @param {{of: Record<string, string>, limits: {running: number | null, pending?: number | null, schedules?: number | null}, seen?: import("../data.js").Busy | null}} props  `seen`: of the picture
 */
function Uses({ of, limits, seen = null }) {
  const cell = useRef(/** @type {HTMLElement | null} */ (null));
  const [isVisible, see] = useState(false);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && see(true));
    observer.observe(/** @type {HTMLElement} */ (cell.current));
    return () => observer.disconnect();
  }, []);
  const asked = useData(isVisible && !seen ? "/v1/jobs:counts" : null, { ...of, state: ["pending", "dispatched", "running"] }, { everyMs: COUNTS_MS });
  const counts = seen || asked.data;
  const schedules = useData(isVisible && counts && limits.schedules !== undefined ? "/v1/schedules:counts" : null, of, { everyMs: COUNTS_MS }).data;
  const exact = Boolean(seen || asked.data?.exact);
  return html`<div ref=${cell} class="uses">${asked.error ? html`<${Failure} error=${asked.error} />` : html`<div><${Used} value=${counts && counts.dispatched + counts.running} of=${limits.running} label="Running" exact=${exact} /></div>`}
    <div><${Link} to="jobs" query=${{ ...of, state: "pending" }}>${limits.pending === undefined ? (counts ? `${number(counts.pending)} wait` : "…") : html`<${Used} value=${counts && counts.pending} of=${limits.pending} label="Waiting" exact=${exact} />`}<//></div>
    ${limits.schedules !== undefined && html`<div><${Link} to="schedules" query=${of}><${Used} value=${schedules && schedules.matched} of=${limits.schedules} label="Schedules" exact=${schedules?.exact} /><//></div>`}</div>`;
}

/** A number and its limit, or the number alone if there is no limit. @param {{value: number | null, of: number | null, label: string, exact?: boolean}} props  `value`: null while unknown */
function Used({ value, of, label, exact }) {
  const shown = value === null ? "…" : `${number(value)}${exact ? "" : "+"}`;
  if (of === null) return html`${shown} <span class="q">no limit</span>`;
  const isFull = value !== null && value >= of;
  return html`${shown} of ${number(of)}${isFull && html` <strong class="warn">full</strong>`}${value !== null && html`<${Bar} value=${value} of=${of} label=${label} kind=${isFull ? "k-late" : ""} />`}`;
}
