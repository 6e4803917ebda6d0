// Now: the leader, replicas, processors, numbers of jobs, and alerts.
import { html, useState } from "../html.js";
import { counted, number, plain, span } from "../format.js";
import { history, picture } from "../live.js";
import { Action } from "../parts/actions.js";
import { Empty, Failure, Link, State, When } from "../parts/basic.js";
import { Sparkline } from "../parts/charts.js";
import { post, segment } from "../api.js";
import { useData } from "../query.js";
import { may, ofAll } from "../session.js";

const SLOTS_SHOWN_MAX = 200;
const CAUSES = {
  first: "the first leader",
  released: "the leader released its lease",
  died: "the leader died",
  stood_still: "the leader stalled",
  lapsed: "the lease expired",
  deleted: "the lease was deleted",
};

export default function Now() {
  const seen = picture.value;
  if (!seen) return html`<h1>Now</h1><p class="empty" role="status">Loading…</p>`;
  const { cluster, processors, numbers, alerts } = seen;
  return html`<h1>Now</h1>
    <${Alerts} alerts=${alerts} />
    <section class="tiles" aria-label="Jobs">
      <${Tile} label="Waiting" name="pending" query=${{ state: "pending" }} numbers=${numbers} />
      <${Tile} label="Dispatched" name="dispatched" query=${{ state: "dispatched" }} numbers=${numbers} />
      <${Tile} label="Running" name="running" query=${{ state: "running" }} numbers=${numbers} />
      <${Tile} label="Succeeded / s" name="succeeded" query=${{ state: "succeeded" }} numbers=${numbers} />
      <${Tile} label="Failed / s" name="failed" query=${{ state: "failed" }} numbers=${numbers} bad />
      <${Tile} label="Submitted / s" name="submitted" query=${{}} numbers=${numbers} />
    </section>
    <div class="columns">
      <section><h2>${cluster.shards.length ? "Leader of the home shard" : "Leader"}</h2><${Leader} cluster=${cluster} /><${PauseAll} cluster=${cluster} /></section>
      <section><h2>Changes of leader</h2><${Failovers} sharded=${cluster.shards.length > 0} /></section>
    </div>
    ${cluster.shards.length > 0 && html`<section><h2>Shards</h2><${Shards} cluster=${cluster} /></section>`}
    <section><h2>Replicas</h2><${Replicas} cluster=${cluster} /></section>
    <section><h2>Processors</h2>${processors ? html`<${Processors} shown=${processors} waiting=${numbers.pending} />` : html`<${Empty}>Only a token for all tenants sees processors.<//>`}</section>`;
}

/** @param {{label: string, name: string, query: any, numbers: any, bad?: boolean}} props */
function Tile({ label, name, query, numbers, bad }) {
  return html`<${Link} to="jobs" query=${query} class=${`tile ${bad && numbers[name] ? "bad" : ""}`}>
    <span class="dim">${label}</span><strong>${number(numbers[name])}</strong><${Sparkline} values=${history.value[name]} label=${label} /><//>`;
}

/** @param {{alerts: any[]}} props */
function Alerts({ alerts }) {
  const [shown, show] = useState("");
  const runbooks = useData(shown ? new URL("../runbooks.json", import.meta.url).pathname : null, undefined, { everyMs: 0 });
  if (!alerts.length) return html`<p class="banner good" role="status"><${State} state="ready" word="No problems" /></p>`;
  return html`<section aria-label="Problems">${alerts.map(
    (alert) => html`<div class=${`alert ${alert.severity}`} role=${alert.severity === "page" ? "alert" : "status"}>
      <p><${State} state=${alert.severity} word=${alert.severity === "page" ? "Act now" : "Can wait"} /> ${plain(alert.text)}
        <button type="button" aria-expanded=${shown === alert.runbook} onClick=${() => show(shown === alert.runbook ? "" : alert.runbook)}>Runbook</button></p>
      ${shown === alert.runbook && (runbooks.data ? html`<pre>${runbooks.data[alert.runbook]}</pre>` : html`<${Failure} error=${runbooks.error} />`)}
    </div>`,
  )}</section>`;
}

