// The page: the session, its side bar, and the view that the address names.
import { html, render, signal, useEffect } from "./html.js";
import { askWho, logOut, session, sessionEnded } from "./api.js";
import { cameAt, clock, follow, frozen, health, picture, replicaName, staleSince, unreachable } from "./data.js";
import { number, plain, seconds } from "./format.js";
import { Login } from "./login.js";
import { Failure, Link, Menu, Notice, State, say } from "./parts/basic.js";
import { place } from "./router.js";
import Job from "./views/job.js";
import Jobs from "./views/jobs.js";
import Lanes from "./views/lanes.js";
import Now from "./views/now.js";
import Schedule from "./views/schedule.js";
import ScheduleNew from "./views/schedule_new.js";
import Schedules from "./views/schedules.js";
import Timeline from "./views/timeline.js";
import Verdicts from "./views/verdicts.js";

/** The views by name. `more`: in the second list; `within`: in no list, but part of another view.
 * @type {Record<string, {title: string, Shown: any, more?: boolean, within?: string}>} */
const VIEWS = {
  now: { title: "Now", Shown: Now },
  schedules: { title: "Schedules", Shown: Schedules },
  jobs: { title: "Jobs", Shown: Jobs },
  timeline: { title: "Timeline", Shown: Timeline },
  verdicts: { title: "Verdicts", Shown: Verdicts, more: true },
  lanes: { title: "Lanes and tenants", Shown: Lanes, more: true },
  schedule: { title: "Schedule", Shown: Schedule, within: "schedules" },
  "schedule-new": { title: "New schedule", Shown: ScheduleNew, within: "schedules" },
  job: { title: "Job", Shown: Job, within: "jobs" },
};

/** Why no replica says who uses the page. */
const failed = signal(/** @type {any} */ (null));

const THEME = "hascheduler-theme";
const THEMES = { "": "as the system", light: "light", dark: "dark" };
/** What a browser stores; one that stores nothing uses the system's theme at each visit. @param {() => string | null | void} act */
function stored(act) {
  try {
    return act() || "";
  } catch {
    return "";
  }
}
const theme = signal(stored(() => localStorage.getItem(THEME)));
document.documentElement.className = theme.value;

function nextTheme() {
  const names = Object.keys(THEMES);
  theme.value = document.documentElement.className = names[(names.indexOf(theme.value) + 1) % names.length];
  stored(() => localStorage.setItem(THEME, theme.value));
}

/** Trouble beside the name of its view. @param {{view: string}} props */
function Count({ view }) {
  const now = health.value;
  if (!now) return null;
  const { failed_jobs: jobs, failing_schedules: failing, late_schedules: late } = now.counts;
  const worst = now.problems.some(({ severity }) => severity === "page") ? "page" : "ticket";
  const [state, count, word] = /** @type {Record<string, [string, number | null, string]>} */ ({
    now: [worst, now.problems.length, "to look at"],
    schedules: failing || failing === null ? ["failed", failing, "fail"] : ["late", late, "late"],
    jobs: ["failed", jobs, "failed for good"],
  })[view] || ["", 0, ""];
  return count ? html`<b><${State} state=${state} word=${html`${number(count)}<span class="hide"> ${word}</span>`} /></b>` : null;
}

/** @param {{more: boolean}} props */
function Views({ more }) {
  const { view } = place.value;
  const current = VIEWS[view]?.within || view;
  return Object.entries(VIEWS).filter(([, each]) => !each.within && Boolean(each.more) === more).map(([name, { title }]) => html`<a href=${name === "now" ? "/ui" : `/ui/${name}`} aria-current=${name === current ? "page" : undefined}>${title} <${Count} view=${name} /></a>`);
}

/** Entries of the menu of the page itself. */
const pageEntries = () => [
  html`<button type="button" onClick=${() => (frozen.value = !frozen.value)}>${frozen.value ? "Go live again" : "Freeze this page"}</button>`,
  html`<button type="button" onClick=${nextTheme}>Theme: ${THEMES[/** @type {keyof typeof THEMES} */ (theme.value)]}</button>`,
  html`<a href="/docs">API</a>`,
  session.value?.session && html`<button type="button" onClick=${logOut}>Sign out</button>`,
];

function Side() {
  const who = session.value;
  const asOf = picture.value && `as of ${new Date(picture.value.at).toLocaleTimeString("en-GB", { timeZoneName: "short" })}, from ${plain(replicaName.value, 60)}`;
  const person = who && [who.environment, who.name, who.role, who.tenant !== "*" && `tenant ${who.tenant}`, who.read_only && "read-only"].filter(Boolean).join(" · ");
  const state = frozen.value ? ["paused", "Frozen"] : staleSince.value ? ["late", "Stale"] : picture.value ? ["alive", "Live"] : ["pending", "Connecting"];
  return html`<a class="skip" href="#main">Skip to the content</a>
    <header class="side">
      <${Link} to="now" class="brand">hascheduler<//>
      <nav aria-label="Views"><${Views} more=${false} /></nav>
      <nav class="more wide" aria-label="More views"><${Views} more=${true} /></nav>
      <${Menu} name="More" label="More" quiet only="more narrow"><${Views} more=${true} /><hr />${pageEntries()}<small>${person}<br />${asOf}</small><//>
      <div class="foot"><${State} state=${state[0]} word=${state[1]} /><small>${asOf}</small><small class="who">${person}</small>
        <${Menu} name="Page and account" label="Page and account" up quiet only="wide">${pageEntries()}<//></div>
    </header>`;
}

/** In the place of the verdict: what is shown is old. Its seconds run, and everything else stands still. */
function Freshness() {
  if (frozen.value) return html`<div class="verdict" role="status"><p><${State} state="paused" word="Frozen" /> The page does not update. <button type="button" class="bare" onClick=${() => (frozen.value = false)}>Go live again</button></p></div>`;
  if (!staleSince.value) return null;
  return html`<div class="verdict"><p class="big b" role="status"><${State} state="late" wrap word=${`${plain(replicaName.value, 60)} has not answered for ${seconds(clock.value - staleSince.value)}.`} /></p>
    <p>What you see is from ${new Date(cameAt.value).toLocaleTimeString("en-GB")}. ${unreachable.value ? "No replica can be reached at this address; the page keeps trying." : "It may only be slow; the page keeps asking."}</p></div>`;
}

function View() {
  const { view } = place.value;
  const known = VIEWS[view];
  const problems = health.value?.problems.length;
  useEffect(() => say(null), [view]);
  useEffect(() => {
    document.title = `${problems ? `(${problems}) ` : ""}${known?.title || "?"} · ${session.value?.environment || "hascheduler"}`;
  }, [view, problems]);
  return known ? html`<${known.Shown} />` : html`<h1>Not found</h1><p>There is no view at this address. Go to <a href="/ui">Now</a>.</p>`;
}

function App() {
  const isIn = Boolean(session.value) && !sessionEnded.value;
  useEffect(() => {
    if (isIn) follow();
  }, [isIn]);
  if (session.value === undefined) return html`<main><${Failure} error=${failed.value} /></main>`;
  if (!isIn) return html`<${Login} ended=${sessionEnded.value} />`;
  return html`<${Side} /><main id="main" tabindex="-1"><${Freshness} /><${Notice} /><${View} /></main>`;
}

/** Ask until a replica answers. */
async function start() {
  while (session.value === undefined) {
    await askWho().catch((error) => {
      failed.value = error;
      return new Promise((done) => setTimeout(done, 1_000));
    });
  }
}

const root = /** @type {HTMLElement} */ (document.getElementById("app"));
root.textContent = "";
render(html`<${App} />`, root);
start();
