// Payloads and results: hidden until requested, and never shown if HASCHEDULER_UI_PAYLOADS forbids it.
import { html, useState } from "../html.js";
import { stringify } from "../api.js";
import { plain } from "../format.js";
import { session } from "../session.js";

/** True if the dashboard must not show payloads and results. */
export const payloadsAreSecret = () => session.value?.payloads === "never";

/** @param {{title: string, value: any}} props */
export function Hidden({ title, value }) {
  const [shown, show] = useState(false);
  if (payloadsAreSecret()) return html`<section class="sec"><h2>${title}</h2><p class="q">Payloads and results are not shown here (HASCHEDULER_UI_PAYLOADS).</p></section>`;
  const text = shown ? stringify(value, 2) : "";
  return html`<section class="sec"><div class="top"><h2>${title}</h2><button type="button" aria-expanded=${shown} onClick=${() => show(!shown)}>${shown ? "Hide" : "Show"}</button></div>
    ${shown && html`<pre>${plain(text, 100_000)}</pre><${Copy} text=${text} />`}</section>`;
}

/** @param {{text: string}} props */
function Copy({ text }) {
  const [status, setStatus] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setStatus("copied");
    } catch {
      setStatus("this browser copies only over HTTPS or from localhost; select the text instead");
    }
  };
  return html`<p class="acts"><button type="button" onClick=${copy}>Copy</button><span role="status" class="q">${status}</span></p>`;
}
