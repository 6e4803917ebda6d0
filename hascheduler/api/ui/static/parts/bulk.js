// An operation on all that match: counted first, confirmed, then followed while the replicas carry it out.
import { html, useState } from "../html.js";
import { post } from "../api.js";
import { counted, number } from "../format.js";
import { Action } from "./actions.js";
import { Failure } from "./basic.js";
import { go, to } from "../router.js";

/** What the API's filter takes, without what is empty. @param {Record<string, any>} filter */
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

/** @param {{action: string, filter: Record<string, any>, label: string, words: string, danger?: boolean, priority?: boolean, reason?: boolean}} props */
export function BulkAction({ action, filter, label, words, danger, priority, reason }) {
  const [count, setCount] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  const which = chosen(filter);
  const open = async () => {
    setCount(null);
    setError(null);
    try {
      setCount(await post("/v1/operations", { action, filter: which, dry_run: true, ...(priority ? { priority: 5 } : {}) }));
    } catch (failed) {
      setError(failed);
    }
  };
  const act = (/** @type {FormData} */ form) =>
    post("/v1/operations", {
      action,
      filter: which,
      expected: count?.matched,
      ...(priority ? { priority: Number(form.get("priority")) } : {}),
      ...(reason && form.get("reason") ? { reason: form.get("reason") } : {}),
    });
  const shown = Object.entries(which);
  return html`<${Action} label=${label} danger=${danger} onOpen=${open} act=${act} disabled=${!shown.length}
    done=${(/** @type {any} */ operation) => go(to("operations", { id: operation.id }))}
    confirm=${count ? `${label.split(" all ")[0]} ${number(count.matched)}${count.exact === false ? "+" : ""}` : label}
    question=${html`<p>${count ? html`<strong>${counted(count.matched, "match", "match")}${count.exact === false ? " or more" : ""}</strong>: ` : error ? "" : "Counting… "}${words}</p>
      <p class="dim">${shown.map(([name, value]) => `${name}: ${typeof value === "object" ? JSON.stringify(value) : value}`).join(", ")}</p><${Failure} error=${error} />`}>
    ${priority && html`<label class="field"><span>Priority, 10 is the most urgent</span><input type="number" name="priority" min="0" max="10" value="5" required /></label>`}
    ${reason && html`<label class="field"><span>Why</span><input name="reason" maxlength="256" /></label>`}
  <//>`;
}
