// Sign in with a token, which becomes a session of this browser that expires and that an admin can revoke.
import { html, useState } from "../html.js";
import { Failure, State } from "../parts/basic.js";
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
  return html`<main id="main"><form class="form login" onSubmit=${submit}>
    <h1>hascheduler</h1>
    ${ended && html`<p role="status"><${State} state="late" wrap word="Your session has ended. Sign in to continue." /></p>`}
    <label class="field"><span class="b">Token</span><input type="password" name="token" required autocomplete="current-password" placeholder="hsk_…" maxlength="1024" autofocus /></label>
    <${Failure} error=${error} />
    <div><button type="submit" class="primary" disabled=${busy}>${busy ? "Signing in…" : "Sign in"}</button></div>
    <p class="q">An admin creates tokens: <code>hascheduler token create you --role viewer --tenant '*'</code></p>
  </form></main>`;
}
