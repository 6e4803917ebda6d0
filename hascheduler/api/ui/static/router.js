// The view and its filters are the address: `/ui/<view>?…`. Views write filters through `setQuery`.
import { signal } from "./vendor/signals.js";

const PAGE = "/ui";

/** @typedef {{view: string, query: URLSearchParams}} Place */

/** @returns {Place} */
function here() {
  return { view: location.pathname.slice(PAGE.length + 1) || "now", query: new URLSearchParams(location.search) };
}

/** Where the page is. */
export const place = signal(here());

addEventListener("popstate", () => (place.value = here()));

// Links of this page change the view without loading it; all others are left to the browser.
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

/** Change filters of the view; a filter that becomes empty goes. A change begins at the first page again.
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
