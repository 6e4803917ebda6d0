// Small parts of views: states, menus, errors, empty places, instants, links, tabs, tables, pages.
import { html } from "../html.js";
import { ago, number, plain, shortTime, time } from "../format.js";
import { now } from "../live.js";
import { go, place, setQuery, to, withQuery } from "../router.js";

/** A state is a shape, a colour and a word, so that colour is never the only sign. The shapes are drawn in style.css.
 * @type {Record<string, [string, string, string]>} */
const SIGNS = {
  pending: ["ring", "warn", "waits"], dispatched: ["half", "run", "dispatched"], running: ["half", "run", "runs"],
  succeeded: ["ok", "good", "succeeded"], failed: ["x", "bad", "failed"], cancelled: ["sq", "off", "cancelled"],
  lost: ["dash", "warn", "lost"], timed_out: ["x", "bad", "timed out"], fired: ["ok", "good", "fired"],
  late: ["tri", "warn", "late"], coalesced: ["sq", "off", "coalesced"], skipped: ["ring", "off", "skipped"],
  missed: ["x", "bad", "missed"], unstorable: ["x", "bad", "unstorable"], excluded: ["ring", "off", "excluded"],
  throttled: ["tri", "warn", "throttled"], active: ["ok", "good", "active"], failing: ["x", "bad", "failing"],
  paused: ["bars", "warn", "paused"], ended: ["sq", "off", "ended"], alive: ["ok", "good", "alive"],
  ready: ["ok", "good", "ready"], leads: ["star", "good", "leads"], draining: ["bars", "warn", "drains"],
  silent: ["dash", "warn", "silent"], unready: ["dash", "warn", "not ready"], page: ["x", "bad", "Act now"],
  ticket: ["tri", "warn", "Look today"], good: ["ok", "good", "good"], warning: ["tri", "warn", "warning"],
  critical: ["x", "bad", "critical"], unknown: ["dash", "warn", "unknown"],
};

/** The shape, the colour and the word of a state. @param {string} state */
export const sign = (state) => SIGNS[state] || ["sq", "off", state.replaceAll("_", " ")];

/** A state: its shape, then its word. `word` replaces the word; `wrap`: a long one may break.
 * @param {{state: string, word?: any, wrap?: boolean}} props */
export function State({ state, word, wrap }) {
  const [shape, colour, known] = sign(state);
  return html`<span class=${`s ${shape} ${colour}${wrap ? " wrap" : ""}`}>${word || known}</span>`;
}

/**
 * A menu of what can be done with one thing; in rows, it is the only control beside a checkbox and links.
 * Children: `Action`s and links, `<hr />` between groups; without any there is no menu. It closes on Escape and on a click elsewhere.
 * @param {{name: string, label?: string, up?: boolean, quiet?: boolean, only?: string, children?: any}} props  `name`: what a screen reader says
 *   ("Actions for nightly"); `label`: shown in place of ⋯; `up`: opens upwards; `quiet`: not drawn as a button; `only`: a class, such as `narrow`
 */
export function Menu({ name, label, up, quiet, only = "", children }) {
  if (![children].flat(9).some((child) => child && child.type !== "hr")) return null;
  return html`<details class=${`menu ${up ? "up" : ""} ${only}`}>
    <summary aria-label=${label ? undefined : name} class=${label && !quiet ? "btn" : ""}>${label ? `${label} ▾` : "⋯"}</summary><div>${children}</div></details>`;
}

/** Close the menus that `inside` is not in. @param {Element | null} inside */
export function closeMenus(inside) {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!inside || !menu.contains(inside)) /** @type {HTMLDetailsElement} */ (menu).open = false;
  }
}
addEventListener("click", (event) => {
  const target = /** @type {Element} */ (event.target);
  // A button that asks first has its question inside the menu, which closes after it.
  const isDone = target.closest(".menu > div > a, .menu > div > button:not([aria-haspopup])");
  closeMenus(isDone ? null : target);
});
addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && !document.querySelector("dialog[open]") && document.querySelector("details.menu[open]");
  if (!menu) return;
  closeMenus(null);
  menu.querySelector("summary")?.focus();
});

