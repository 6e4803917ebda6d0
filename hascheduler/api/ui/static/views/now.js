// Now: is it well, and if not, what to do first; the last hour, what comes next, replicas and processors.
import { html, useState } from "../html.js";
import { may, ofAll, post, segment } from "../api.js";
import { health, hour, nameOf, now, picture, replicaNow, staleSince, useData } from "../data.js";
import { HOUR_MS, counted, left, number, plain, seconds, shortTime, span } from "../format.js";
import { Action, Empty, Failure, Field, Link, Menu, Moment, ScheduleLink, State, When, loaded, table } from "../parts/basic.js";
import { Plot, Slots, perMinute } from "../parts/charts.js";
import { to } from "../router.js";

const NEXT_SHOWN = 8;
const LATELY_SHOWN = 6;
/** @type {Record<string, string>} */
const CAUSES = {
  first: "the first leader",
  released: "the leader before released its lease",
  died: "the leader before died",
  stood_still: "the leader before stalled",
  lapsed: "the lease expired",
  deleted: "the lease was deleted",
};
/** What the view of a link is called on a button. @type {Record<string, string>} */
const SEE = { jobs: "See the jobs", schedules: "See the schedules", lanes: "See lanes and tenants" };
/** Of a replica of an earlier release. @type {Wire.HealthResponse} */
const UNKNOWN = {
  state: "unknown", title: "Nobody says whether all is well", text: "The replica that answers is of an earlier release.", checked: [], unchecked: [], problems: [],
  counts: { failed_jobs: null, failing_schedules: null, late_schedules: null }, replicas_expected: 0, replicas_alive: 0,
};

export default function Now() {
  const seen = picture.value;
  const failovers = useData("/v1/cluster/failovers", { limit: LATELY_SHOWN });
  if (!seen) return html`<h1>Now</h1><p class="off" role="status">Loading…</p>`;
  const { cluster, processors } = seen;
  const verdict = health.value || UNKNOWN;
  const changes = failovers.data?.items || [];
  return html`<div class="top">
      ${staleSince.value ? html`<h1 class="hide">Now</h1>` : html`<div class="verdict"><h1 aria-live="polite"><${State} state=${verdict.state} wrap word=${plain(verdict.title, 300)} /></h1><p>${plain(verdict.text, 500)}</p></div>`}
      <${Stop} cluster=${cluster} /></div>
    <${Problems} of=${verdict} />
    <section class="sec" aria-label="The last hour"><${Vitals} seen=${seen} failed=${verdict.counts.failed_jobs} changes=${changes} />
      <${LeaderChanges} changes=${changes} sharded=${cluster.shards.length > 0} />
      ${verdict.checked.length > 0 && html`<details><summary class="q">What this line has checked: ${counted(verdict.checked.length, "rule")}</summary>
        <ul class="checks">${verdict.checked.map((each) => (verdict.problems.length ? html`<li>whether ${plain(each.replace(/^[A-Z](?=[a-z ])/, (letter) => letter.toLowerCase()), 120)}</li>` : html`<li class="s ok">${plain(each, 120)}</li>`))}</ul></details>`}
    </section>
    <div class="two">
      <section class="sec"><div class="top"><h2>Next</h2><a class="q" href="/ui/timeline">The next 24 h</a></div><${Next} /></section>
      <div class="stack">
        <section class="sec" id="replicas"><h2>Replicas <small>${number(cluster.replicas.filter((each) => each.alive).length)} of ${number(Math.max(verdict.replicas_expected, cluster.replicas.length))} alive</small></h2><${Replicas} cluster=${cluster} /></section>
        <section class="sec"><h2>Lately</h2><${Lately} changes=${changes} sharded=${cluster.shards.length > 0} /><${Failure} error=${failovers.error} /></section>
      </div>
    </div>
    ${cluster.shards.length > 0 && html`<section class="sec"><h2>Shards</h2><${Shards} cluster=${cluster} /></section>`}
    <${Processors} shown=${processors} waiting=${seen.numbers.pending} />`;
}

