// Log in with a token, which becomes a session of this browser that expires and that an admin can revoke.
import { html, useState } from "../html.js";
import { Failure } from "../parts/basic.js";
import { logIn } from "../session.js";

/** @param {{ended: boolean}} props */
export function Login({ ended }) {
  const [error, setError] = useState(/** @type {any} */ (null));
  const [busy, setBusy] = useState(false);
  const submit = async (/** @type {any} */ event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await logIn(String(new FormData(event.target).get("token")).trim());
    } catch (failed) {
      setError(failed);
    } finally {
      setBusy(false);
    }
  };
  return html`<main id="main" class="login"><form onSubmit=${submit}>
    <h1>hascheduler</h1>
    ${ended && html`<p class="banner wait" role="status">Your session has ended. Log in to continue.</p>`}
    <label class="field"><span>Token</span><input type="password" name="token" required autocomplete="current-password" placeholder="hsk_…" maxlength="1024" autofocus /></label>
    <${Failure} error=${error} />
    <button type="submit" class="primary" disabled=${busy}>${busy ? "Logging in…" : "Log in"}</button>
    <p class="dim">An admin creates tokens: <code>hascheduler token create you --role viewer --tenant '*'</code></p>
  </form></main>`;
}
