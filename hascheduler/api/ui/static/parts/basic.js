// Small parts of views: states, errors, empty places, instants, links, pages.
import { html } from "../html.js";
import { ago, number, plain, time } from "../format.js";
import { now } from "../live.js";
import { place, setQuery, to } from "../router.js";

/** A state is a shape, a word and a colour, so that colour is never the only sign. */
const SIGNS = {
  pending: ["◌", "wait"],
  dispatched: ["◔", "run"],
  running: ["◑", "run"],
  succeeded: ["●", "good"],
  failed: ["✕", "bad"],
  cancelled: ["⊘", "off"],
  fired: ["●", "good"],
  late: ["◗", "wait"],
  coalesced: ["◍", "off"],
  skipped: ["⊘", "off"],
  missed: ["✕", "bad"],
  unstorable: ["▣", "bad"],
  excluded: ["◇", "off"],
  throttled: ["▽", "bad"],
  active: ["▶", "good"],
  paused: ["❚❚", "wait"],
  ended: ["■", "off"],
  alive: ["●", "good"],
  ready: ["●", "good"],
  leads: ["★", "good"],
  draining: ["◔", "wait"],
  silent: ["✕", "bad"],
  unready: ["✕", "bad"],
  page: ["▲", "bad"],
  ticket: ["△", "wait"],
  done: ["●", "good"],
  stopped: ["■", "off"],
};

/** @param {string} state */
export const sign = (state) => SIGNS[/** @type {keyof typeof SIGNS} */ (state)] || ["○", "off"];

/** @param {{state: string, word?: string, title?: string}} props */
export function State({ state, word, title }) {
  const [mark, kind] = sign(state);
  return html`<span class=${`state ${kind}`} title=${title}><span aria-hidden="true">${mark}</span> ${word || state}</span>`;
}

/** An instant: how long ago, with the exact time in its title. @param {{at: string | null | undefined, zone?: string}} props */
export function When({ at, zone }) {
  if (!at) return html`<span class="dim">–</span>`;
  return html`<time dateTime=${at} title=${`${at}\n${time(at)}${zone ? `\n${time(at, zone)} ${zone}` : ""}`}>${ago(at, now.value)}</time>`;
}

/** An error, in the API's words. @param {{error: any}} props */
export function Failure({ error }) {
  if (!error) return null;
  return html`<div class="failure" role="alert">
    <p>${plain(error.message)}</p>
    ${(error.errors || []).length > 1 && html`<ul>${error.errors.map((/** @type {any} */ each) => html`<li><code>${plain(each.path)}</code> ${plain(each.problem)}${each.expected && `; expected ${plain(each.expected)}`}</li>`)}</ul>`}
  </div>`;
}

/** Text in place of an empty list: what to do next. @param {{children?: any}} props */
export const Empty = ({ children }) => html`<p class="empty">${children}</p>`;

/** @param {{of: {error: any, loading: boolean, data: any}, children?: any}} props */
export function Loaded({ of, children }) {
  return html`<${Failure} error=${of.error} />${of.data === null ? of.loading && html`<p class="empty" role="status">Loading…</p>` : children}`;
}

/** @param {{to: string, query?: Record<string, any>, class?: string, title?: string, children?: any}} props */
export const Link = ({ to: view, query, title, class: name, children }) =>
  html`<a href=${to(view, query)} title=${title} class=${name}>${children}</a>`;

/** @param {{id: string, short?: boolean}} props */
export const JobLink = ({ id }) => html`<${Link} to="job" query=${{ id }} class="id"><bdi>${plain(id, 80)}</bdi><//>`;
/** @param {{name: string}} props */
export const ScheduleLink = ({ name }) => html`<${Link} to="schedule" query=${{ name }} class="id"><bdi>${plain(name, 80)}</bdi><//>`;

/** Links to the first and the next page; the browser's back button leads to the previous one. @param {{page: any}} props */
export function Pages({ page }) {
  const after = place.value.query.get("after");
  if (!after && !page?.next) return null;
  return html`<nav class="pages" aria-label="Pages">
    ${after && html`<button type="button" onClick=${() => setQuery({})}>First page</button>`}
    ${page?.next && html`<button type="button" onClick=${() => setQuery({ after: page.next })}>Next page</button>`}
  </nav>`;
}

/** Documents of a page that can't be read. @param {{page: any}} props */
export function Unreadable({ page }) {
  if (!page?.unreadable?.length) return null;
  return html`<div class="failure"><p>${number(page.unreadable.length)} on this page can't be read:</p>
    <ul>${page.unreadable.map((/** @type {any} */ each) => html`<li><code>${plain(each.id)}</code> ${plain(each.reason)}</li>`)}</ul></div>`;
}

/** @param {{labels: Record<string, string>, onPick?: (label: string) => void}} props */
export function Labels({ labels, onPick }) {
  return html`${Object.entries(labels || {}).map(([key, value]) => {
    const label = `${key}=${value}`;
    return onPick
      ? html`<button type="button" class="label" title="Filter by this label" onClick=${() => onPick(label)}><bdi>${plain(label, 60)}</bdi></button>`
      : html`<span class="label"><bdi>${plain(label, 60)}</bdi></span>`;
  })}`;
}
