// Rows that are selected, the bar of what can be done with them, and a change of many: counted, confirmed, repeated until it is complete.
import { html, useRef, useState } from "../html.js";
import { Problem, post, segment } from "../api.js";
import { counted, number, plain } from "../format.js";
import { place } from "../router.js";
import { Action, say } from "./actions.js";
import { Failure } from "./basic.js";

/** `all`: not only the rows of this page, but all that match the filters.
 * @typedef {{keys: string[], all: boolean, count: number, isWhole: boolean, has: (key: string) => boolean, toggle: (key: string) => void,
 *   toggleAll: () => void, selectAll: () => void, clear: () => void}} Selection */

/** The selected rows of a page; other filters or another page begin with none. @param {any[]} items @param {(item: any) => string} keyOf @returns {Selection} */
export function useSelection(items, keyOf) {
  const address = place.value.query.toString();
  const [chosen, choose] = useState({ address, keys: /** @type {string[]} */ ([]), all: false });
  const present = items.map(keyOf);
  const isCurrent = chosen.address === address;
  const keys = isCurrent ? chosen.keys.filter((key) => present.includes(key)) : [];
  const all = isCurrent && chosen.all;
  const set = (/** @type {string[]} */ keys, all = false) => choose({ address, keys, all });
  const isWhole = present.length > 0 && (all || keys.length === present.length);
  return {
    keys,
    all,
    count: keys.length,
    isWhole,
    has: (key) => all || keys.includes(key),
    toggle: (key) => set(all ? present.filter((other) => other !== key) : keys.includes(key) ? keys.filter((other) => other !== key) : [...keys, key]),
    toggleAll: () => set(isWhole ? [] : present),
    selectAll: () => set(present, true),
    clear: () => set([]),
  };
}

/**
 * A bar that exists only while something is selected. Children: `BulkAction`s and a `Menu` with `up`.
 * @param {{selection: Selection, noun: string, total?: number | string | null, children?: any}} props  `total`: how many match the filters, if known
 */
export function Bulk({ selection, noun, total, children }) {
  if (!selection.count) return null;
  const whole = total === undefined || total === null ? "" : ` ${typeof total === "number" ? number(total) : total}`;
  return html`<div class="bulk" role="region" aria-label=${`Acts on the selected ${noun}s`}>
    <span><b>${selection.all ? `All${whole}` : number(selection.count)} selected.</b>
      ${!selection.all && selection.isWhole && total !== selection.count && html` <button type="button" class="bare" onClick=${selection.selectAll}>Select all${whole} that match</button>`}</span>
    <button type="button" class="last" aria-label="Clear the selection" onClick=${selection.clear}>×</button>${children}</div>`;
}

/** The filter as the API takes it, without empty fields. @param {Record<string, any>} filter */
function chosen(filter) {
  /** @type {Record<string, any>} */
  const found = {};
  for (const [name, value] of Object.entries(filter)) {
    if (name === "label" && value.length) {
      found.labels = Object.fromEntries(value.map((/** @type {string} */ each) => [each.slice(0, each.indexOf("=")), each.slice(each.indexOf("=") + 1)]));
    } else if (value === "true") found[name] = true;
    else if (value && value.length) found[name] = value;
  }
  return found;
}

/** A unique idempotency key; browsers have `randomUUID` only over TLS. */
const newKey = () => Array.from(crypto.getRandomValues(new Uint32Array(4))).join("-");

const NONE = { changed: 0, asked_to_stop: 0, refused: 0, error: "" };

/** @param {typeof NONE} total @param {any} count */
const doneText = (total, count) =>
  `${number(total.changed)} of ${number(count.matched)}${count.exact === false ? "+" : ""} changed` +
  (total.asked_to_stop ? `, ${counted(total.asked_to_stop, "running job")} asked to stop` : "") +
  (total.refused ? `, ${number(total.refused)} refused: ${total.error}` : "");

/**
 * A button that changes the selected rows one by one, or everything that matches `filter` (the fields of the address) or `which` (a filter of the API).
 * @param {{path: string, verb: string, noun: string, words: string, label?: string, filter?: Record<string, any>, which?: Record<string, any>, selection?: Selection,
 *   one?: (key: string, fields: Record<string, any>) => Promise<any>, danger?: boolean, priority?: boolean, reason?: boolean, reload: () => void}} props
 *   `path`: such as `/v1/jobs:cancel`; `one`: the request for one row, if it is not such as `/v1/jobs/<key>/cancel`.
 */