/** What may be stopped, for those who may. @param {{cluster: Wire.ClusterResponse}} props */
function Stop({ cluster }) {
  if (!(may("administer") && ofAll.value)) return null;
  const { paused } = cluster;
  if (paused) {
    return html`<${Action} label="Resume all scheduling…" primary act=${() => post("/v1/cluster/resume")} said="Scheduling goes on."
      question=${html`<p>${plain(paused.by)} stopped ${paused.schedules_only ? "all schedules" : "everything"} <${When} at=${paused.since} />${paused.because ? ` (${plain(paused.because)})` : ""}. Missed fire times catch up by each schedule's misfire policy.</p>`} />`;
  }
  return html`<${Action} label="Stop all scheduling…" danger said="All scheduling has stopped."
    act=${(/** @type {FormData} */ form) => post("/v1/cluster/pause", { because: form.get("because"), schedules_only: form.get("schedules_only") === "on" })}
    question=${html`<p>No schedule fires and no job is dispatched until you resume. Running jobs go on.</p>`}>
    <${Field} label="Reason (shown to others)" name="because" maxlength="256" required />
    <label><input type="checkbox" name="schedules_only" /> Only schedules: waiting jobs are still dispatched</label>
  <//>`;
}

/** What is wrong, the worst first, each with where its rows are and what to do. @param {{of: Wire.HealthResponse}} props */
function Problems({ of: { problems, unchecked } }) {
  const [shown, show] = useState("");
  const runbooks = useData(shown ? new URL("../runbooks.json", import.meta.url).pathname : null, undefined, { everyMs: 0 });
  if (!problems.length && !unchecked.length) return null;
  return html`<section class="sec" aria-label="What to look at"><ol class="issues">
    ${problems.map(({ severity, rule, text, evidence, since, runbook, link }) => html`<li key=${rule + text} class=${severity}>
      <b><${State} state=${severity} /></b>
      <div><p>${plain(text, 400)}</p>${(evidence || since) && html`<p class="q">${plain([evidence, since && `since ${shortTime(since)}`].filter(Boolean).join(" · "), 400)}</p>`}
        ${shown === rule && runbook && (runbooks.data ? html`<pre tabindex="0">${runbooks.data[runbook]}</pre>` : html`<${Failure} error=${runbooks.error} />`)}</div>
      <div class="acts">${link && link.view !== "now" && html`<a class="btn" href=${to(link.view, link.query)}>${SEE[link.view] || "See it"}</a>`}
        ${runbook && html`<button type="button" aria-expanded=${shown === rule} onClick=${() => show(shown === rule ? "" : rule)}>What to do</button>`}</div></li>`)}
    ${unchecked.map(({ rule, reason }) => html`<li class="ticket"><b><${State} state="unknown" word="Not checked" /></b><div><p>${plain(rule, 120)}: ${plain(reason, 300)}</p></div></li>`)}
  </ol></section>`;
}

/** Four signs of life with one hour of history. @param {{seen: import("../data.js").Picture, failed: number | null, changes: Wire.FailoverResponse[]}} props */
function Vitals({ seen, failed, changes }) {
  const { numbers, slots } = seen;
  const { every_ms: everyMs = 30_000, series = {}, until = seen.at } = hour.value || {};
  const minute = /** @type {Record<string, number | undefined>} */ (numbers.per_minute || {});
  const marks = changes.filter((each) => each.gap_ms !== null).map((each) => Date.parse(until) - Date.parse(each.deciding_at));
  const total = (slots.occupied || 0) + (slots.free || 0);
  const gauge = (/** @type {"pending" | "running"} */ name) => ({ values: [...(series[name] || []), numbers[name]], everyMs, marks });
  const events = (/** @type {string} */ name) => ({ values: perMinute(series[name] || [], everyMs), everyMs: 60_000, unit: "a minute", marks });
  return html`<div class="vitals">
    <${Vital} label="Waiting" value=${numbers.pending} unit=${numbers.pending === 1 ? "job" : "jobs"} query=${{ state: "pending" }} plot=${gauge("pending")}
      note=${numbers.oldest_wait_ms ? `oldest ${span(numbers.oldest_wait_ms)}` : numbers.pending ? "" : "nothing waits"} />
    <${Vital} label="Running" value=${numbers.running} unit=${total ? `of ${counted(total, "slot")}` : "jobs"} query=${{ state: "running" }} plot=${gauge("running")}
      note=${[total ? `${counted(slots.free || 0, "slot is", "slots are")} free` : "no slot is registered", numbers.dispatched && `${number(numbers.dispatched)} dispatched`].filter(Boolean).join(", ")} />
    <${Vital} label="Succeeded" value=${minute.succeeded} unit="a minute" query=${{ state: "succeeded" }} plot=${events("succeeded")} note=${`${number(minute.submitted)} submitted, ${number(minute.started)} started`} />
    <${Vital} label="Failed for good" value=${failed} unit="in 24 h" kind=${failed ? "bad" : ""} query=${{ state: "failed" }} plot=${{ ...events("failed"), bars: true }}
      note=${`${number(minute.failed)} in the last minute; ${counted(minute.returned || 0, "try", "tries")} to repeat`} />
  </div>`;
}