/** An instant as its distance from now, with the exact time in its title. @param {{at: string | null | undefined, zone?: string}} props */
export function When({ at, zone }) {
  if (!at) return html`<span class="off">–</span>`;
  return html`<time dateTime=${at} title=${`${at}\n${time(at)}${zone ? `\n${time(at, zone)} ${zone}` : ""}`}>${ago(at, now.value)}</time>`;
}

/** The distance large, and the clock small below it. @param {{at: string | null | undefined, zone?: string}} props */
export const Moment = ({ at, zone }) => html`<${When} at=${at} zone=${zone} />${at && html`<small>${shortTime(at, zone)}</small>`}`;

/** An error, in the API's words. @param {{error: any}} props */
export function Failure({ error }) {
  if (!error) return null;
  return html`<div class="note bad-note" role="alert">
    <p>${plain(error.message)}</p>
    ${(error.errors || []).length > 1 && html`<ul>${error.errors.map((/** @type {any} */ each) => html`<li><code>${plain(each.path)}</code> ${plain(each.problem)}${each.expected && `; expected ${plain(each.expected)}`}</li>`)}</ul>`}
  </div>`;
}

/** Text in place of an empty list: what to do next. @param {{children?: any}} props */
export const Empty = ({ children }) => html`<p class="off">${children}</p>`;

/** @param {{of: {error: any, loading: boolean, data: any}, children?: any}} props */
export function Loaded({ of, children }) {
  return html`<${Failure} error=${of.error} />${of.data === null ? of.loading && html`<p class="off" role="status">Loading…</p>` : children}`;
}

/** @param {{to: string, query?: Record<string, any>, class?: string, title?: string, children?: any}} props */
export const Link = ({ to: view, query, title, class: name, children }) =>
  html`<a href=${to(view, query)} title=${title} class=${name}>${children}</a>`;

/** @param {{id: string, children?: any}} props */
export const JobLink = ({ id, children }) => html`<${Link} to="job" query=${{ id }}><bdi>${children || plain(id, 80)}</bdi><//>`;
/** @param {{name: string}} props */
export const ScheduleLink = ({ name }) => html`<${Link} to="schedule" query=${{ name }}><bdi>${plain(name, 80)}</bdi><//>`;

/**
 * States with counts, as links. `query`: what the tab changes in the address; `count`: undefined while unknown.
 * @param {{label: string, tabs: {name: string, state?: string, query: Record<string, any>, count?: number | string | null, current: boolean}[]}} props
 */
export const Tabs = ({ label, tabs }) => html`<nav class="tabs" aria-label=${label}>${tabs.map(({ name, state, query, count, current }) => html`<a href=${withQuery(query)} aria-current=${current ? "page" : undefined}>
  ${state ? html`<${State} state=${state} word=${name} />` : name} ${count !== undefined && count !== null && html`<b>${typeof count === "number" ? number(count) : count}</b>`}</a>`)}</nav>`;

/**
 * A column. `head`: its name, `hidden` for one that only screen readers hear; `show`: the cell of an item; `row`: the cell names its row;
 * `sort`: the value of `sort` in the address; `cell`: classes. On a narrow screen each row becomes a small grid, and of the classes `first`
 * goes first, `full` has a line of its own, `end` is at the right, `drop` is not shown; `r` right-aligned, `n` never broken, `q` quiet.
 * @template T @typedef {{head: any, show: (item: T, row: number) => any, row?: boolean, hidden?: boolean, sort?: string, cell?: string}} Column
 */

/**
 * A table that is a list of blocks below 640 pixels; all cells have roles, because some browsers forget them in a grid.
 *
 *     html`<${Table} label="Jobs" items=${jobs} keyOf=${(job) => job.id} columns=${[{ head: "Job", row: true, show: (job) => … }, …]}
 *       selection=${useSelection(jobs, keyOf)} nameOf=${…} menu=${(job) => html`<${Menu} name=… >…<//>`} />`
 *
 * @param {{label: string, items: any[], columns: (Column<any> | false | null)[], keyOf?: (item: any) => string, selection?: import("./bulk.js").Selection | null,
 *   nameOf?: (item: any) => string, menu?: ((item: any) => any) | null, after?: (item: any, columns: number) => any, sorted?: string}} props
 *   `selection`: adds a column of checkboxes, named by `nameOf`; `menu`: adds a column at the end; `after`: a row after an item's;
 *   `sorted`: the value of `sort` in force.
 */
