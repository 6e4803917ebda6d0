// Requests to the public API, `/v1/…`, with the cookie of the session, and who that is. Integers stay exact.
import { computed, signal } from "./html.js";

/** A refusal, in the API's words. */
export class Problem extends Error {
  /** @param {number} status @param {{type?: string, title?: string, detail?: string, errors?: {path: string, problem: string, expected: string}[]}} body */
  constructor(status, body) {
    super(body.detail || body.title || `the replica answered ${status}`);
    this.status = status;
    this.type = (body.type || "").replace("urn:hascheduler:problem:", "");
    this.errors = body.errors || [];
  }
}

/** Set when a request was answered 401: the session has ended. */
export const sessionEnded = signal(false);

const ANSWER_MS_MAX = 30_000;
const SOON_MS = 400;
const UNHEARD_OF_TRIES = 4;

/** Parse JSON, with integers beyond 2^53 as BigInt if the browser gives the text of a number.
 * @param {string} text @returns {any} */
export function parse(text) {
  // @ts-ignore  the third argument is newer than the types
  return JSON.parse(text, (_key, value, context) =>
    typeof value === "number" && !Number.isSafeInteger(value) && context && /^-?\d+$/.test(context.source)
      ? BigInt(context.source)
      : value,
  );
}

/** The reverse of `parse`.
 * @param {unknown} value @param {number} [indent] @returns {string} */
export function stringify(value, indent) {
  // @ts-ignore  rawJSON is newer than the types
  return JSON.stringify(value, (_key, each) => (typeof each === "bigint" ? JSON.rawJSON(String(each)) : each), indent);
}

/** The text of a query; a list becomes repeated parameters, and empty values are left out.
 * @param {Record<string, any>} [query] */
export function queryText(query) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query || {})) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== null && each !== "" && each !== false) search.append(name, String(each));
    }
  }
  const text = search.toString();
  return text ? `?${text}` : "";
}

/** A segment of a path. @param {string} name */
export const segment = (name) => encodeURIComponent(name).replaceAll("%3A", ":");

/**
 * Send one request. A read is retried once if the replica is stopping or none answers, and a few times if the replica
 * does not know the session yet (401 with Retry-After).
 * @param {string} method @param {string} path
 * @param {{query?: Record<string, any>, body?: unknown, headers?: Record<string, string>, signal?: AbortSignal}} [options]
 * @returns {Promise<{data: any, etag: string | null}>}
 */
export async function request(method, path, { query, body, headers, signal } = {}) {
  /** @type {RequestInit & {signal: AbortSignal}} */
  const init = {
    method,
    body: body === undefined ? undefined : stringify(body),
    headers: { accept: "application/json", ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
    cache: "no-store",
    redirect: "error",
    signal: AbortSignal.any([AbortSignal.timeout(ANSWER_MS_MAX), ...(signal ? [signal] : [])]),
  };
  let answer;
  for (let tries = 1; ; tries += 1) {
    const isLast = method !== "GET" || tries === 2;
    try {
      answer = await fetch(path + queryText(query), init);
      const isUnheardOf = answer.status === 401 && answer.headers.has("retry-after") && tries < UNHEARD_OF_TRIES;
      if (!isUnheardOf && (answer.status !== 503 || isLast)) break;
    } catch (error) {
      if (signal?.aborted) throw error;
      if (isLast || init.signal.aborted) throw new Problem(0, { detail: "No replica answers at this address. The page keeps trying." });
    }
    await new Promise((done) => setTimeout(done, SOON_MS));
  }
  const text = await answer.text();
  const data = text && /json/.test(answer.headers.get("content-type") || "") ? parse(text) : null;
  if (answer.ok) return { data, etag: answer.headers.get("etag") };
  if (answer.status === 401 && path !== "/ui/session") sessionEnded.value = true;
  throw new Problem(answer.status, data || { title: text.slice(0, 200) });
}

/** @param {string} path @param {Record<string, any>} [query] @param {AbortSignal} [signal] @returns {Promise<any>} */
export const get = async (path, query, signal) => (await request("GET", path, { query, signal })).data;

/** @param {string} path @param {unknown} [body] @param {Record<string, string>} [headers] @returns {Promise<any>} */
export const post = async (path, body, headers) => (await request("POST", path, { body, headers })).data;

/** @typedef {Wire.WhoamiResponse & {session: boolean, read_only: boolean, payloads: "on_request" | "never", environment: string}} Session */
/** Null without one; undefined until a replica has answered who uses the page. */
export const session = signal(/** @type {Session | null | undefined} */ (undefined));

/** True if this session's role has the power; the API enforces it in any case. @param {"read" | "submit" | "operate" | "administer" | "work"} power */
export const may = (power) => Boolean(session.value?.may.includes(power));
export const ofAll = computed(() => session.value?.tenant === "*");

export async function askWho() {
  session.value = await get("/ui/session").catch((error) => {
    if (error.status !== 401) throw error;
    return null;
  });
}

/** @param {string} token */
export async function logIn(token) {
  session.value = await post("/ui/session", { token });
  sessionEnded.value = false;
}

export async function logOut() {
  await request("DELETE", "/ui/session");
  session.value = null;
}