/** @param {{label: string, value: number | null | undefined, unit: string, note: string, query: Record<string, any>, kind?: string, plot: any}} props */
const Vital = ({ label, value, unit, note, query, kind = "", plot }) => html`<${Link} to="jobs" query=${query} class=${`vital ${kind}`}>
  <span class="q">${label}</span><strong>${number(value)} <small>${unit}</small></strong><span class="q">${note}</span><${Plot} label=${label} ...${plot} /><//>`;

/** @param {Wire.FailoverResponse} change @param {boolean} sharded */
const changeText = ({ holder, shard, cause, gap_ms: gapMs }, sharded) =>
  `${plain(nameOf(holder), 60)} leads${sharded ? ` ${plain(shard, 60)}` : ""}: ${CAUSES[cause] || cause}${gapMs === null ? "" : `; ${span(gapMs)} without a leader`}`;

/** What the dashed lines in the plots are. @param {{changes: Wire.FailoverResponse[], sharded: boolean}} props */
function LeaderChanges({ changes, sharded }) {
  const recent = changes.filter((each) => each.gap_ms !== null && now.value - Date.parse(each.deciding_at) < HOUR_MS);
  if (!recent.length) return null;
  return html`<p class="q">${recent.length === 1 ? "The dashed line is the change of leader" : "The dashed lines are the changes of leader; the last"}, ${shortTime(recent[0].deciding_at)}: ${changeText(recent[0], sharded)}.</p>`;
}

/** The next fires of all schedules. */
function Next() {
  const asked = useData("/v1/schedules", { state: "active", sort: "next", limit: NEXT_SHOWN }, { everyMs: 5_000 });
  return loaded(asked, ({ items }) => table({
    label: "Next fires",
    items,
    none: html`No schedule fires. ${may("operate") && html`<a href="/ui/schedule-new">Make one</a>, or run <code>hascheduler schedule put tick --every 10s --definition log</code>`}`,
    columns: [
      { head: "In", cell: "n b end", show: (each) => left(each.next_due_at || each.next_at || "", replicaNow.value).replace(/^0s$/, "now") },
      { head: "At", cell: "n q drop", show: (each) => each.next_at && shortTime(each.next_at) },
      { head: "Schedule", cell: "first", row: true, show: (each) => html`<${ScheduleLink} name=${each.name} />` },
      { head: "Runs", cell: "drop", show: (each) => plain([each.job.definition, ofAll.value && each.job.tenant].filter(Boolean).join(" · "), 80) },
    ],
  }));
}

