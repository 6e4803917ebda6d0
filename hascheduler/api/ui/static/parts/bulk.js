// Rows that are selected, the bar of what can be done with them, and a change of many: counted, confirmed, repeated until it is complete.
import { html, useRef, useState } from "../html.js";
import { Problem, post, segment } from "../api.js";
import { counted, number, plain } from "../format.js";
import { place } from "../router.js";
import { Action, Failure, Field, keyOf, say, useAct } from "./basic.js";

/** @typedef {ReturnType<typeof useSelection>} Selection */

/** The selected rows of a page; other filters or another page begin with none. `all`: not only these rows, but all that match the filters. @param {any[]} items */
export function useSelection(items) {
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
    has: (/** @type {string} */ key) => all || keys.includes(key),
    toggle: (/** @type {string} */ key) => set(all ? present.filter((other) => other !== key) : keys.includes(key) ? keys.filter((other) => other !== key) : [...keys, key]),
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
  const whole = total === undefined || total === null ? "" : ` ${number(total)}`;
  return html`<div class="bulk" role="region" aria-label=${`Acts on the selected ${noun}s`}>
    <span><b>${selection.all ? `All${whole}` : number(selection.count)} selected.</b>
      ${!selection.all && selection.isWhole && total !== selection.count && html` <button type="button" class="bare" onClick=${selection.selectAll}>Select all${whole} that match</button>`}</span>
    <button type="button" class="last" aria-label="Clear the selection" onClick=${selection.clear}>×</button>${children}</div>`;
}

/** The filter as the API takes it, without empty fields. @param {Record<string, any>} filter @returns {Record<string, any>} */
const chosen = ({ label = [], ...filter }) => ({
  ...Object.fromEntries(Object.entries(filter).filter(([, value]) => value).map(([name, value]) => [name, value === "true" || value])),
  ...(label.length ? { labels: Object.fromEntries(label.map((/** @type {string} */ each) => each.split(/=(.*)/s))) } : {}),
});

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
 *   danger?: boolean, priority?: boolean, reason?: boolean, reload: () => void}} props
 *   `path`: such as `/v1/jobs:cancel`; the request for one row is then such as `/v1/jobs/<key>/cancel`.
 */
export function BulkAction({ path, verb, noun, words, label, filter = {}, which = chosen(filter), selection, danger, priority, reason, reload }) {
  const [count, setCount] = useState(/** @type {any} */ (null));
  const [total, setTotal] = useState(/** @type {typeof NONE | null} */ (null));
  const counting = useAct();
  const own = useRef(/** @type {any} */ ({}));
  const ofRows = selection && !selection.all;
  const [rooms, change] = path.split(":");
  const ask = (/** @type {any} */ body) => post(path, { filter: which, ...body }, change === "trigger" ? { "idempotency-key": own.current.key } : {});
  const open = () => {
    own.current = { key: newKey(), left: false, after: null, keys: selection?.keys || [] };
    setTotal(null);
    setCount(ofRows ? { matched: selection.keys.length, exact: true } : null);
    counting.run(async () => ofRows || setCount(await ask({ dry_run: true, ...(priority ? { priority: 5 } : {}) })));
  };
  async function* changeRows(/** @type {Record<string, any>} */ fields) {
    for (const key of own.current.keys) {
      try {
        await post(`${rooms}/${segment(key)}/${change}`, Object.keys(fields).length ? fields : undefined);
        yield { ...NONE, changed: 1 };
      } catch (failed) {
        if (!(failed instanceof Problem) || failed.status < 400 || failed.status >= 500) throw failed;
        yield { ...NONE, refused: 1, error: failed.message };
      }
    }
  }
  async function* changeMatches(/** @type {Record<string, any>} */ fields) {
    for (let isComplete = false; !isComplete; ) {
      const answer = await ask({ ...fields, expected: count.matched, ...(own.current.after ? { after: own.current.after } : {}) });
      isComplete = answer.complete;
      own.current.after = answer.next;
      yield answer;
    }
  }
  const act = async (/** @type {FormData} */ form) => {
    const { current } = own;
    const fields = { ...(priority ? { priority: Number(form.get("priority")) } : {}), ...(reason && form.get("reason") ? { because: form.get("reason") } : {}) };
    let now = (!ofRows && total) || NONE;
    for await (const { changed, asked_to_stop, refused, error } of ofRows ? changeRows(fields) : changeMatches(fields)) {
      now = { changed: now.changed + changed, asked_to_stop: now.asked_to_stop + asked_to_stop, refused: now.refused + refused, error: error || now.error };
      setTotal(now);
      if (current.left) break;
    }
    return now;
  };
  const done = (/** @type {typeof NONE} */ now) => {
    say(`${verb}: ${doneText(now, count)}.`);
    selection?.clear();
    reload();
  };
  const what = count ? `${verb} ${count.exact === false ? "at least " : ""}${counted(count.matched, noun)}` : `${verb} ${noun}s`;
  const met = total ? total.changed + total.asked_to_stop + total.refused : 0;
  const shown = ofRows ? [] : Object.entries(which).filter(([, value]) => value === true || Object.keys(value ?? {}).length > 0);
  const value = (/** @type {any} */ given) => (given === true ? "" : typeof given === "object" ? Object.entries(given).map((pair) => pair.join("=")).join(", ") : given);
  return html`<${Action} label=${label || `${verb}…`} title=${`${what}?`} confirm=${what} danger=${danger} idle=${!count?.matched} onOpen=${open} onLeave=${() => (own.current.left = true)} act=${act} done=${done}
    question=${html`<p>${!count && counting.busy && "Counting… "}${words}</p>
      ${shown.length > 0 && html`<p class="q">All with ${shown.map(([name, given]) => `${name.replaceAll("_", " ")} ${plain(value(given), 120)}`.trim()).join(", ")}</p>`}
      ${!ofRows && !shown.length && html`<p class="q">No filter is set: this means every ${noun}.</p>`}<${Failure} error=${counting.error} />
      ${count && total && html`<p><progress max=${Math.max(1, count.matched, met)} value=${met} aria-label="Progress"></progress> ${doneText(total, count)}</p>`}`}>
    ${priority && html`<${Field} label="Priority, 10 is the most urgent" type="number" name="priority" min="0" max="10" value="5" required />`}
    ${reason && html`<${Field} label="Reason (shown to others)" name="reason" maxlength="256" />`}
  <//>`;
}
