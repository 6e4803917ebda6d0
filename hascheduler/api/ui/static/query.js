// Data of the API in a view, reloaded when the address changes and while the page is live.
import { useEffect, useRef, useState } from "./vendor/hooks.js";
import { get, queryText } from "./api.js";
import { frozen } from "./live.js";

const AGAIN_MS = 3_000;
/** While one of these is open, no row moves away under it. */
const HELD = "dialog[open], .menu[open]";

/** @template T @typedef {{data: T | null, error: any, loading: boolean, reload: () => void}} Asked */

/**
 * The answer at `path`; `reload` requests it again. Old data stays until new data arrives, and if that fails.
 * @param {string | null} path  null: nothing to ask
 * @param {Record<string, any>} [query]
 * @param {{everyMs?: number}} [options]  0: only once
 * @returns {Asked<any>}
 */
export function useData(path, query, { everyMs = AGAIN_MS } = {}) {
  const address = path === null ? null : path + queryText(query);
  const [shown, show] = useState(/** @type {{address: string | null, data: any, error: any}} */ ({ address: null, data: null, error: null }));
  const [turn, again] = useState(0);
  const latest = useRef(address);
  latest.current = address;
  useEffect(() => {
    if (address === null) return undefined;
    const stop = new AbortController();
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    let isFirst = true;
    async function load() {
      const began = performance.now();
      if (isFirst || !(frozen.value || document.hidden || document.querySelector(HELD))) {
        isFirst = false;
        try {
          const data = await get(/** @type {string} */ (address), undefined, stop.signal);
          if (!stop.signal.aborted) show({ address, data, error: null });
        } catch (error) {
          if (stop.signal.aborted) return;
          show((before) => {
            const data = before.address === address ? before.data : null;
            // That no replica answers is said once, on top of the page.
            return { address, data, error: data && /** @type {any} */ (error).status === 0 ? null : error };
          });
        }
      }
      // A replica that answers slowly is asked less often.
      if (everyMs && !stop.signal.aborted) timer = setTimeout(load, everyMs + 10 * (performance.now() - began));
    }
    load();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [address, turn, everyMs]);
  const isCurrent = shown.address === address;
  return {
    data: isCurrent ? shown.data : null,
    error: isCurrent ? shown.error : null,
    loading: address !== null && !isCurrent,
    reload: () => again((turn) => turn + 1),
  };
}