/** @param {{cluster: Wire.ClusterResponse}} props */
function Replicas({ cluster }) {
  const { replicas, leader, mirrors_differ: differ, shards, quarantine } = cluster;
  const led = (/** @type {string} */ id) => (shards.length ? shards.filter((each) => each.leader?.holder === id).length : leader?.holder === id ? 1 : 0);
  /** @param {Wire.ReplicaResponse} each */
  const state = (each) => {
    if (!each.alive) return html`<${State} state="silent" />`;
    if (led(each.id)) return html`<${State} state="leads" wrap word=${shards.length ? `leads ${counted(led(each.id), "shard")}` : leader ? `leads for ${seconds(now.value - Date.parse(leader.since))}` : ""} />`;
    return html`<${State} state=${each.ready ? "ready" : "unready"} />`;
  };
  return html`${table({ label: "Replicas", items: replicas, columns: [
      { head: "Replica", row: true, cell: "b", show: (each) => html`<bdi>${plain(each.name, 60)}</bdi>${each.id === cluster.replica_id && html` <span class="q">answers</span>`}` },
      { head: "State", cell: "end", show: (each) => html`${state(each)}${differ.includes(each.id) && html`<br /><${State} state="failed" word="mirror differs" />`}${each.quarantined > 0 && html`<br /><${State} state="unready" word=${`${number(each.quarantined)} quarantined`} />`}` },
      { head: "Lag", cell: "r n q drop", show: (each) => (each.alive ? span(each.stream_lag_ms) : "–") },
      { head: "Release", cell: "r n q drop", show: (each) => each.version || "–" },
    ] })}
    ${quarantine.length > 0 && html`<details><summary>${counted(quarantine.length, "document")} quarantined</summary><ul>${quarantine.map((each) => html`<li><code>${each.collection}</code> <bdi>${plain(each.id, 200)}</bdi>: ${plain(each.reason)}</li>`)}</ul></details>`}
    ${leader && html`<p class="q">Term ${number(leader.term)}, journal entry ${number(cluster.journal_seq)}.</p>`}`;
}

/** What a request did, by its last word or its method. @type {Record<string, string>} */
const CHANGES = {
  pause: "paused", resume: "resumed", drain: "drained", undrain: "undrained", trigger: "triggered", retry: "retried", cancel: "cancelled", reset: "reset",
  backfill: "backfilled", reprioritize: "reprioritized", PUT: "edited", PATCH: "edited", DELETE: "deleted", POST: "made",
};

/** What was done, of a line in the audit log. @param {Wire.AuditResponse} record */
export const changed = ({ method, path }) => CHANGES[path.split(/[/:]/).at(-1) || ""] || CHANGES[method] || method;

/** Who did what to which. @param {Wire.AuditResponse} record */
function Done(record) {
  const { method, path, who, because } = record;
  const [, , noun, name] = decodeURIComponent(path).split("/");
  const what = noun === "cluster" ? "all scheduling" : noun.includes(":") ? `${noun.split(":")[0]} that matched`
    : noun === "schedules" && name && method !== "DELETE" ? html`<${ScheduleLink} name=${name} />` : plain(`${noun.replace(/s$/, "")} ${name || ""}`, 80);
  return html`${plain(who, 60)} ${changed(record)} ${what}${because ? `: ${plain(because, 120)}` : ""}`;
}

/** The latest changes of leader and, for admins, of what is stored. @param {{changes: Wire.FailoverResponse[], sharded: boolean}} props */
function Lately({ changes, sharded }) {
  const audit = useData(may("administer") ? "/v1/audit" : null, { limit: 30 }, { everyMs: 10_000 });
  const records = (audit.data?.items || []).filter((each) => each.status < 300 && !/^\/(v1\/jobs(\/|$)|v1\/(work|jobs:batch)|ui\/)/.test(each.path));
  const lines = [
    ...changes.map((each) => ({ at: each.deciding_at, text: changeText(each, sharded) })),
    ...records.map((each) => ({ at: each.at, text: html`<${Done} ...${each} />` })),
  ].sort((one, other) => Date.parse(other.at) - Date.parse(one.at));
  if (!lines.length) return html`<${Empty}>Nothing has changed.<//>`;
  return html`<ul class="sec">${lines.slice(0, LATELY_SHOWN).map(({ at, text }) => html`<li><span class="q">${shortTime(at)}</span> ${text}</li>`)}</ul>`;
}

