// Job: what happens to it in one sentence, its path, why it waits, its tries on one axis, the graph it is in, payload and result.
import { html, useEffect, useState } from "../html.js";
import { get, segment } from "../api.js";
import { nameOf, now, useData } from "../data.js";
import { counted, number, plain, sentence, shortTime, span, time } from "../format.js";
import { Action, Empty, Failure, Hidden, JobLink, Labels, Link, Menu, ScheduleLink, State, When, copy, factList, loaded, sign, table } from "../parts/basic.js";
import { place, to } from "../router.js";
import { ENDED, JobActions, jobName } from "./jobs.js";

/** @typedef {Partial<Wire.AttemptResponse> & {number: number, state: string}} Try */
const CHECKED_MS = 5_000;

export default function JobView() {
  const id = place.value.query.get("id") || "";
  const asked = useData(id ? `/v1/jobs/${segment(id)}` : null, undefined, { everyMs: 1_500 });
  const job = asked.data;
  const why = useData(job?.state === "pending" ? `/v1/jobs/${segment(id)}/why` : null, undefined, { everyMs: 2_000 });
  if (!id) return html`<h1>Job</h1><${Empty}>The address names no job. See the list of <a href="/ui/jobs">jobs</a>.<//>`;
  return html`<div class="top"><div><p class="q"><a href="/ui/jobs">Jobs</a>${job && html` / <${Link} to="jobs" query=${{ definition: job.definition }}>${plain(job.definition, 80)}<//>`}</p>
      <h1><bdi>${plain(job ? jobName(job) : id, 160)}</bdi> ${job && html`<${State} state=${job.state} />`}</h1></div>
      ${job && html`<div class="acts"><${JobActions} job=${job} reload=${asked.reload} /><${JobMenu} job=${job} /></div>`}</div>
    ${loaded(asked, (job) => html`<${Shown} job=${job} why=${why.data} /><${Failure} error=${why.error} />`)}`;
}

/** @param {{job: Wire.JobResponse}} props */
const JobMenu = ({ job }) => html`<${Menu} name="More actions">
  <${Action} label="Copy the id" act=${() => copy(job.id)} said="The id is copied." />
  <${Action} label="Copy as a command" act=${() => copy(`hascheduler job get '${job.id}'`)} said="The command is copied." />
  ${job.batch && html`<${Link} to="jobs" query=${{ batch: job.batch }}>Its batch<//>`}<//>`;

/** @param {{job: Wire.JobResponse, why: Wire.WhyResponse | null}} props */
function Shown({ job, why }) {
  const tries = triesOf(job);
  return html`<section class="verdict"><p aria-live="polite"><${Sentence} job=${job} why=${why} /></p>
      ${job.progress && html`<p>${job.progress.percent !== null && html`<progress max="100" value=${job.progress.percent} aria-label="Progress"></progress> ${Math.round(job.progress.percent)} % `}<bdi>${plain(job.progress.text)}</bdi> <span class="q"><${When} at=${job.progress.at} /></span></p>`}</section>
    <section class="sec" aria-label="States"><${Path} job=${job} tries=${tries} /></section>
    <div class="two"><div class="stack">
      ${why && html`<${Conditions} job=${job} why=${why} />`}
      <section class="sec"><h2>Tries <small>${shortTime(job.submitted_at)} to ${job.finished_at ? shortTime(job.finished_at) : "now"}, one axis</small></h2><${Tries} job=${job} tries=${tries} /></section>
      <${Graph} job=${job} />
    </div><div class="stack">
      <${Hidden} title="Payload" value=${job.payload} />
      ${job.state === "succeeded" && html`<${Hidden} title="Result" value=${job.result} />`}
      <section class="sec"><h2>What it is</h2><${Facts} job=${job} /></section>
    </div></div>`;
}

/** Those that are over, and the one that is dispatched or runs. @param {Wire.JobResponse} job @returns {Try[]} */
function triesOf(job) {
  const over = job.attempts.map((each) => ({ ...each, state: each.outcome }));
  if (job.state !== "dispatched" && job.state !== "running") return over;
  return [...over, { number: job.attempt, processor: job.processor, dispatched_at: job.dispatched_at, started_at: job.started_at, finished_at: null, state: job.state }];
}

/** The first line of an error. @param {string | null | undefined} error @param {number} most */
const firstLine = (error, most) => plain((error || "").split("\n")[0], most);

/** A sentence of the API, with the ids of jobs as links. @param {{text: string}} props */
const Linked = ({ text }) => text.split(/'((?:job|fire|backfill|trigger):[^']+)'/).map((part, place) => (place % 2 ? html`<${JobLink} id=${part} />` : plain(part, 400)));

