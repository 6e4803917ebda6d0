// A change of everything that matches a filter: counted, confirmed, then repeated until it is complete.
import { html, useRef, useState } from "../html.js";
import { post } from "../api.js";
import { counted, number } from "../format.js";
import { Action } from "./actions.js";
import { Failure } from "./basic.js";

/** The filter as the API takes it, without empty fields. @param {Record<string, any>} filter */
function chosen(filter) {
  /** @type {Record<string, any>} */
  const found = {};
  for (const [name, value] of Object.entries(filter)) {
    if (name === "label" && value.length) {
      found.labels = Object.fromEntries(value.map((/** @type {string} */ each) => [each.slice(0, each.indexOf("=")), each.slice(each.indexOf("=") + 1)]));
    } else if (name === "unschedulable") {
      if (value === "true") found[name] = true;
    } else if (value && value.length) found[name] = value;
  }
  return found;
}

/** A unique idempotency key; browsers have `randomUUID` only over TLS. */
const newKey = () => Array.from(crypto.getRandomValues(new Uint32Array(4))).join("-");

/** @param {any} total @param {any} count */
const doneText = (total, count) =>
  `${number(total.changed)} of ${number(count.matched)}${count.exact ? "" : "+"} changed` +
  (total.asked_to_stop ? `, ${counted(total.asked_to_stop, "running job")} asked to stop` : "") +
  (total.refused ? `, ${number(total.refused)} refused: ${total.error}` : "");

/** `path`: such as `/v1/jobs:cancel`.
 * @param {{path: string, filter: Record<string, any>, label: string, words: string, danger?: boolean, priority?: boolean, reason?: boolean, reload: () => void}} props */
export function BulkAction({ path, filter, label, words, danger, priority, reason, reload }) {
  const [count, setCount] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  const [total, setTotal] = useState(/** @type {any} */ (null));
  const run = useRef(/** @type {any} */ ({}));
  const which = chosen(filter);
  const ask = (/** @type {any} */ body) =>
    post(path, { filter: which, ...body }, path.endsWith(":trigger") ? { "idempotency-key": run.current.key } : {});
  const open = async () => {
    run.current = { key: newKey(), left: false, after: null };
    setCount(null);
    setError(null);
    setTotal(null);
    try {
      setCount(await ask({ dry_run: true, ...(priority ? { priority: 5 } : {}) }));
    } catch (failed) {
      setError(failed);
    }
  };
  const act = async (/** @type {FormData} */ form) => {
    const own = run.current;
    const fields = {
      ...(count ? { expected: count.matched } : {}),
      ...(priority ? { priority: Number(form.get("priority")) } : {}),
      ...(reason && form.get("reason") ? { because: form.get("reason") } : {}),
    };
    let now = total || { changed: 0, asked_to_stop: 0, refused: 0 };
    for (let complete = false; !complete && !own.left; ) {
      const answer = await ask({ ...fields, ...(own.after ? { after: own.after } : {}) });
      complete = answer.complete;
      own.after = answer.next;
      now = { changed: now.changed + answer.changed, asked_to_stop: now.asked_to_stop + answer.asked_to_stop, refused: now.refused + answer.refused, error: answer.error || now.error };
      setTotal(now);
    }
  };
  const shown = Object.entries(which);
  const met = total ? total.changed + total.asked_to_stop + total.refused : 0;
  return html`<${Action} label=${label} danger=${danger} onOpen=${open} onLeave=${() => (run.current.left = true)} act=${act} done=${reload} disabled=${!shown.length}
    confirm=${count ? `${label.split(" all ")[0]} ${number(count.matched)}${count.exact === false ? "+" : ""}` : label}
    question=${html`<p>${count ? html`<strong>${counted(count.matched, "match", "match")}${count.exact === false ? " or more" : ""}</strong>: ` : error ? "" : "Counting… "}${words}</p>
      <p class="dim">${shown.map(([name, value]) => `${name}: ${typeof value === "object" ? JSON.stringify(value) : value}`).join(", ")}</p><${Failure} error=${error} />
      ${count && total && html`<p><progress max=${Math.max(1, count.matched, met)} value=${met} aria-label="Progress"></progress> ${doneText(total, count)}</p>`}`}>
    ${priority && html`<label class="field"><span>Priority, 10 is the most urgent</span><input type="number" name="priority" min="0" max="10" value="5" required /></label>`}
    ${reason && html`<label class="field"><span>Reason</span><input name="reason" maxlength="256" /></label>`}
  <//>${count && total && html`<span role="status">${doneText(total, count)}</span>`}`;
}
