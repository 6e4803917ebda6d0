// Filters of a view: each field is a parameter of the address.
import { html, useEffect, useState } from "../html.js";
import { place, setQuery } from "../router.js";

const TYPED_MS = 350;

/** @param {{label: string, children?: any}} props */
const Field = ({ label, children }) => html`<label class="field"><span>${label}</span>${children}</label>`;

/** Text that filters as one types. @param {{name: string, label: string, placeholder?: string, list?: string[]}} props */
export function TextFilter({ name, label, placeholder, list }) {
  const given = place.value.query.get(name) || "";
  const [text, type] = useState(given);
  useEffect(() => type(given), [given]);
  useEffect(() => {
    if (text === given) return undefined;
    const timer = setTimeout(() => setQuery({ [name]: text.trim() }), TYPED_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return html`<${Field} label=${label}>
    <input type="search" name=${name} value=${text} placeholder=${placeholder} maxlength="256" autocomplete="off" spellcheck=${false}
      list=${list && `${name}-list`} onInput=${(/** @type {any} */ event) => type(event.target.value)} />
    ${list && html`<datalist id=${`${name}-list`}>${list.slice(0, 500).map((each) => html`<option value=${each} />`)}</datalist>`}
  <//>`;
}

/** One of a few values, or any. @param {{name: string, label: string, values: string[], any?: string}} props */
export function ChoiceFilter({ name, label, values, any = "any" }) {
  const given = place.value.query.get(name) || "";
  return html`<${Field} label=${label}>
    <select name=${name} value=${given} onChange=${(/** @type {any} */ event) => setQuery({ [name]: event.target.value })}>
      <option value="">${any}</option>
      ${values.map((each) => html`<option value=${each} selected=${each === given}>${each}</option>`)}
    </select>
  <//>`;
}

/** An instant, given in the viewer's zone. @param {{name: string, label: string}} props */
export function InstantFilter({ name, label }) {
  const given = place.value.query.get(name);
  const at = given ? new Date(given) : null;
  const local = at && !Number.isNaN(+at) ? new Date(+at - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16) : "";
  return html`<${Field} label=${label}><input type="datetime-local" name=${name} value=${local}
    onChange=${(/** @type {any} */ event) => setQuery({ [name]: event.target.value ? new Date(event.target.value).toISOString() : "" })} /><//>`;
}

/** Labels, each once. */
export function LabelFilter() {
  const given = place.value.query.getAll("label");
  const [text, type] = useState("");
  const add = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (text.includes("=")) setQuery({ label: [...new Set([...given, text.trim()])] });
    type("");
  };
  return html`<form class="field" onSubmit=${add}>
    <label><span>Label</span><input value=${text} placeholder="team=a" maxlength="256" autocomplete="off"
      onInput=${(/** @type {any} */ event) => type(event.target.value)} /></label>
    ${given.map((/** @type {string} */ each) => html`<button type="button" class="label" title="Remove this label" onClick=${() => setQuery({ label: given.filter((/** @type {string} */ other) => other !== each) })}><bdi>${each}</bdi> <span aria-hidden="true">×</span></button>`)}
  </form>`;
}

/** The values of the named filters. @param {string[]} names @param {string[]} [lists] */
export function filters(names, lists = []) {
  const query = place.value.query;
  /** @type {Record<string, any>} */
  const found = {};
  for (const name of names) found[name] = query.get(name) || "";
  for (const name of lists) found[name] = query.getAll(name);
  return found;
}