/** @param {{cluster: Wire.ClusterResponse}} props */
const Shards = ({ cluster }) => table({ label: "Shards", items: cluster.shards, columns: [
  { head: "Shard", row: true, cell: "b", show: (each) => plain(each.name, 60) },
  { head: "Leader", cell: "end", show: (each) => (each.leader ? html`<${State} state="leads" word=${plain(nameOf(each.leader.holder), 60)} />` : html`<${State} state="silent" word="no leader" />`) },
  { head: "Since", cell: "drop", show: (each) => html`<${Moment} at=${each.leader?.since} />` },
  { head: "Schedules", cell: "r drop", show: (each) => number(each.counts.schedules || 0) },
  { head: "Waiting", cell: "r drop", show: (each) => number(each.counts.pending || 0) },
  { head: "Running", cell: "r drop", show: (each) => number(each.counts.running || 0) },
  { head: "Processors", cell: "r drop", show: (each) => number(each.processors) },
  { head: "Mirror here", cell: "full", show: (each) => (each.ready ? html`<${State} state="ready" word=${`${span(each.stream_lag_ms)} behind`} />` : html`<${State} state="unready" word=${plain(each.unready_reason, 120)} wrap />`) },
] });

/** @param {{shown: Wire.ProcessorsResponse | null, waiting: number}} props */
function Processors({ shown, waiting }) {
  const { items, absent } = shown || { items: [], absent: [] };
  const alive = items.filter((each) => each.alive);
  const slots = alive.reduce((sum, each) => sum + each.slots, 0);
  const busy = alive.reduce((sum, each) => sum + each.occupied, 0);
  return html`<section class="sec"><h2>Processors <small>${shown ? `${number(alive.length)} alive, ${number(Math.max(0, slots - busy))} of ${counted(slots, "slot")} free` : ""}</small></h2>
    ${table({
      label: "Processors",
      items,
      none: shown ? html`No processor is registered${waiting ? `, and ${counted(waiting, "job")} wait` : ""}. Start one: <code>hascheduler processor mine --slots 8</code>` : "Only a token for all tenants sees processors.",
      menu: may("administer") && ofAll.value && ((each) => html`<${ProcessorMenu} of=${each} />`),
      columns: [
        { head: "Processor", row: true, cell: "b", show: (each) => html`<bdi>${plain(each.name, 60)}</bdi>` },
        { head: "State", cell: "end", show: (each) => html`<${ProcessorState} of=${each} />` },
        { head: "Slots", cell: "drop", show: (each) => html`<${Slots} used=${each.occupied} of=${each.slots} />` },
        { head: "Busy", cell: "n r", show: (each) => `${number(each.occupied)} of ${number(each.slots)}` },
        { head: "Runs", cell: "q full", show: (each) => plain(each.definitions.includes("*") ? "everything" : each.definitions.join(", "), 160) },
      ],
    })}
    ${absent.length > 0 && html`<p class="q">Drained names without a processor: ${absent.map((each) => plain(each.name, 60)).join(", ")}</p>`}</section>`;
}

/** @param {{of: Wire.ProcessorResponse}} props */
function ProcessorState({ of: each }) {
  if (!each.alive) return html`<${State} state="silent" />`;
  if (!each.consuming) return html`<${State} state="unready" wrap word="does not consume its queue" />`;
  if (each.rest) return html`<${State} state="draining" wrap word=${`rests: ${counted(each.rest.missed, "job")} not started`} />`;
  if (!each.draining && !each.drained) return html`<${State} state="alive" />`;
  return html`<${State} state="draining" word=${each.occupied ? `drains, ${counted(each.occupied, "job")} left` : "drained"} />${each.drained && html`<small>by ${plain(each.drained.by, 60)}${each.drained.because ? `: ${plain(each.drained.because, 120)}` : ""}</small>`}`;
}

/** @param {{of: Wire.ProcessorResponse}} props */
function ProcessorMenu({ of: { name, drained } }) {
  const path = `/v1/processors/${segment(name)}`;
  return html`<${Menu} name=${`Actions for ${name}`}>${drained
    ? html`<${Action} label="Undrain" act=${() => post(`${path}/undrain`)} said=${`${name} gets jobs again.`} />`
    : html`<${Action} label="Drain…" act=${(/** @type {FormData} */ form) => post(`${path}/drain`, { because: form.get("because") || null })}
        question=${html`<p>Processors named ${plain(name, 60)} get no new jobs, and finish those they have.</p>`}><${Field} label="Reason (shown to others)" name="because" maxlength="256" /><//>`}<//>`;
}
