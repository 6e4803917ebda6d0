// Who uses this page: requested when it starts, and again after a request was refused because the session ended.
import { Problem, get, request, sessionEnded } from "./api.js";
import { computed, signal } from "./vendor/signals.js";

/**
 * @typedef {{name: string, token: string | null, role: string, tenant: string, may: string[], session: boolean,
 *   expires_at: string | null, tokens_demanded: boolean, read_only: boolean, payloads: "on_request" | "never",
 *   environment: string, version: string, replica: string}} Session
 */

/** @type {import("./vendor/signals.js").Signal<Session | null>} */
export const session = signal(null);
/** True once the replica has answered who uses the page. */
export const known = signal(false);

/** True if this session's role has the power; the API enforces it in any case. @param {"read" | "submit" | "operate" | "administer" | "work"} power */
export const may = (power) => Boolean(session.value?.may.includes(power));
export const ofAll = computed(() => session.value?.tenant === "*");

export async function askWho() {
  try {
    session.value = await get("/ui/session");
    sessionEnded.value = false;
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 401) throw error;
    session.value = null;
  } finally {
    known.value = true;
  }
}

/** @param {string} token */
export async function logIn(token) {
  const answer = await request("POST", "/ui/session", { body: { token } });
  session.value = answer.data;
  sessionEnded.value = false;
}

export async function logOut() {
  await request("DELETE", "/ui/session");
  session.value = null;
}
