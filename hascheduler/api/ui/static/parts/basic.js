// Small parts of views: states, menus, buttons that ask first, errors, instants, links, tabs, tables, pages.
import { html, signal, useEffect, useRef, useState } from "../html.js";
import { session, stringify } from "../api.js";
import { now } from "../data.js";
import { ago, number, plain, shortTime, time } from "../format.js";
import { go, hasQuery, place, setQuery, to, withQuery } from "../router.js";

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
function closeMenus(inside) {
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

/** What an act has done or why it was refused, on top of the page until the next act or view. */
const notice = signal(/** @type {{text: any, error: any} | null} */ (null));

/** Say what has been done; null: forget it, for another view. @param {any} text */
export const say = (text) => (notice.value = text && { text, error: null });

/** The shell shows it once. */
export function Notice() {
  const { text, error } = notice.value || {};
  return html`<div class="notice" role="status">${notice.value && html`<div class=${`note ${error ? "bad-note" : ""}`}><p>${error ? error.message : text}</p>
    <button type="button" aria-label="Close the message" onClick=${() => say(null)}>×</button></div>`}</div>`;
}

/** What a control does: while it is `busy`, and the `error` with which it was refused. `run` is done once both are known; `submit` runs
 * what a form asks for. */
export function useAct() {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {any} */ (null));
  const run = async (/** @type {() => Promise<any>} */ act) => {
    setBusy(true);
    setError(null);
    await act().catch(setError);
    setBusy(false);
  };
  const submit = (/** @type {(form: FormData) => Promise<any>} */ act) => (/** @type {any} */ event) => {
    event.preventDefault();
    run(async () => act(new FormData(event.target, event.submitter)));
  };
  return { busy, error, run, submit };
}

/** A dialog, from when it is drawn until it is not. Where it came from, its menu is closed. @param {{name: string, wide?: boolean, leave: () => void, children?: any}} props */
export function Dialog({ name, wide, leave, children }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    const shown = /** @type {HTMLDialogElement} */ (dialog.current);
    const menu = /** @type {HTMLElement | null | undefined} */ (shown.closest(".menu")?.querySelector("summary"));
    shown.showModal();
    return () => {
      shown.close();
      closeMenus(null);
      menu?.focus();
    };
  }, []);
  return html`<dialog ref=${dialog} class=${wide ? "editor" : ""} aria-label=${name} onClose=${leave}>${children}</dialog>`;
}

/**
 * A button, or an entry of a `Menu`, that asks before it acts. The label of one that asks ends with "…".
 * @param {{label: string, title?: string, question?: any, confirm?: string, danger?: boolean, primary?: boolean, idle?: boolean, act: (form: FormData) => Promise<any>,
 *   done?: (answer: any) => void, said?: any, children?: any, onOpen?: () => void, onLeave?: () => void}} props
 *   `title`: of the dialog, if it is not the label; `question`: what will happen; without it the button acts at once. `confirm`: the button that
 *   acts, not while `idle`. `said`: what to say when it is done. `children`: fields to fill in.
 */
export function Action({ label, title, question, confirm, danger, primary, idle, act, done, said, children, onOpen, onLeave }) {
  const [open, setOpen] = useState(false);
  const { busy, error, run, submit } = useAct();
  const name = title || label.replace(/…$/, "");
  const perform = async (/** @type {FormData} */ form) => {
    say(null);
    const answer = await act(form).catch((failed) => {
      if (!question) notice.value = { text: null, error: failed };
      throw failed;
    });
    setOpen(false);
    if (said) say(said);
    done?.(answer);
  };
  const begin = () => {
    if (!question) return run(() => perform(new FormData()));
    onOpen?.();
    setOpen(true);
  };
  const leave = () => {
    onLeave?.();
    setOpen(false);
  };
  return html`<button type="button" class=${danger ? "danger" : primary ? "primary" : ""} disabled=${busy} aria-haspopup=${question ? "dialog" : undefined} onClick=${begin}>${label}</button>
    ${open && html`<${Dialog} name=${name} leave=${leave}><form class="form" onSubmit=${submit(perform)}>
      <h2>${name}</h2>
      <div>${question}</div>
      ${children}
      <${Failure} error=${error} />
      <div class="acts">
        <button type="button" onClick=${leave}>Close</button>
        <button type="submit" class=${danger ? "danger" : "primary"} disabled=${busy || idle}>${busy ? "Working…" : confirm || name}</button>
      </div>
    </form><//>`}`;
}