export function Table({ label, items, columns, keyOf, selection, nameOf, menu, after, sorted }) {
  const shown = /** @type {Column<any>[]} */ (columns.filter(Boolean));
  const box = (/** @type {string} */ name, /** @type {boolean} */ checked, /** @type {() => void} */ toggle) => html`<input type="checkbox" aria-label=${name} checked=${checked} onChange=${toggle} />`;
  const heads = shown.map(({ head, hidden, sort, cell = "" }) => html`<th role="columnheader" scope="col" class=${/\br\b/.test(cell) ? "r" : ""} aria-sort=${sort && sort === sorted ? "descending" : undefined}>
    ${sort ? html`<a href=${withQuery({ sort })}>${head}${sort === sorted ? " ↓" : ""}</a>` : hidden ? html`<span class="hide">${head}</span>` : head}</th>`);
  return html`<table role="table" class=${`reflow ${selection ? "pick" : ""}`} aria-label=${label}>
    <thead role="rowgroup"><tr role="row">
      ${selection && html`<th role="columnheader" scope="col">${box("Select all on this page", selection.isWhole, selection.toggleAll)}</th>`}${heads}
      ${menu && html`<th role="columnheader" scope="col"><span class="hide">Actions</span></th>`}</tr></thead>
    <tbody role="rowgroup">${items.map((item, place) => {
      const key = keyOf ? keyOf(item) : String(place);
      return html`<tr role="row" key=${key}>
        ${selection && html`<td role="cell" class="pk">${box(`Select ${nameOf ? nameOf(item) : key}`, selection.has(key), () => selection.toggle(key))}</td>`}
        ${shown.map(({ show, row, cell }) => (row ? html`<th role="rowheader" scope="row" class=${cell}>${show(item, place)}</th>` : html`<td role="cell" class=${cell}>${show(item, place)}</td>`))}
        ${menu && html`<td role="cell" class="r end mn">${menu(item)}</td>`}</tr>${after?.(item, shown.length)}`;
    })}</tbody></table>`;
}

/** "1 to 13 of 148", and the pages before and after. @param {{page: any, total?: number | string | null}} props  `total`: how many match, if known */
export function Pages({ page, total }) {
  const { query, before } = place.value;
  const after = query.get("after");
  if (!after && !page?.next) return null;
  const count = page?.items.length || 0;
  const first = before.reduce((sum, each) => sum + each.rows, 0);
  // Who came by a link to a later page has no pages before it, and goes to the first.
  const previous = () => go(withQuery({ after: before.at(-1)?.after }), before.slice(0, -1));
  const next = () => setQuery({ after: page.next }, [...before, { after: after || "", rows: count }]);
  return html`<nav class="pages" aria-label="Pages">
    <span>${after && !before.length ? "" : `${number(first + 1)} to ${number(first + count)}${total === null || total === undefined ? "" : ` of ${typeof total === "number" ? number(total) : total}`}`}</span>
    <span class="acts"><button type="button" disabled=${!after} onClick=${previous}>${after && !before.length ? "First page" : "Previous"}</button>
      <button type="button" disabled=${!page?.next} onClick=${next}>Next</button></span></nav>`;
}

/** Documents of a page that can't be read. @param {{page: any}} props */
export function Unreadable({ page }) {
  if (!page?.unreadable?.length) return null;
  return html`<div class="note bad-note"><p>${number(page.unreadable.length)} on this page can't be read:</p>
    <ul>${page.unreadable.map((/** @type {any} */ each) => html`<li><code>${plain(each.id)}</code> ${plain(each.reason)}</li>`)}</ul></div>`;
}

/** Labels as links that filter by them. @param {{labels: Record<string, string>}} props */
export const Labels = ({ labels }) => html`${Object.entries(labels || {}).map(([key, value]) => html`<a class="label" title="Only with this label" href=${withQuery({ label: `${key}=${value}` })}><bdi>${plain(`${key}=${value}`, 60)}</bdi></a> `)}`;
