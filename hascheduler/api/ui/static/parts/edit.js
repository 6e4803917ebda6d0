// Edit a stored document as JSON: show the difference before sending, and merge if somebody else changed it.
import { html, useEffect, useState } from "../html.js";
import { Problem, parse, request, stringify } from "../api.js";
import { plain } from "../format.js";
import { Dialog, Failure, useAct } from "./basic.js";
import { Difference, merged, same } from "./difference.js";

const ROWS_MIN = 8;
const ROWS_MAX = 24;

/** @typedef {{etag: string, base: any, text: string}} Draft */

/** Unsent edits by path: they survive a closed dialog, another view and an ended session, but not the tab.
 * @type {Map<string, Draft>} */
const drafts = new Map();

/** @param {any} value */
const written = (value) => stringify(value, 2);

/** Parse JSON; throw an error that says where it is wrong. @param {string} text */
export function readJson(text) {
  try {
    return parse(text);
  } catch (error) {
    throw new Error(`This is not JSON: ${/** @type {Error} */ (error).message}`);
  }
}

/** A text area for JSON. @param {{label: string, name?: string, value?: string, first?: string, onType?: (text: string) => void}} props
 *   `value`: the text, if the view owns it; `first`: the initial text, if the form reads the field. */
export function JsonField({ label, name, value, first, onType }) {
  const lines = (value ?? first ?? "").split("\n").length + 1;
  return html`<label class="field"><span class="b">${label}</span>
    <textarea class="m" name=${name} rows=${Math.max(ROWS_MIN, Math.min(ROWS_MAX, lines))} spellcheck=${false} autocomplete="off" autocapitalize="off" wrap="soft"
      ...${value === undefined ? { defaultValue: first } : { value }} onInput=${(/** @type {any} */ event) => onType?.(event.target.value)}></textarea></label>`;
}

/**
 * A button, or an entry of a `Menu`, that opens the stored document at `path` as JSON and replaces it with the edited one.
 * @param {{label: string, what: string, path: string, form: (stored: any) => any, done: () => void, hint?: any, Preview?: any}} props
 *   `what`: its noun and name. `form`: the part of an answer that may be sent again. `Preview` gets `path`, `base` and `mine`, and shows
 *   what the edit would do.
 */
export function Edit(props) {
  const { label, what, path } = props;
  const [open, setOpen] = useState(false);
  const close = () => setOpen(false);
  return html`<button type="button" aria-haspopup="dialog" onClick=${() => setOpen(true)}>${label}${drafts.has(path) ? " (unsaved)" : ""}</button>
    ${open && html`<${Dialog} name=${`Edit ${what}`} wide leave=${close}><div class="form"><h2>Edit ${plain(what, 200)}</h2><${Editor} ...${props} close=${close} /></div><//>`}`;
}

/** @param {any} props */
function Editor({ what, path, form, done, close, hint, Preview }) {
  const [draft, setDraft] = useState(/** @type {Draft | null} */ (drafts.get(path) || null));
  const [tried, setTried] = useState(/** @type {any} */ (null));
  const [theirs, setTheirs] = useState(/** @type {Draft | null} */ (null));
  const { busy, error, run, submit } = useAct();
  /** The stored document, as a draft without changes. @returns {Promise<Draft>} */
  const ask = async () => {
    const { data, etag } = await request("GET", path);
    return { etag: etag || "", base: form(data), text: written(form(data)) };
  };
  /** @param {Draft} next */
  const edit = (next) => {
    if (next.text === written(next.base)) drafts.delete(path);
    else drafts.set(path, next);
    setTheirs(null);
    setTried(null);
    setDraft(next);
  };
  const discard = () => {
    drafts.delete(path);
    close();
  };
  const begin = () => run(async () => edit(await ask()));
  useEffect(() => {
    if (!draft) begin();
  }, []);
  /** @param {any} mine @param {string} etag */
  const send = (mine, etag) => run(async () => {
    try {
      await request("PUT", path, { body: mine, headers: { "if-match": etag } });
    } catch (failed) {
      if (!(failed instanceof Problem) || failed.status !== 412) throw failed;
      return setTheirs(await ask());
    }
    done();
    discard();
  });
  if (!draft) return html`<${Failure} error=${error} />${!error && html`<p class="off" role="status">Loading…</p>`}<div class="acts"><button type="button" onClick=${close}>Close</button></div>`;

  if (theirs) {
    const mine = readJson(draft.text);
    const onTop = merged(draft.base, mine, theirs.base);
    const revision = (/** @type {Draft} */ { etag }) => etag.replaceAll('"', "");
    return html`<div class="note" role="alert"><p><strong>The ${plain(what, 200)} was changed meanwhile.</strong> You started from revision ${revision(draft)}, and revision ${revision(theirs)} is stored now.</p></div>
      <h3>Their changes</h3>
      <${Difference} before=${written(draft.base)} after=${theirs.text} label="From what you saw to what is stored now" none="No changes to fields that you can edit." />
      <h3>Your changes</h3>
      <${Difference} before=${written(draft.base)} after=${written(mine)} label="From what you saw to your version" />
      <h3>Both merged</h3>
      <${Difference} before=${theirs.text} after=${written(onTop)} label="From what is stored now to both" none="No differences: your changes are already stored." />
      <${Failure} error=${error} />
      <div class="acts">
        <button type="button" onClick=${close}>Close and keep my draft</button>
        <button type="button" disabled=${busy} onClick=${begin}>Discard mine</button>
        <button type="button" disabled=${busy} onClick=${() => edit({ ...theirs, text: written(onTop) })}>Edit the merged version</button>
        <button type="button" class="primary" disabled=${busy} onClick=${() => send(onTop, theirs.etag)}>Save the merged version</button>
      </div>`;
  }

  if (tried !== null) {
    const isSame = same(draft.base, tried);
    return html`<${Difference} before=${written(draft.base)} after=${written(tried)} label="Difference from the stored version" none="No differences from the stored version." />
      ${Preview && !isSame && html`<${Preview} path=${path} base=${draft.base} mine=${tried} />`}
      <${Failure} error=${error} />
      <div class="acts">
        <button type="button" onClick=${() => run(async () => setTried(null))}>Back to editing</button>
        <button type="button" class="primary" disabled=${busy || isSame} onClick=${() => send(tried, draft.etag)}>${busy ? "Saving…" : "Save"}</button>
      </div>`;
  }

  return html`<form class="form" onSubmit=${submit(async () => setTried(readJson(draft.text)))}>
    ${hint && html`<p class="q">${hint}</p>`}
    <${JsonField} label="As JSON" value=${draft.text} onType=${(/** @type {string} */ text) => edit({ ...draft, text })} />
    <${Failure} error=${error} />
    <div class="acts">
      <button type="button" onClick=${discard}>Discard my changes</button>
      <button type="button" onClick=${close}>Close</button>
      <button type="submit" class="primary" disabled=${busy}>Show the difference</button>
    </div>
  </form>`;
}
