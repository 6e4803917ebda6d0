// Buttons that change something: they ask first if it can't be undone, and show the API's refusal.
import { html, signal, useEffect, useRef, useState } from "../html.js";
import { closeMenus, Failure } from "./basic.js";

/** What an act has done or why it was refused, on top of the page until the next act or view.
 * @type {import("../vendor/signals.js").Signal<{text: any, error: any} | null>} */
const notice = signal(null);

/** Say what has been done. @param {any} text */
export const say = (text) => (notice.value = { text, error: null });

/** The shell shows it once. */
export function Notice() {
  const { text, error } = notice.value || {};
  return html`<div class="notice" role="status">${notice.value && html`<div class=${`note ${error ? "bad-note" : ""}`}><p>${error ? error.message : text}</p>
    <button type="button" aria-label="Close the message" onClick=${() => (notice.value = null)}>×</button></div>`}</div>`;
}

/** Forget the message, for another view. */
export const forgetNotice = () => (notice.value = null);

/**
 * A button, or an entry of a `Menu`, that asks before it acts. The label of one that asks ends with "…".
 * @param {{label: string, title?: string, question?: any, confirm?: string, danger?: boolean, primary?: boolean, disabled?: boolean, idle?: boolean, act: (form: FormData) => Promise<any>,
 *   done?: (answer: any) => void, said?: any, children?: any, onOpen?: () => void, onLeave?: () => void, wide?: boolean}} props
 *   `title`: of the dialog, if it is not the label; `question`: what will happen; without it the button acts at once. `confirm`: the button that
 *   acts, not while `idle`. `said`: what to say when it is done. `children`: fields to fill in.
 */
export function Action({ label, title, question, confirm, danger, primary, disabled, idle, act, done, said, children, onOpen, onLeave, wide }) {
  const [open, setOpen] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {any} */ (null));
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const name = title || label.replace(/…$/, "");
  useEffect(() => {
    if (open && dialog.current && !dialog.current.open) dialog.current.showModal();
  }, [open]);
  const run = async (/** @type {FormData} */ form) => {
    setBusy(true);
    setError(null);
    notice.value = null;
    try {
      const answer = await act(form);
      setOpen(false);
      closeMenus(null);
      if (said) say(said);
      done?.(answer);
    } catch (failed) {
      if (question) setError(failed);
      else notice.value = { text: null, error: failed };
    } finally {
      setBusy(false);
    }
  };
  const begin = () => {
    setError(null);
    if (!question) return run(new FormData());
    onOpen?.();
    setOpen(true);
  };
  const leave = () => {
    onLeave?.();
    setOpen(false);
    closeMenus(null);
    dialog.current?.closest(".menu")?.querySelector("summary")?.focus();
  };
  const submit = (/** @type {any} */ event) => {
    event.preventDefault();
    run(new FormData(event.target));
  };
  return html`<button type="button" class=${danger ? "danger" : primary ? "primary" : ""} disabled=${disabled || busy} aria-haspopup=${question ? "dialog" : undefined} onClick=${begin}>${label}</button>
    ${open && html`<dialog ref=${dialog} class=${wide ? "editor" : ""} aria-label=${name} onClose=${leave}>
      <form class="form" onSubmit=${submit}>
        <h2>${name}</h2>
        <div>${question}</div>
        ${children}
        <${Failure} error=${error} />
        <div class="acts">
          <button type="button" onClick=${() => dialog.current?.close()}>Close</button>
          <button type="submit" class=${danger ? "danger" : "primary"} disabled=${busy || idle}>${busy ? "Working…" : confirm || name}</button>
        </div>
      </form>
    </dialog>`}`;
}
