// Buttons that change something: they ask first if it can't be undone, and show the API's refusal.
import { html, useEffect, useRef, useState } from "../html.js";
import { Failure } from "./basic.js";

/**
 * A button that asks before it acts.
 * @param {{label: string, question?: any, confirm?: string, danger?: boolean, disabled?: boolean, act: (form: FormData) => Promise<any>, done?: (answer: any) => void, children?: any, onOpen?: () => void, onLeave?: () => void}} props
 *   `question`: what will happen; without it the button acts at once. `children`: fields to fill in.
 */
export function Action({ label, question, confirm, danger, disabled, act, done, children, onOpen, onLeave }) {
  const [open, setOpen] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {any} */ (null));
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    if (open && dialog.current && !dialog.current.open) dialog.current.showModal();
  }, [open]);
  const run = async (/** @type {FormData} */ form) => {
    setBusy(true);
    setError(null);
    try {
      const answer = await act(form);
      setOpen(false);
      done?.(answer);
    } catch (failed) {
      setError(failed);
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
    setError(null);
  };
  const submit = (/** @type {any} */ event) => {
    event.preventDefault();
    run(new FormData(event.target));
  };
  return html`<button type="button" class=${danger ? "danger" : ""} disabled=${disabled || busy} onClick=${begin}>${label}</button>
    ${!open && error && html`<${Failure} error=${error} />`}
    ${open && html`<dialog ref=${dialog} aria-label=${label} onClose=${leave}>
      <form onSubmit=${submit}>
        <h2>${label}</h2>
        <div class="question">${question}</div>
        ${children}
        <${Failure} error=${error} />
        <div class="buttons">
          <button type="button" onClick=${() => dialog.current?.close()}>Close</button>
          <button type="submit" class=${danger ? "danger" : "primary"} disabled=${busy}>${busy ? "Working…" : confirm || label}</button>
        </div>
      </form>
    </dialog>`}`;
}
