// Sign in with a token, which becomes a session of this browser that expires and that an admin can revoke.
import { html } from "./html.js";
import { logIn } from "./api.js";
import { Failure, Field, State, useAct } from "./parts/basic.js";

/** @param {{ended: boolean}} props */
export function Login({ ended }) {
  const { busy, error, submit } = useAct();
  return html`<main id="main"><form class="form login" onSubmit=${submit((/** @type {FormData} */ form) => logIn(String(form.get("token")).trim()))}>
    <h1>hascheduler</h1>
    ${ended && html`<p role="status"><${State} state="late" wrap word="Your session has ended. Sign in to continue." /></p>`}
    <${Field} label="Token" type="password" name="token" required autocomplete="current-password" placeholder="hsk_…" maxlength="1024" autofocus />
    <${Failure} error=${error} />
    <div><button type="submit" class="primary" disabled=${busy}>${busy ? "Signing in…" : "Sign in"}</button></div>
    <p class="q">An admin creates tokens: <code>hascheduler token create you --role viewer --tenant '*'</code></p>
  </form></main>`;
}