/** An input of a form, below its label. @param {{label: string, [attribute: string]: any}} props */
export const Field = ({ label, ...input }) => html`<label class="field"><span class="b">${label}</span><input ...${input} /></label>`;

/** @param {string} text */
export async function copy(text) {
  if (!navigator.clipboard) throw new Error("This browser copies only over HTTPS or from localhost; select the text instead.");
  await navigator.clipboard.writeText(text);
}

/** True if the dashboard must not show payloads and results (HASCHEDULER_UI_PAYLOADS). */
export const payloadsAreSecret = () => session.value?.payloads === "never";

/** A payload or a result, hidden until it is asked for. @param {{title: string, value: any}} props */
export function Hidden({ title, value }) {
  const [shown, show] = useState(false);
  if (payloadsAreSecret()) return html`<section class="sec"><h2>${title}</h2><p class="q">Payloads and results are not shown here (HASCHEDULER_UI_PAYLOADS).</p></section>`;
  const text = shown ? stringify(value, 2) : "";
  return html`<section class="sec"><div class="top"><h2>${title}</h2><button type="button" aria-expanded=${shown} onClick=${() => show(!shown)}>${shown ? "Hide" : "Show"}</button></div>
    ${shown && html`<pre>${plain(text, 100_000)}</pre><${Copy} text=${text} />`}</section>`;
}

/** @param {{text: string}} props */
function Copy({ text }) {
  const [isDone, setDone] = useState(false);
  const { error, run } = useAct();
  return html`<p class="acts"><button type="button" onClick=${() => run(() => copy(text).then(() => setDone(true)))}>Copy</button>
    <span role="status" class="q">${error ? error.message : isDone && "copied"}</span></p>`;
}

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

/** What has been asked for, once it is there. @template T @param {import("../data.js").Asked<T>} asked @param {(data: T) => any} show */
export const loaded = ({ data, error, loading }, show) =>
  html`<${Failure} error=${error} />${data !== null ? show(data) : loading && html`<p class="off" role="status">Loading…</p>`}`;

/** Names and values; none for what does not apply. @param {[string, any][]} facts */
export const factList = (facts) => html`<dl class="facts">${facts.filter(([, value]) => value).map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;

/** @param {{to: string, query?: Record<string, any>, class?: string, title?: string, children?: any}} props */
export const Link = ({ to: view, query, title, class: name, children }) =>
  html`<a href=${to(view, query)} title=${title} class=${name}>${children}</a>`;

/** @param {{id: string, children?: any}} props */
export const JobLink = ({ id, children }) => html`<${Link} to="job" query=${{ id }}><bdi>${children || plain(id, 80)}</bdi><//>`;
/** @param {{name: string}} props */
export const ScheduleLink = ({ name }) => html`<${Link} to="schedule" query=${{ name }}><bdi>${plain(name, 80)}</bdi><//>`;

/**
 * States with counts, as links. `query`: what the tab changes in the address; `count`: undefined while unknown.
 * @param {{label: string, tabs: {name: string, state?: string, query: Record<string, string>, count?: number | string | null}[]}} props
 */
export const Tabs = ({ label, tabs }) => html`<nav class="tabs" aria-label=${label}>${tabs.map(({ name, state, query, count }) => html`<a href=${withQuery(query)} aria-current=${hasQuery(query) ? "page" : undefined}>
  ${state ? html`<${State} state=${state} word=${name} />` : name} ${count !== undefined && count !== null && html`<b>${number(count)}</b>`}</a>`)}</nav>`;

/**
 * A column. `head`: its name, `hidden` for one that only screen readers hear; `show`: the cell of an item; `row`: the cell names its row;
 * `sort`: the value of `sort` in the address; `cell`: classes. On a narrow screen each row becomes a small grid, and of the classes `first`
 * goes first, `full` has a line of its own, `end` is at the right, `drop` is not shown; `r` right-aligned, `n` never broken, `q` quiet.
 * @template T @typedef {{head: any, show: (item: T) => any, row?: boolean, hidden?: boolean, sort?: string, cell?: string}} Column
 */

/** What tells an item from others. @param {any} item @returns {string} */
export const keyOf = (item) => item.id ?? item.name;