/** @param {{cluster: import("../wire.js").ClusterResponse}} props */
function Leader({ cluster }) {
  const { leader, replicas } = cluster;
  if (!leader) return html`<p><${State} state="silent" word="No replica leads" /></p>`;
  const found = replicas.find((each) => each.id === leader.holder);
  return html`<dl class="facts">
    <dt>Replica</dt><dd><${State} state="leads" word=${found?.name || leader.holder} /> <span class="dim">${leader.holder}</span></dd>
    <dt>Since</dt><dd><${When} at=${leader.since} /></dd>
    <dt>Term</dt><dd>${number(leader.term)}</dd>
    <dt>Journal</dt><dd>entry ${number(cluster.journal_seq)}</dd>
    <dt>Schedules</dt><dd><${Link} to="schedules">${number(cluster.counts.schedules)}<//></dd>
    <dt>Definitions</dt><dd><${Link} to="lanes">${number(cluster.counts.definitions)}<//></dd>
  </dl>`;
}

/** @param {{cluster: import("../wire.js").ClusterResponse}} props */
function PauseAll({ cluster }) {
  if (!(may("administer") && ofAll.value)) return null;
  if (cluster.paused) {
    return html`<${Action} label="Resume everything" act=${() => post("/v1/cluster/resume")}
      question=${html`<p>${plain(cluster.paused.by)} paused everything <${When} at=${cluster.paused.since} />. Missed fire times catch up by each schedule's misfire policy.</p>`} />`;
  }
  return html`<${Action} label="Pause everything" danger
    act=${(/** @type {FormData} */ form) => post("/v1/cluster/pause", { because: form.get("because"), schedules_only: form.get("schedules_only") === "on" })}
    question=${html`<p>No schedule fires and no job is dispatched until you resume. Running jobs go on.</p>`}>
    <label class="field"><span>Reason (shown to others)</span><input name="because" maxlength="256" required /></label>
    <label><input type="checkbox" name="schedules_only" /> Only schedules: waiting jobs are still dispatched</label>
  <//>`;
}

/** @param {{sharded: boolean}} props */
function Failovers({ sharded }) {
  /** @type {import("../query.js").Asked<import("../wire.js").FailoversResponse>} */
  const asked = useData("/v1/cluster/failovers", { limit: 5 });
  const items = asked.data?.items || [];
  return html`<${Failure} error=${asked.error} />
    ${asked.data && !items.length && html`<${Empty}>No changes of leader yet.<//>`}
    <ol class="plain">${items.map(
      (each) => html`<li>
        <p><strong>${sharded ? `${plain(each.shard, 60)}, term` : "Term"} ${number(each.term)}</strong> <${When} at=${each.deciding_at} />: ${/** @type {any} */ (CAUSES)[each.cause] || each.cause}</p>
        <p class="dim">${each.gap_ms === null ? "" : `${span(each.gap_ms)} without a leader; `}${each.first_decision_at ? html`first decision <${When} at=${each.first_decision_at} />` : "no decision yet"}</p>
      </li>`,
    )}</ol>`;
}

/** @param {{cluster: import("../wire.js").ClusterResponse}} props */
function Shards({ cluster }) {
  const names = new Map(cluster.replicas.map((each) => [each.id, each.name]));
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Shards"><table>
    <thead><tr><th scope="col">Shard</th><th scope="col">Leader</th><th scope="col">Term</th><th scope="col">Since</th><th scope="col">Processors</th><th scope="col">Schedules</th><th scope="col">Waiting</th><th scope="col">Running</th><th scope="col">Mirror here</th></tr></thead>
    <tbody>${cluster.shards.map(
      (each) => html`<tr>
        <th scope="row">${plain(each.name, 60)}</th>
        <td>${each.leader ? html`<${State} state="leads" word=${plain(names.get(each.leader.holder) || each.leader.holder, 60)} />` : html`<${State} state="silent" word="no leader" />`}</td>
        <td class="number">${each.leader ? number(each.leader.term) : "–"}</td>
        <td>${each.leader ? html`<${When} at=${each.leader.since} />` : "–"}</td>
        <td class="number">${number(each.processors)}</td>
        <td class="number">${number(each.counts.schedules || 0)}</td>
        <td class="number">${number(each.counts.pending || 0)}</td>
        <td class="number">${number(each.counts.running || 0)}</td>
        <td>${each.ready ? html`<${State} state="ready" word=${span(each.stream_lag_ms)} />` : html`<${State} state="unready" word=${plain(each.unready_reason, 120)} />`}</td>
      </tr>`,
    )}</tbody></table></div>`;
}

