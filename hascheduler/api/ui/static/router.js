// The view and its filters are the address: `/ui/<view>?…`. Views write filters through `setQuery`.
import { signal } from "./vendor/signals.js";

const PAGE = "/ui";

/** @typedef {{view: string, query: URLSearchParams}} Place */

/** @returns {Place} */
function here() {
  return { view: location.pathname.slice(PAGE.length + 1) || "now", query: new URLSearchParams(location.search) };
}

/** The current view and its query. */
export const place = signal(here());

addEventListener("popstate", () => (place.value = here()));

// Links within the page change the view without loading it; the browser follows all others.
addEventListener("click", (event) => {
  const link = /** @type {Element} */ (event.target).closest?.("a[href]");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  const url = new URL(/** @type {HTMLAnchorElement} */ (link).href);
  if (url.origin !== location.origin || !(url.pathname === PAGE || url.pathname.startsWith(`${PAGE}/`))) return;
  if (url.hash) return;
  event.preventDefault();
  go(url.pathname + url.search);
});

/** @param {string} url */
export function go(url) {
  if (url !== location.pathname + location.search) history.pushState(null, "", url);
  place.value = here();
  scrollTo(0, 0);
  document.querySelector("main")?.focus({ preventScroll: true });
}

/** The address of a view. @param {string} view @param {Record<string, any>} [query] */
export function to(view, query) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query || {})) {
    for (const each of Array.isArray(value) ? value : [value]) if (each) search.append(name, String(each));
  }
  const text = search.toString();
  return (view === "now" ? PAGE : `${PAGE}/${view}`) + (text ? `?${text}` : "");
}

/** Change filters of the view, and go to its first page; an empty value removes a filter.
 * @param {Record<string, any>} changes */
export function setQuery(changes) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries({ after: "", ...changes })) {
    query.delete(name);
    for (const each of Array.isArray(value) ? value : [value]) if (each) query.append(name, String(each));
  }
  const text = query.toString();
  go(location.pathname + (text ? `?${text}` : ""));
}
