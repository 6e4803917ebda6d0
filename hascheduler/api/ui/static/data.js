// What the page shows: a picture of the cluster, once a second, with one hour of history, and answers of the API.
// One tab of a browser holds the stream and passes pictures to the others, because a browser opens few connections to one
// host. If it can't, each tab has its own stream.
import { computed, signal, useEffect, useState } from "./html.js";
import { get, parse, queryText, request, sessionEnded, stringify } from "./api.js";

const STREAM = "/v1/cluster/live";
const CHANNEL = "hascheduler-live";
const LOCK = "hascheduler-live-stream";
const STALE_AFTER_MS = 4_000;
const RETRY_MS_MAX = 5_000;

/** @typedef {{at: string, cluster: Wire.ClusterResponse, processors: Wire.ProcessorsResponse | null,
 *   slots: Record<string, number>, lanes?: Busiest | null, tenants?: Busiest | null,
 *   numbers: {pending: number, dispatched: number, running: number, oldest_wait_ms?: number | null, per_minute?: Record<string, number>}}} Picture */
/** @typedef {{name: string, pending: number, dispatched: number, running: number, waited_ms?: number | null}} Busy */
/** The lanes or tenants with the most live jobs; `whole`: all others have none.
 * @typedef {{items: Busy[], whole: boolean}} Busiest */
/** At most one hour, oldest first. @typedef {{every_ms: number, until: string, series: Record<string, number[]>}} Hour */

export const picture = signal(/** @type {Picture | null} */ (null));
/** When the picture arrived, by this browser's clock. */
export const cameAt = signal(0);
export const hour = signal(/** @type {Hour | null} */ (null));
/** True while the page does not update ("Freeze this page"). */
export const frozen = signal(false);
/** True while nothing can be reached at this address; a replica that is slow can be reached. */
export const unreachable = signal(false);
/** This browser's clock, updated once a second. */
export const clock = signal(Date.now());
setInterval(() => (clock.value = Date.now()), 1_000);

/** Since when the picture is stale, or 0. */
export const staleSince = computed(() => (!frozen.value && cameAt.value && clock.value - cameAt.value > STALE_AFTER_MS ? cameAt.value : 0));
/** The instant that ages on the page are measured from: it stands still while the page is stale or frozen. */
export const now = computed(() => ((frozen.value || staleSince.value) && cameAt.value) || clock.value);
/** The same instant by the clock of the replica. */
export const replicaNow = computed(() => now.value - (picture.value ? cameAt.value - Date.parse(picture.value.at) : 0));
/** The name of the replica that sent the picture. */
export const replicaName = computed(() => nameOf(picture.value?.cluster.replica_id));
/** The name of a replica or a processor, also of one that is gone: an id is its name and a random end. @param {string | null | undefined} id */
export function nameOf(id) {
  const all = [...(picture.value?.cluster.replicas || []), ...(picture.value?.processors?.items || [])];
  return all.find((each) => each.id === id)?.name || (id || "").replace(/\.[0-9a-f]{8,}$/, "");
}
/** The verdict on the whole; a replica of an earlier release does not send one. */
export const health = computed(() => picture.value?.cluster.health || null);

const channel = new BroadcastChannel(CHANNEL);

/** @param {string} kind @param {any} data */
function take(kind, data) {
  if (kind === "unreachable") unreachable.value = data;
  else if (frozen.value) return;
  else if (kind === "history") hour.value = data;
  else {
    cameAt.value = clock.value = Date.now();
    picture.value = data;
    unreachable.value = false;
  }
}

/** @param {string} kind @param {string} text */
function tell(kind, text) {
  take(kind, parse(text));
  channel.postMessage({ kind, text });
}

/** Follow the stream until the page closes, at another replica if one is gone. */
async function stream() {
  for (let waitMs = 250; ; waitMs = Math.min(waitMs * 2, RETRY_MS_MAX)) {
    await new Promise((ended) => {
      const source = new EventSource(STREAM);
      let silent = setTimeout(end, 3 * STALE_AFTER_MS);
      function end() {
        clearTimeout(silent);
        source.close();
        ended(null);
      }
      for (const kind of ["history", "picture"]) {
        source.addEventListener(kind, (event) => {
          waitMs = 250;
          clearTimeout(silent);
          silent = setTimeout(end, 3 * STALE_AFTER_MS);
          tell(kind, event.data);
        });
      }
      source.onerror = end;
    });
    // EventSource does not report the status; a request does.
    await get("/v1/whoami").then(
      () => tell("unreachable", "false"),
      (error) => tell("unreachable", String(error.status === 0)),
    );
    if (sessionEnded.value) return;
    await new Promise((done) => setTimeout(done, waitMs * (0.5 + Math.random())));
  }
}

let isFollowing = false;

/** Start to follow, once the caller is known to be allowed to. */
export function follow() {
  if (isFollowing) return;
  isFollowing = true;
  const whole = () => stream().finally(() => (isFollowing = false));
  if (navigator.locks) {
    channel.onmessage = (event) => take(event.data.kind, parse(event.data.text));
    navigator.locks.request(LOCK, whole);
  } else {
    whole();
  }
}

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