/** What happens to the job, and why. @param {{job: Wire.JobResponse, why: Wire.WhyResponse | null}} props */
function Sentence({ job, why }) {
  const waited = span(now.value - Date.parse(job.submitted_at));
  const whole = job.finished_at ? span(Date.parse(job.finished_at) - Date.parse(job.submitted_at)) : "";
  const failures = job.failures + job.losses;
  switch (job.state) {
    case "pending": {
      const [first] = why?.blocks || [];
      const reason = first ? `${sentence(first.because)}.` : why && !why.seen ? "This replica has not seen it yet." : "Nothing holds it back.";
      const ahead = why?.standing ? (why.standing.ahead ? ` ${why.standing.exact ? "" : "At least "}${counted(why.standing.ahead, "job goes", "jobs go")} before it.` : " It goes next.") : "";
      return html`${why && html`<b><${Linked} text=${reason} /></b>${ahead} `}It has waited for ${waited}${failures ? `, and ${counted(failures, "try", "tries")} failed or got lost` : ""}.`;
    }
    case "dispatched":
      return html`<b>${plain(nameOf(job.processor), 60)} has it, and has not started it yet.</b> It was submitted ${waited} ago.`;
    case "running":
      return html`<b>It runs on ${plain(nameOf(job.processor), 60)}${job.started_at ? ` for ${span(now.value - Date.parse(job.started_at))}` : ""}.</b> ${job.overdue_since ? "It has timed out, and its thread has not ended yet." : job.cancel_requested_at ? "It is asked to stop." : `This is try ${number(job.attempt)}.`}`;
    case "succeeded":
      return html`<b>It succeeded</b> ${whole} after its submission, at try ${number(job.attempt)}.`;
    case "failed":
      return html`<b>It failed for good</b> after ${counted(job.tries, "try", "tries")}, ${whole} after its submission: <bdi class="bad">${firstLine(job.error, 300) || "no error was reported"}</bdi>`;
    default:
      return html`<b>It was cancelled</b> ${whole} after its submission${job.error ? html`: <bdi>${firstLine(job.error, 300)}</bdi>` : ""}.`;
  }
}

const STEPS_SHOWN = 3;

/** From the submission over each try to the end. @param {{job: Wire.JobResponse, tries: Try[]}} props */
function Path({ job, tries }) {
  /** @param {Try} each */
  const step = (each) => {
    const ran = each.started_at && each.finished_at ? ` after ${span(Date.parse(each.finished_at) - Date.parse(each.started_at))}` : "";
    const isOn = each.state === "running" || each.state === "dispatched";
    const note = isOn ? `since ${shortTime(each.started_at || each.dispatched_at || "")}` : `${each.error ? firstLine(each.error, 80) : ""}${ran}`;
    return { name: `Try ${each.number} ${each.state === "running" ? "runs" : each.state === "lost" ? "was lost" : sign(each.state)[2]}`, colour: sign(each.state)[1], note: `${note}${each.processor ? `, on ${plain(nameOf(each.processor), 40)}` : ""}`, done: !isOn };
  };
  const early = tries.slice(0, -STEPS_SHOWN);
  const ended = ENDED.has(job.state);
  const steps = [
    { name: "Submitted", colour: "good", note: shortTime(job.submitted_at), done: true },
    ...(early.length ? [{ name: counted(early.length, "earlier try", "earlier tries"), colour: "off", note: "see below", done: true }] : []),
    ...tries.slice(-STEPS_SHOWN).map(step),
    ...(job.state === "pending" ? [{ name: `Try ${job.attempt + 1} waits`, colour: "warn", note: job.retry_at ? `not before ${shortTime(job.retry_at)}` : job.not_before ? `not before ${shortTime(job.not_before)}` : "", done: false }] : []),
    ended
      ? { name: job.state === "failed" ? "Failed for good" : sentence(sign(job.state)[2]), colour: sign(job.state)[1], note: job.finished_at ? shortTime(job.finished_at) : "", done: true }
      : { name: "Ends", colour: "off", note: job.expires_at ? `at the latest ${shortTime(job.expires_at)}` : "", done: false },
  ];
  return html`<ol class="path">${steps.map(({ name, colour, note, done }) => html`<li class=${`${done ? "done" : "todo"} ${colour}`}><b>${name}</b><small><bdi>${note}</bdi></small></li>`)}</ol>`;
}

