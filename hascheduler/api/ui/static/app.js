// The page: the session, its header, and the view that the address names.
import { html, render, signal, useEffect } from "./html.js";
import { sessionEnded } from "./api.js";
import { span, time } from "./format.js";
import { follow, paused, picture, staleSince } from "./live.js";
import { Failure, Link } from "./parts/basic.js";
import { place } from "./router.js";
import { askWho, known, logOut, session } from "./session.js";
import { Login } from "./views/login.js";

/** The views by name; each is loaded with the page, so a change of views waits only for data. */
const VIEWS = {
  now: { title: "Now", load: () => import("./views/now.js") },
  schedules: { title: "Schedules", load: () => import("./views/schedules.js") },
  timeline: { title: "Timeline", load: () => import("./views/timeline.js") },
  verdicts: { title: "Verdicts", load: () => import("./views/verdicts.js") },
  jobs: { title: "Jobs", load: () => import("./views/jobs.js") },
  lanes: { title: "Lanes and tenants", load: () => import("./views/lanes.js") },
  schedule: { title: "Schedule", load: () => import("./views/schedule.js"), within: "schedules" },
  "schedule-new": { title: "New schedule", load: () => import("./views/schedule_new.js"), within: "schedules" },
  job: { title: "Job", load: () => import("./views/job.js"), within: "jobs" },
};
const SHOWN = Object.entries(VIEWS).filter(([, view]) => !("within" in view));

/** @type {import("./vendor/signals.js").Signal<Record<string, any>>} */
const loaded = signal({});
const failed = signal(/** @type {any} */ (null));
const THEME = "hascheduler-theme";

function theme(/** @type {string} */ name) {
  document.documentElement.dataset.theme = name;
  try {
    localStorage.setItem(THEME, name);
  } catch {
    // a browser that stores nothing uses the system's theme at the next visit
  }
}
document.documentElement.dataset.theme = (() => {
  try {
    return localStorage.getItem(THEME) || "system";
  } catch {
    return "system";
  }
})();

function Header() {
  const { view } = place.value;
  const within = /** @type {any} */ (VIEWS)[view]?.within || view;
  const who = session.value;
  return html`<header>
    <a class="skip" href="#main">Skip to content</a>
    <${Link} to="now" class="brand">hascheduler<//>
    ${who?.environment && html`<span class="environment">${who.environment}</span>`}
    <nav aria-label="Views">${SHOWN.map(([name, { title }]) => html`<a href=${name === "now" ? "/ui" : `/ui/${name}`} aria-current=${name === within ? "page" : undefined}>${title}</a>`)}</nav>
    <div class="tools">
      <button type="button" aria-pressed=${paused.value} onClick=${() => (paused.value = !paused.value)} title="Stop updating the page">${paused.value ? "▶ Continue" : "❚❚ Pause"}</button>
      <label class="quiet"><span class="hidden">Theme</span>
        <select onChange=${(/** @type {any} */ event) => theme(event.target.value)}>
          ${["system", "light", "dark"].map((name) => html`<option value=${name} selected=${document.documentElement.dataset.theme === name}>${name}</option>`)}
        </select></label>
      ${who && html`<span class="who" title=${`${who.role}, tenant ${who.tenant}`}>${who.name} · ${who.role}${who.read_only ? " · read-only" : ""}</span>`}
      ${who?.session && html`<button type="button" onClick=${logOut}>Log out</button>`}
    </div>
  </header>`;
}

/** A banner while the page is paused or its numbers are old. */
function Freshness() {
  if (paused.value) return html`<p class="banner wait" role="status">Paused: the page does not update.</p>`;
  if (!staleSince.value) return null;
  return html`<p class="banner bad" role="status">Stale since ${time(new Date(staleSince.value).toISOString())}
    (${span(Date.now() - staleSince.value)}): no replica answers. The page keeps trying.</p>`;
}

function View() {
  const { view } = place.value;
  const known = /** @type {any} */ (VIEWS)[view];
  const Shown = loaded.value[view];
  useEffect(() => {
    document.title = `${known?.title || "?"} – hascheduler${session.value?.environment ? ` (${session.value.environment})` : ""}`;
    if (!known || Shown) return;
    known.load().then(
      (/** @type {any} */ module) => (loaded.value = { ...loaded.value, [view]: module.default }),
      (/** @type {any} */ error) => (failed.value = error),
    );
  }, [view, Shown]);
  if (!known) return html`<h1>Not found</h1><p class="empty">There is no view at this address. Go to <a href="/ui">Now</a>.</p>`;
  if (failed.value) return html`<${Failure} error=${{ message: "This part of the page could not be loaded. Reload the page: hascheduler may have been upgraded." }} />`;
  return Shown ? html`<${Shown} />` : html`<p class="empty" role="status">Loading…</p>`;
}

function App() {
  const isIn = session.value !== null && !sessionEnded.value;
  useEffect(() => {
    if (isIn) follow();
  }, [isIn]);
  if (!known.value) return html`<${Failure} error=${failed.value} />`;
  if (!isIn) return html`<${Login} ended=${sessionEnded.value} />`;
  return html`<${Header} /><${Freshness} /><main id="main" tabindex="-1"><${View} /></main>
    <footer>${session.value?.replica} · ${session.value?.version}${picture.value && html` · as of ${time(picture.value.at)}`} · <a href="/docs">API</a></footer>`;
}

/** Retry until a replica answers. */
async function start() {
  for (;;) {
    try {
      await askWho();
      failed.value = null;
      return;
    } catch (error) {
      failed.value = error;
    }
    await new Promise((done) => setTimeout(done, 1_000));
  }
}

const root = /** @type {HTMLElement} */ (document.getElementById("app"));
root.textContent = "";
render(html`<${App} />`, root);
start();
