// Data of the API in a view, reloaded when the address changes and while the page is live.
import { useEffect, useState } from "./vendor/hooks.js";
import { queryText, request, stringify } from "./api.js";
import { frozen } from "./live.js";

const AGAIN_MS = 3_000;
/** While one of these is open, no row moves away under it. */
const HELD = "dialog[open], .menu[open]";

/** `latest`: the newest answer, also one at another address.
 * @template T @typedef {{data: T | null, latest: T | null, error: any, loading: boolean, reload: () => void}} Asked */

/**
 * The answer at `path`; `reload` requests it again. Old data stays until new data arrives, and if that fails.
 * @template {string | null} P
 * @param {P} path  null: nothing to ask
 * @param {Record<string, any>} [query]
 * @param {{everyMs?: number, body?: unknown, waitMs?: number}} [options]  `everyMs` 0: only once; `body`: to POST; `waitMs`: before asking first
 * @returns {Asked<Wire.Answer<NonNullable<P>>>}
 */
export function useData(path, query, { everyMs = AGAIN_MS, body, waitMs = 0 } = {}) {
  const address = path === null ? null : path + queryText(query) + (body === undefined ? "" : ` ${stringify(body)}`);
  const [shown, show] = useState(/** @type {{address: string | null, data: any, latest: any, error: any}} */ ({ address: null, data: null, latest: null, error: null }));
  const [turn, again] = useState(0);
  useEffect(() => {
    if (path === null) return undefined;
    const stop = new AbortController();
    let isFirst = true;
    async function load() {
      const began = performance.now();
      if (isFirst || !(frozen.value || document.hidden || document.querySelector(HELD))) {
        isFirst = false;
        try {
          const { data } = await request(body === undefined ? "GET" : "POST", /** @type {string} */ (path), { query, body, signal: stop.signal });
          if (!stop.signal.aborted) show({ address, data, latest: data, error: null });
        } catch (error) {
          if (stop.signal.aborted) return;
          show((before) => {
            const data = before.address === address ? before.data : null;
            // That no replica answers is said once, on top of the page.
            return { ...before, address, data, error: data && /** @type {any} */ (error).status === 0 ? null : error };
          });
        }
      }
      // A replica that answers slowly is asked less often.
      if (everyMs && !stop.signal.aborted) timer = setTimeout(load, everyMs + 10 * (performance.now() - began));
    }
    let timer = setTimeout(load, waitMs);
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [address, turn, everyMs]);
  const isCurrent = shown.address === address;
  return {
    data: isCurrent ? shown.data : null,
    latest: shown.latest,
    error: isCurrent ? shown.error : null,
    loading: address !== null && !isCurrent,
    reload: () => again((turn) => turn + 1),
  };
}