/** What each rule is called as a condition. @type {Record<string, string>} */
const CONDITIONS = {
  not_leading: "A replica leads", paused: "Scheduling goes on", transport: "The broker accepts messages", in_doubt: "Its document is read", cancelling: "It is not being cancelled",
  dependency: "Jobs it depends on", not_before: "Its time has come", backoff: "Pause after a failed try", max_concurrency: "Limit of all jobs", tier: "Limit of its tier", definition: "Limit of its definition",
  rate_limit: "Rate of its definition", tenant: "Limit of its tenant", conflict: "Its target is free", key: "Limit of its key", serial: "Earlier job of its schedule", unschedulable: "A processor that can run it", no_slot: "A free slot",
};

/** All that must hold before the job runs: what does not, then what does. @param {{job: Wire.JobResponse, why: Wire.WhyResponse}} props */
function Conditions({ job, why }) {
  const { blocks, standing } = why;
  if (!why.seen) return null;
  const rules = new Set(blocks.map(({ rule }) => /** @type {string} */ (rule)));
  /** A rule that is not among the blocks has been looked at, and holds. @type {[boolean, string, string][]} */
  const known = [
    [true, "not_leading", "a leader decides"],
    [job.depends_on.length > 0, "dependency", `${counted(job.depends_on.length, "job has ended", "jobs have ended")}`],
    [Boolean(job.not_before), "not_before", job.not_before ? `since ${shortTime(job.not_before)}` : ""],
    [job.failures > 0, "backoff", job.retry_at ? `over at ${shortTime(job.retry_at)}` : "over"],
    [true, "unschedulable", "one is alive"],
    [!rules.has("unschedulable"), "no_slot", "one is free"],
  ];
  /** @type {{title: string, met: boolean, now: any, needs?: any}[]} */
  const rows = [
    ...blocks.map((block) => ({ title: CONDITIONS[block.rule] || block.rule, met: false,
      now: html`<${Linked} text=${block.because} />`,
      needs: html`${plain(block.unblocked_by, 160)}${block.until ? html`, <${When} at=${block.until} />` : ""}` })),
    ...(standing ? [{ title: "Its turn", met: !standing.ahead, now: standing.ahead ? html`${standing.exact ? "" : "at least "}${counted(standing.ahead, "job is", "jobs are")} before it: <${JobLink} id=${standing.first} />` : "it goes next", needs: standing.deciding && `compared by ${standing.deciding.replaceAll("_", " ")}` }] : []),
    ...known.filter(([applies, rule]) => applies && !rules.has(rule)).map(([, rule, now]) => ({ title: CONDITIONS[rule], met: true, now })),
  ];
  return html`<section class="sec"><h2>Why it waits</h2>${table({ label: "Why it waits", items: rows, columns: [
      { head: "Condition", row: true, show: (each) => (each.met ? each.title : html`<b>${each.title}</b>`) },
      { head: "Met", cell: "end", show: (each) => html`<${State} state=${each.met ? "good" : "pending"} word=${each.met ? "met" : html`<b>not yet</b>`} />` },
      { head: "Now", cell: "full", show: (each) => each.now },
      { head: "Needs", cell: "q full", show: (each) => each.needs },
    ] })}
    ${standing && standing.criteria.length > 0 && html`<details><summary class="q">What orders the queue</summary>${table({ label: "What orders the queue", items: standing.criteria, columns: [
      { head: "Compared", row: true, show: (each) => `${each.criterion.replaceAll("_", " ")}${each.criterion === standing.deciding ? " (decides)" : ""}` },
      { head: "This job", cell: "r end", show: (each) => plain(each.value, 80) },
      { head: "The next one", cell: "r full", show: (each) => plain(each.first, 80) },
    ] })}</details>`}</section>`;
}

