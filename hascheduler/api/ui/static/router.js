// The view and its filters are the address: `/ui/<view>?…`. Views write filters through `setQuery`.
import { signal } from "./html.js";
import { queryText } from "./api.js";

const PAGE = "/ui";

/** `before`: the cursors of the pages before this one and how many rows they had, kept by the browser's history.
 * @typedef {{view: string, query: URLSearchParams, before: {after: string, rows: number}[]}} Place */

/** @returns {Place} */
function here() {
  return { view: location.pathname.slice(PAGE.length + 1) || "now", query: new URLSearchParams(location.search), before: history.state?.before || [] };
}

/** The current view and its query. */
export const place = signal(here());

addEventListener("popstate", () => (place.value = here()));

// Links within the page change the view without loading it; the browser follows all others.
addEventListener("click", (event) => {
  const link = /** @type {Element} */ (event.target).closest?.("a[href]");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  const url = new URL(/** @type {HTMLAnchorElement} */ (link).href);
  if (url.origin !== location.origin || url.hash || !(url.pathname === PAGE || url.pathname.startsWith(`${PAGE}/`))) return;
  event.preventDefault();
  go(url.pathname + url.search);
});

/** @param {string} url @param {Place["before"]} [before] */
export function go(url, before = []) {
  if (url !== location.pathname + location.search) history.pushState({ before }, "", url);
  place.value = here();
  scrollTo(0, 0);
  document.querySelector("main")?.focus({ preventScroll: true });
}

/** The address of a view. @param {string} view @param {Record<string, any>} [query] */
export const to = (view, query) => (view === "now" ? PAGE : `${PAGE}/${view}`) + queryText(query);

/** The address of this view with other filters, on its first page; an empty value removes a filter.
 * @param {Record<string, any>} changes */
export function withQuery(changes) {
  const { view, query } = place.value;
  const before = Object.fromEntries([...query.keys()].map((name) => [name, query.getAll(name)]));
  return to(view, { ...before, after: "", ...changes });
}

/** True if the address has these filters, and none for those that are empty. @param {Record<string, string>} filters */
export const hasQuery = (filters) => Object.entries(filters).every(([name, value]) => (place.value.query.get(name) || "") === value);

/** Change filters of the view. @param {Record<string, any>} changes @param {Place["before"]} [before] */
export const setQuery = (changes, before) => go(withQuery(changes), before);