export function BulkAction({ path, verb, noun, words, label, filter = {}, which: given, selection, one, danger, priority, reason, reload }) {
  const [count, setCount] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  const [total, setTotal] = useState(/** @type {typeof NONE | null} */ (null));
  const run = useRef(/** @type {any} */ ({}));
  const which = given || chosen(filter);
  const ofRows = selection && !selection.all;
  const [rooms, change] = path.split(":");
  const ask = (/** @type {any} */ body) => post(path, { filter: which, ...body }, change === "trigger" ? { "idempotency-key": run.current.key } : {});
  const open = async () => {
    run.current = { key: newKey(), left: false, after: null, keys: selection?.keys || [] };
    setCount(ofRows ? { matched: selection.keys.length, exact: true } : null);
    setError(null);
    setTotal(null);
    if (ofRows) return;
    try {
      setCount(await ask({ dry_run: true, ...(priority ? { priority: 5 } : {}) }));
    } catch (failed) {
      setError(failed);
    }
  };
  const changeRows = async (/** @type {any} */ own, /** @type {Record<string, any>} */ fields) => {
    let now = { ...NONE };
    for (const key of own.keys) {
      if (own.left) break;
      try {
        await (one ? one(key, fields) : post(`${rooms}/${segment(key)}/${change}`, Object.keys(fields).length ? fields : undefined));
        now = { ...now, changed: now.changed + 1 };
      } catch (failed) {
        if (!(failed instanceof Problem) || failed.status < 400 || failed.status >= 500) throw failed;
        now = { ...now, refused: now.refused + 1, error: failed.message };
      }
      setTotal(now);
    }
    return now;
  };
  const changeMatches = async (/** @type {any} */ own, /** @type {Record<string, any>} */ fields) => {
    let now = total || { ...NONE };
    for (let complete = false; !complete && !own.left; ) {
      const answer = await ask({ ...fields, expected: count.matched, ...(own.after ? { after: own.after } : {}) });
      complete = answer.complete;
      own.after = answer.next;
      now = { changed: now.changed + answer.changed, asked_to_stop: now.asked_to_stop + answer.asked_to_stop, refused: now.refused + answer.refused, error: answer.error || now.error };
      setTotal(now);
    }
    return now;
  };
  const act = (/** @type {FormData} */ form) => {
    const fields = {
      ...(priority ? { priority: Number(form.get("priority")) } : {}),
      ...(reason && form.get("reason") ? { because: form.get("reason") } : {}),
    };
    return (ofRows ? changeRows : changeMatches)(run.current, fields);
  };
  const done = (/** @type {typeof NONE} */ now) => {
    say(`${verb}: ${doneText(now, count)}.`);
    selection?.clear();
    reload();
  };
  const what = count ? `${verb} ${count.exact === false ? "at least " : ""}${counted(count.matched, noun)}` : `${verb} ${noun}s`;
  const met = total ? total.changed + total.asked_to_stop + total.refused : 0;
  const shown = ofRows ? [] : Object.entries(which).filter(([, value]) => value && Object.keys(value).length !== 0);
  return html`<${Action} label=${label || `${verb}…`} title=${`${what}?`} confirm=${what} danger=${danger} idle=${!count?.matched} onOpen=${open} onLeave=${() => (run.current.left = true)} act=${act} done=${done}
    question=${html`<p>${!count && !error && "Counting… "}${words}</p>
      ${shown.length > 0 && html`<p class="q">All with ${shown.map(([name, value]) => `${name.replaceAll("_", " ")} ${plain(value === true ? "" : typeof value === "object" ? Object.entries(value).map((pair) => pair.join("=")).join(", ") : value, 120)}`.trim()).join(", ")}</p>`}
      ${!ofRows && !shown.length && html`<p class="q">No filter is set: this means every ${noun}.</p>`}<${Failure} error=${error} />
      ${count && total && html`<p><progress max=${Math.max(1, count.matched, met)} value=${met} aria-label="Progress"></progress> ${doneText(total, count)}</p>`}`}>
    ${priority && html`<label class="field"><span class="b">Priority, 10 is the most urgent</span><input type="number" name="priority" min="0" max="10" value="5" required /></label>`}
    ${reason && html`<label class="field"><span class="b">Reason (shown to others)</span><input name="reason" maxlength="256" /></label>`}
  <//>`;
}