/** Each try on one axis: thin while it waits, thick while it runs. @param {{job: Wire.JobResponse, tries: Try[]}} props */
function Tries({ job, tries }) {
  const begin = Date.parse(job.submitted_at);
  const end = job.finished_at ? Date.parse(job.finished_at) : Math.max(now.value, begin + 1);
  const ms = (/** @type {string | null | undefined} */ at, /** @type {number} */ other) => (at ? Date.parse(at) : other);
  const x = (/** @type {number} */ at) => `${(100 * Math.min(1, Math.max(0, (at - begin) / Math.max(1, end - begin)))).toFixed(2)}%`;
  const wide = (/** @type {number} */ from, /** @type {number} */ to) => `${Math.max(0.4, (100 * (to - from)) / Math.max(1, end - begin)).toFixed(2)}%`;
  let free = begin;
  /** @type {Try[]} */
  const shown = [...tries, ...(job.state === "pending" ? [{ number: job.attempt + 1, state: "pending" }] : [])];
  const rows = shown.map((each) => {
    const from = free;
    const started = ms(each.started_at, ms(each.finished_at, end));
    const ended = (free = ms(each.finished_at, end));
    return { ...each, from, started, ended, ran: each.started_at ? ended - started : null };
  });
  const colour = (/** @type {string} */ state) => ({ succeeded: "k-ok", running: "g-r", lost: "g-l" })[state] || "g-b";
  return html`${table({ label: "Tries", items: rows, none: "No try yet.", columns: [
      { head: "Try", row: true, show: (each) => html`<span class="nar b">Try </span>${number(each.number)}` },
      { head: "Outcome", cell: "end", show: (each) => html`<${State} state=${each.state} />${each.processor && html`<small>${plain(nameOf(each.processor), 40)}</small>`}` },
      { head: "When", cell: "full gx", show: (each) => html`<svg class="gantt" role="img" aria-label=${`waited ${span(each.started - each.from)}${each.ran === null ? "" : `, ran ${span(each.ran)}`}`}>
        <rect class="g-w" x=${x(each.from)} y="5" width=${wide(each.from, each.started)} height="4" rx="1" />
        ${each.ran !== null && html`<rect class=${colour(each.state)} x=${x(each.started)} y="3" width=${wide(each.started, each.ended)} height="8" rx="1" />`}</svg>` },
      { head: "Waited", cell: "r n drop", show: (each) => span(each.started - each.from) },
      { head: "Ran", cell: "r n", show: (each) => html`<span class="nar">waited ${span(each.started - each.from)}, ran </span>${span(each.ran)}` },
    ] })}
    ${tries.filter((each) => each.error || each.traceback).reverse().map((each, place) => html`<details open=${place === 0}><summary><b>Error of try ${number(each.number)}</b> <bdi class="q">${firstLine(each.error, 160)}</bdi></summary>
      <pre tabindex="0">${each.traceback ? plain(each.traceback, 20_000) : html`<span class="bad">${plain(each.error, 20_000)}</span>`}</pre></details>`)}`;
}

/** @param {{job: Wire.JobResponse}} props */
function Facts({ job }) {
  return factList([
    ["Definition", html`<${Link} to="jobs" query=${{ definition: job.definition }}>${plain(job.definition, 80)}<//>`],
    ["Target", job.target !== job.id && html`<bdi>${plain(job.target, 120)}</bdi>`],
    ["Schedule", job.schedule && html`<${ScheduleLink} name=${job.schedule} />${job.nominal_at ? ` for ${time(job.nominal_at)}` : ""}`],
    ["Tenant", plain(job.tenant, 80)],
    ["Lane", `${plain(job.lane, 80)}, priority ${number(job.priority)}`],
    ["Mode", job.mode === "queued" ? null : job.mode],
    ["Fairness key", job.fairness_key !== job.tenant && plain(job.fairness_key, 80)],
    ["Resources", job.resources && Object.entries(job.resources).map(([name, units]) => `${name} ${units}`).join(", ")],
    ["Submitted", time(job.submitted_at)],
    ["Not before", job.not_before && time(job.not_before)],
    ["Expires", job.expires_at && time(job.expires_at)],
    ["Ended", job.finished_at && time(job.finished_at)],
    ["Failures", job.failures ? number(job.failures) : null],
    ["Losses", job.losses ? number(job.losses) : null],
    ["Retried", job.revivals ? counted(job.revivals, "time") : null],
    ["Reports", job.failed_job && html`<${JobLink} id=${job.failed_job} />, which failed for good`],
    ["Reported by", job.on_failure_job && html`<${JobLink} id=${job.on_failure_job} />`],
    ["Batch", job.batch && html`<${Link} to="jobs" query=${{ batch: job.batch }}>${plain(job.batch, 80)}<//>`],
    ["Labels", Object.keys(job.labels).length > 0 && html`<${Labels} labels=${job.labels} view="jobs" />`],
    ["Id", html`<bdi class="m">${plain(job.id, 320)}</bdi>`],
  ]);
}

const NODES_SHOWN = 6;
const STEP = 76;
const NODE = { width: 150, height: 46, text: 18 };

/** Jobs by id, read again every few seconds; null for one that is gone. @param {string[]} ids */
function useJobs(ids) {
  const [found, setFound] = useState(/** @type {Record<string, Wire.JobResponse | null>} */ ({}));
  useEffect(() => {
    const stop = new AbortController();
    for (const id of ids) {
      get(`/v1/jobs/${segment(id)}`, undefined, stop.signal).then(
        (job) => setFound((before) => ({ ...before, [id]: job })),
        (error) => error.status === 404 && setFound((before) => ({ ...before, [id]: null })),
      );
    }
    return () => stop.abort();
  }, [ids.join(), Math.floor(now.value / CHECKED_MS)]);
  return found;
}