/** @param {{cluster: import("../wire.js").ClusterResponse}} props */
function Replicas({ cluster }) {
  const { replicas, leader, mirrors_differ, shards } = cluster;
  const led = (/** @type {string} */ id) => (shards.length ? shards.filter((each) => each.leader?.holder === id).length : leader?.holder === id ? 1 : 0);
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Replicas"><table>
    <thead><tr><th scope="col">Replica</th><th scope="col">State</th><th scope="col">Stream lag</th><th scope="col">Mirror</th><th scope="col">Quarantined</th><th scope="col">Version</th><th scope="col">Started</th></tr></thead>
    <tbody>${replicas.map(
      (each) => html`<tr>
        <th scope="row">${plain(each.name, 60)} ${each.id === cluster.replica_id && html`<span class="dim">(this replica)</span>`}</th>
        <td>${!each.alive ? html`<${State} state="silent" />` : led(each.id) ? html`<${State} state="leads" word=${shards.length ? `leads ${counted(led(each.id), "shard")}` : "leads"} />` : each.ready ? html`<${State} state="ready" />` : html`<${State} state="unready" word="not ready" />`}</td>
        <td class="number">${span(each.stream_lag_ms)}</td>
        <td>${mirrors_differ.includes(each.id) ? html`<${State} state="failed" word="differs" title=${each.digest} />` : html`<${State} state="ready" word="agrees" title=${`${each.digest} at ${each.position}`} />`}</td>
        <td class="number">${number(each.quarantined)}</td>
        <td>${each.version || "–"}</td>
        <td><${When} at=${each.started_at} /></td>
      </tr>`,
    )}</tbody></table></div>
    ${cluster.quarantine.length > 0 && html`<details><summary>${counted(cluster.quarantine.length, "document")} quarantined</summary><ul>${cluster.quarantine.map((each) => html`<li><code>${each.collection}</code> <bdi>${plain(each.id, 200)}</bdi>: ${plain(each.reason)}</li>`)}</ul></details>`}`;
}

/** @param {{shown: import("../wire.js").ProcessorsResponse, waiting: number}} props */
function Processors({ shown, waiting }) {
  const { items, absent } = shown;
  if (!items.length) return html`<${Empty}>No processor is registered${waiting ? `, and ${counted(waiting, "job")} wait` : ""}. Start one: <code>hascheduler processor mine --slots 8</code><//>`;
  return html`<ul class="processors">${items.map((each) => html`<${Processor} of=${each} />`)}</ul>
    ${absent.length > 0 && html`<p class="dim">Drained names without a processor: ${absent.map((each) => html`<span class="label">${plain(each.name, 60)}</span>`)}</p>`}`;
}

/** @param {{of: import("../wire.js").ProcessorResponse}} props */
function Processor({ of: each }) {
  const state = !each.alive ? "silent" : each.draining || each.rest ? "draining" : "alive";
  const word = !each.alive ? undefined : !each.consuming ? "does not consume its queue" : each.rest ? `resting: ${counted(each.rest.missed, "job")} not started` : undefined;
  const shown = Math.min(each.slots, SLOTS_SHOWN_MAX);
  const runs = each.definitions.includes("*") ? "everything" : each.definitions.join(", ");
  return html`<li>
    <p><strong>${plain(each.name, 60)}</strong> <${State} state=${state} word=${word} /> <span class="dim">${number(each.occupied)} of ${counted(each.slots, "slot")} busy · runs ${plain(runs, 120)}</span>
      ${may("administer") && ofAll.value && (each.drained
        ? html` <${Action} label="Undrain" act=${() => post(`/v1/processors/${segment(each.name)}/undrain`)} />`
        : html` <${Action} label="Drain" question=${html`<p>Processors named ${plain(each.name, 60)} get no new jobs, and finish those they have.</p>`} act=${(/** @type {FormData} */ form) => post(`/v1/processors/${segment(each.name)}/drain`, { because: form.get("because") || null })}><label class="field"><span>Reason</span><input name="because" maxlength="256" /></label><//>`)}
      ${each.drained && html`<span class="dim">drained by ${plain(each.drained.by)} ${each.drained.because ? `(${plain(each.drained.because)})` : ""}</span>`}</p>
    <div class="slots" role="img" aria-label=${`${each.occupied} of ${each.slots} slots busy`}>${Array.from({ length: shown }, (_, place) => html`<i class=${place < each.occupied ? "busy" : ""}></i>`)}${each.slots > shown && html`<span class="dim">+${number(each.slots - shown)}</span>`}</div>
  </li>`;
}

