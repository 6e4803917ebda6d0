// What handlers are given and give back: hidden until asked for, and never shown where the replicas say so.
import { html, useState } from "../html.js";
import { stringify } from "../api.js";
import { plain } from "../format.js";
import { session } from "../session.js";

/** Whether the replicas show no payloads and results in the dashboard. */
export const payloadsAreSecret = () => session.value?.payloads === "never";

/** @param {{title: string, value: any}} props */
export function Hidden({ title, value }) {
  const [shown, show] = useState(false);
  if (payloadsAreSecret()) return html`<section><h2>${title}</h2><p class="dim">The replicas show no payloads and results here (HASCHEDULER_UI_PAYLOADS).</p></section>`;
  const text = shown ? stringify(value, 2) : "";
  return html`<section><h2>${title} <button type="button" aria-expanded=${shown} onClick=${() => show(!shown)}>${shown ? "Hide" : "Show"}</button></h2>
    ${shown && html`<pre>${plain(text, 100_000)}</pre><${Copy} text=${text} />`}</section>`;
}

/** @param {{text: string}} props */
function Copy({ text }) {
  const [said, say] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      say("copied");
    } catch {
      say("this browser copies only over https or from localhost: select the text instead");
    }
  };
  return html`<p><button type="button" onClick=${copy}>Copy</button> <span role="status" class="dim">${said}</span></p>`;
}
