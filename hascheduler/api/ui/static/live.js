// A picture of the cluster, once a second. One tab of a browser holds the stream and passes pictures to the others,
// because a browser opens few connections to one host. If it can't, each tab has its own stream.
import { computed, signal } from "./vendor/signals.js";
import { get, parse, sessionEnded } from "./api.js";

const STREAM = "/v1/cluster/live";
const CHANNEL = "hascheduler-live";
const LOCK = "hascheduler-live-stream";
const STALE_AFTER_MS = 4_000;
const HISTORY_MAX = 300;
const AGAIN_MS_MAX = 5_000;

/** @typedef {{at: string, cluster: import("./wire.js").ClusterResponse, processors: import("./wire.js").ProcessorsResponse | null, slots: Record<string, number>, alerts: {severity: string, runbook: string, text: string}[], numbers: Record<string, number>, lanes?: Busiest | null, tenants?: Busiest | null}} Picture */
/** @typedef {{name: string, pending: number, dispatched: number, running: number, waited_ms?: number | null}} Busy */
/** The lanes or tenants with the most live jobs; `whole`: all others have none.
 * @typedef {{items: Busy[], whole: boolean}} Busiest */

/** @type {import("./vendor/signals.js").Signal<Picture | null>} */
export const picture = signal(null);
/** When the picture arrived, by this browser's clock. */
export const cameAt = signal(0);
/** @type {import("./vendor/signals.js").Signal<Record<string, number[]>>} */
export const history = signal({});
/** True while the page does not update. */
export const paused = signal(false);
/** This browser's clock, updated once a second. */
export const now = signal(Date.now());
setInterval(() => (now.value = Date.now()), 1_000);

/** Since when the picture is stale, or 0. */
export const staleSince = computed(() =>
  cameAt.value && now.value - cameAt.value > STALE_AFTER_MS ? cameAt.value : 0,
);
/** How far this browser's clock is ahead of the replica's. */
export const clockAheadMs = computed(() => (picture.value ? cameAt.value - Date.parse(picture.value.at) : 0));

const channel = "BroadcastChannel" in globalThis ? new BroadcastChannel(CHANNEL) : null;

/** @param {string} kind @param {any} data */
function take(kind, data) {
  if (kind === "history") {
    history.value = data.series;
    return;
  }
  if (paused.value) return;
  const series = { ...history.value };
  for (const [name, value] of Object.entries(data.numbers)) series[name] = [...(series[name] || []), value].slice(-HISTORY_MAX);
  history.value = series;
  cameAt.value = now.value = Date.now();
  picture.value = data;
}

/** @param {string} kind @param {string} text */
function tell(kind, text) {
  const data = parse(text);
  take(kind, data);
  channel?.postMessage({ kind, text });
}

/** Follow the stream until the page closes, at another replica if one is gone. */
async function stream() {
  for (let waitMs = 250; ; waitMs = Math.min(waitMs * 2, AGAIN_MS_MAX)) {
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
    await get("/v1/whoami").catch(() => null);
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
  if (channel && navigator.locks) {
    channel.onmessage = (event) => take(event.data.kind, parse(event.data.text));
    navigator.locks.request(LOCK, whole);
  } else {
    whole();
  }
}
