// The search line of a view: each filter is a parameter of the address, shown as a chip.
import { html, useEffect, useState } from "../html.js";
import { ofAll } from "../api.js";
import { instantOf, plain, shortTime } from "../format.js";
import { place, setQuery } from "../router.js";

/**
 * `name`: of the parameter and of what one types before the colon; `label`: in the chip; `kind`: `many` may be given several times, an
 * `instant` is typed as "2h", "7d" or a date; `values`: the only ones that make sense; `hidden`: no chip, because a tab shows it.
 * @typedef {{name: string, label?: string, kind?: "text" | "many" | "instant", values?: string[], hidden?: boolean}} Field
 */

/**
 * One line to search and filter by. Text with a known name and a colon becomes a chip ("definition:resize"), other text is what `bare` makes
 * of it. A token of one tenant does not filter by tenants.
 * @param {{label: string, placeholder: string, fields: Field[], bare?: (text: string) => Record<string, any>}} props
 */
export function Find({ label, placeholder, fields: all, bare = (text) => ({ text }) }) {
  const query = place.value.query;
  const fields = ofAll.value ? all : all.filter(({ name }) => name !== "tenant");
  const shown = fields.filter(({ hidden }) => !hidden);
  const [text, type] = useState("");
  const [wrong, setWrong] = useState("");
  const address = query.toString();
  useEffect(() => type(""), [address]);
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const typed = text.trim();
    const colon = typed.indexOf(":");
    const field = fields.find(({ name }) => name === typed.slice(0, colon).replaceAll(" ", "_"));
    const value = field ? typed.slice(colon + 1).trim() : typed;
    if (!value) return;
    const instant = field?.kind === "instant" ? instantOf(value) : null;
    const problem = field?.kind === "instant" && !instant ? `"${value}" is no time; expected such as 2h, 7d or 2026-11-22`
      : field?.values && !field.values.includes(value) ? `"${value}" is no ${field.label || field.name}; expected ${field.values.join(", ")}`
      : field?.name === "label" && !value.includes("=") ? `"${value}" is no label; expected such as team=a` : "";
    setWrong(problem);
    if (problem) return;
    type("");
    if (!field) setQuery(bare(value));
    else setQuery({ [field.name]: field.kind === "many" ? [...new Set([...query.getAll(field.name), value])] : instant || value });
  };
  const hints = shown.flatMap(({ name, values }) => (text.includes(":") ? (values || []).map((value) => `${name}:${value}`) : [`${name}:${text.trim()}`]));
  return html`<form class="find" role="search" onSubmit=${submit}>
    ${shown.flatMap(({ name, kind, label = name }) => query.getAll(name).map((value) => html`<span class="chip"><bdi>${label}: ${plain(kind === "instant" ? shortTime(value) : value, 60)}</bdi>
      <button type="button" aria-label=${`Remove the filter ${label}`} onClick=${() => setQuery({ [name]: query.getAll(name).filter((other) => other !== value) })}>×</button></span>`))}
    <input type="search" name="find" aria-label=${label} placeholder=${placeholder} value=${text} list="find-hints" maxlength="400" autocomplete="off" spellcheck=${false}
      onInput=${(/** @type {any} */ event) => type(event.target.value)} />
    <datalist id="find-hints">${hints.map((hint) => html`<option value=${hint} />`)}</datalist>
    ${wrong && html`<span class="bad" role="alert">${plain(wrong, 200)}</span>`}
  </form>`;
}

/** The values of the filters in the address. @param {Field[]} fields @returns {Record<string, any>} */
export const filters = (fields) => Object.fromEntries(fields.map(({ name, kind }) => [name, kind === "many" ? place.value.query.getAll(name) : place.value.query.get(name) || ""]));