/**
 * A table that is a list of blocks below 640 pixels; all cells have roles, because some browsers forget them in a grid.
 *
 *     table({ label: "Jobs", items: jobs, columns: [{ head: "Job", row: true, show: (job) => … }, …], none: "No job matches.",
 *       selection: useSelection(jobs), nameOf: …, menu: (job) => html`<${Menu} name=… >…<//>` })
 *
 * @template T
 * @param {{label: string, items: T[], columns: (Column<T> | false | null)[], none?: any, selection?: import("./bulk.js").Selection | null,
 *   nameOf?: (item: T) => string, menu?: ((item: T) => any) | null | false, sorted?: string, named?: boolean}} props
 *   `none`: shown if there are no items; `selection`: adds a column of checkboxes, named by `nameOf`; `menu`: adds a column at the end;
 *   `sorted`: the value of `sort` in force; `named`: blocks have the heads of their cells, too.
 */
export function table({ label, items, columns, none, selection, nameOf = keyOf, menu, sorted, named }) {
  if (none && !items.length) return html`<${Empty}>${none}<//>`;
  const shown = /** @type {Column<T>[]} */ (columns.filter(Boolean));
  const box = (/** @type {string} */ name, /** @type {boolean} */ checked, /** @type {() => void} */ toggle) => html`<input type="checkbox" aria-label=${name} checked=${checked} onChange=${toggle} />`;
  const heads = shown.map(({ head, hidden, sort, cell = "" }) => html`<th role="columnheader" scope="col" class=${/\br\b/.test(cell) ? "r" : ""} aria-sort=${sort && sort === sorted ? "descending" : undefined}>
    ${sort ? html`<a href=${withQuery({ sort })}>${head}${sort === sorted ? " ↓" : ""}</a>` : hidden ? html`<span class="hide">${head}</span>` : head}</th>`);
  return html`<table role="table" class=${`reflow ${selection ? "pick" : ""} ${named ? "named" : ""}`} aria-label=${label}>
    <thead role="rowgroup"><tr role="row">
      ${selection && html`<th role="columnheader" scope="col">${box("Select all on this page", selection.isWhole, selection.toggleAll)}</th>`}${heads}
      ${menu && html`<th role="columnheader" scope="col"><span class="hide">Actions</span></th>`}</tr></thead>
    <tbody role="rowgroup">${items.map((item) => {
      const key = keyOf(item);
      return html`<tr role="row" key=${key}>
        ${selection && html`<td role="cell" class="pk">${box(`Select ${nameOf(item)}`, selection.has(key), () => selection.toggle(key))}</td>`}
        ${shown.map(({ head, show, row, cell }) => (row ? html`<th role="rowheader" scope="row" class=${cell}>${show(item)}</th>` : html`<td role="cell" class=${cell} data-head=${named ? head : undefined}>${show(item)}</td>`))}
        ${menu && html`<td role="cell" class="r end mn">${menu(item)}</td>`}</tr>`;
    })}</tbody></table>`;
}

/** "1 to 13 of 148", the pages before and after, and what of this page can't be read. @param {{page: any, total?: number | string | null}} props  `total`: how many match, if known */
export function Pages({ page, total }) {
  const { query, before } = place.value;
  const after = query.get("after");
  const { items, next, unreadable = [] } = page;
  const first = before.reduce((sum, each) => sum + each.rows, 0);
  // Who came by a link to a later page has no pages before it, and goes to the first.
  const isAlone = after && !before.length;
  return html`${unreadable.length > 0 && html`<div class="note bad-note"><p>${number(unreadable.length)} on this page can't be read:</p>
      <ul>${unreadable.map((/** @type {any} */ each) => html`<li><code>${plain(each.id)}</code> ${plain(each.reason)}</li>`)}</ul></div>`}
    ${(after || next) && html`<nav class="pages" aria-label="Pages">
      <span>${!isAlone && `${number(first + 1)} to ${number(first + items.length)}${total === null || total === undefined ? "" : ` of ${number(total)}`}`}</span>
      <span class="acts"><button type="button" disabled=${!after} onClick=${() => go(withQuery({ after: before.at(-1)?.after }), before.slice(0, -1))}>${isAlone ? "First page" : "Previous"}</button>
        <button type="button" disabled=${!next} onClick=${() => setQuery({ after: next }, [...before, { after: after || "", rows: items.length }])}>Next</button></span></nav>`}`;
}

/** Labels as links to what has them. @param {{labels: Record<string, string>, view: string}} props */
export const Labels = ({ labels, view }) => Object.entries(labels).map(([key, value]) => html`<a class="label" title="Only with this label" href=${to(view, { label: `${key}=${value}` })}><bdi>${plain(`${key}=${value}`, 60)}</bdi></a> `);