/** The jobs that this one depends on, and those of its batch that depend on it: as a picture, and on a narrow screen as a list. @param {{job: Wire.JobResponse}} props */
function Graph({ job }) {
  const batch = useData(job.batch ? "/v1/jobs" : null, { batch: job.batch, limit: 100 }, { everyMs: CHECKED_MS });
  const before = job.depends_on.slice(0, NODES_SHOWN);
  const known = useJobs(before.filter((id) => !id.startsWith("batch:")));
  const after = (batch.data?.items || []).filter((each) => each.depends_on.includes(job.id));
  if (!before.length && !after.length) return null;
  /** @param {string} id @param {Wire.JobSummary | null} [job]  null: gone; undefined while unknown */
  const node = (id, job) => ({ id, job, href: id.startsWith("batch:") ? to("jobs", { batch: id }) : to("job", { id }) });
  /** @typedef {ReturnType<typeof node>} Node */
  const first = before.map((id) => node(id, known[id]));
  const last = after.slice(0, NODES_SHOWN).map((each) => node(each.id, each));
  const height = STEP * Math.max(first.length, last.length, 1) - (STEP - NODE.height) + 10;
  const y = (/** @type {number} */ place, /** @type {number} */ of) => 5 + (height - 10 - (of * STEP - (STEP - NODE.height))) / 2 + place * STEP;
  const name = (/** @type {Node} */ { id, job: each }) => plain(each ? jobName(each) : id, 80);
  const state = (/** @type {Node} */ { job: each }) => (each === null ? "gone" : each?.state || "");
  const word = (/** @type {Node} */ node) => (state(node) === "gone" ? "no longer stored" : state(node) ? sign(state(node))[2] : node.id.startsWith("batch:") ? "a batch" : "…");
  const cut = (/** @type {string} */ text) => (text.length > NODE.text ? `${text.slice(0, NODE.text - 1)}…` : text);
  const MARKS = /** @type {Record<string, string>} */ ({ good: "●", bad: "✕", warn: "○", run: "◑", off: "■" });
  /** @param {Node} node @param {number} left @param {number} top @param {string} kind */
  const drawn = (node, left, top, kind) => html`<a href=${node.href} aria-label=${`${name(node)}, ${word(node)}`}><g class=${kind}><rect x=${left} y=${top} width=${NODE.width} height=${NODE.height} rx="6" /><text x=${left + 12} y=${top + 19}>${cut(name(node))}</text>
    <g class=${sign(state(node) || "gone")[1]}><text class="t" x=${left + 12} y=${top + 36}>${state(node) ? `${MARKS[sign(state(node))[1]]} ` : ""}${word(node)}</text></g></g></a>`;
  const middle = y(0, 1) + NODE.height / 2;
  const curve = (/** @type {number} */ x1, /** @type {number} */ y1, /** @type {number} */ x2, /** @type {number} */ y2) => `M${x1} ${y1}C${x1 + 25} ${y1} ${x2 - 25} ${y2} ${x2} ${y2}`;
  const paths = [...first.map((_, place) => curve(155, y(place, first.length) + 23, 205, middle)), ...last.map((_, place) => curve(355, middle, 405, y(place, last.length) + 23))];
  const more = [job.depends_on.length > before.length && `${number(job.depends_on.length - before.length)} more before it`, after.length > last.length && `${number(after.length - last.length)} more after it`].filter(Boolean);
  return html`<section class="sec"><h2>${before.length ? "Depends on" : "What depends on it"}${before.length && after.length ? ", and what depends on it" : ""}</h2>
    <svg class="dag" viewBox=${`0 0 560 ${height}`} role="group" aria-label="Jobs before and after this one"><path d=${paths.join("")} />
      ${first.map((node, place) => drawn(node, 5, y(place, first.length), ""))}${drawn(node(job.id, job), 205, y(0, 1), "me")}${last.map((node, place) => drawn(node, 405, y(place, last.length), ""))}</svg>
    <ul class="dagl">${[...first, ...last].map((node) => html`<li><${State} state=${state(node) || "gone"} word=${word(node)} /> <a href=${node.href}>${name(node)}</a></li>`)}</ul>
    <p class="q">${more.length ? `And ${more.join(", ")}. ` : ""}${before.length ? (job.on_dependency_failure === "fail" ? "If one that it depends on fails, so does this job." : "It runs when all that it depends on have ended, even if some failed.") : ""}</p></section>`;
}
