// Simulate: a scenario or a recording under several policies, side by side. A replica runs it beside itself.
import { html, useEffect, useRef, useState } from "../html.js";
import { Problem, get, pieces, request, segment } from "../api.js";
import { number, plain, span } from "../format.js";
import { now } from "../live.js";
import { Empty, Failure, Loaded } from "../parts/basic.js";
import { Figures, Moves, Pictures } from "../parts/simulation.js";
import { useData } from "../query.js";
import { keepQuery, place } from "../router.js";

const POLICIES_MAX = 4;
const FILE_BYTES_MAX = 4_000_000;
const SHOWN_MAX = 100_000;
const PATIENCE_MS = 240_000;

/** @typedef {{result: import("../wire.js").SimulationResponse | null, error: any, since: number}} Run  `since` when it runs; 0: none does */

export default function Simulate() {
  const query = place.value.query;
  const example = query.get("example") || "";
  const chosen = query.getAll("policy");
  const offered = useData("/v1/simulations/examples", undefined, { everyMs: 0 });
  const [text, write] = useState("");
  const [file, keep] = useState(/** @type {{name: string, text: string} | null} */ (null));
  const [run, tell] = useState(/** @type {Run} */ ({ result: null, error: null, since: 0 }));
  const stop = useRef(/** @type {AbortController | null} */ (null));
  useEffect(() => () => stop.current?.abort(), []);
  useEffect(() => {
    if (!example) return undefined;
    const gone = new AbortController();
    get(`/v1/simulations/examples/${segment(example)}`, undefined, gone.signal).then(
      (found) => (write(found.scenario), keep(null)),
      (error) => gone.signal.aborted || tell((before) => ({ ...before, error })),
    );
    return () => gone.abort();
  }, [example]);
  const address = (/** @type {string} */ name, /** @type {string[]} */ policies) => keepQuery({ example: name, policy: policies });
  const take = async (/** @type {File | undefined} */ given) => {
    if (!given) return;
    if (given.size > FILE_BYTES_MAX) {
      tell({ ...run, error: new Problem(0, { detail: `${given.name} has ${number(given.size)} bytes, and a replica takes ${number(FILE_BYTES_MAX)}. Run it where it is: hascheduler simulate ${given.name} --compare fair,swimlanes` }) });
      return;
    }
    const read = await given.text();
    address("", chosen);
    keep(read.length > SHOWN_MAX ? { name: given.name, text: read } : null);
    write(read.length > SHOWN_MAX ? "" : read);
    tell({ ...run, error: null });
  };
  const begin = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const mine = (stop.current = new AbortController());
    tell({ result: run.result, error: null, since: Date.now() });
    try {
      const body = { scenario: pieces(file ? file.text : text), policies: chosen };
      const { data } = await request("POST", "/v1/simulations", { body, signal: mine.signal, patienceMs: PATIENCE_MS });
      tell({ result: data, error: null, since: 0 });
    } catch (error) {
      tell({ result: null, error: mine.signal.aborted ? null : error, since: 0 });
    }
  };
  const presets = offered.data?.policies || [];
  const own = chosen.filter((policy) => presets.length && !presets.includes(policy)).join(" ");
  const nothing = !file && !text.trim();
  return html`<h1>Simulate</h1>
    <p class="dim">What would happen under another policy: the jobs of a scenario, or of a recording of the leader, in virtual time. Nothing of this cluster is read or changed.</p>
    <${Loaded} of=${offered}><form class="simulate" onSubmit=${begin}>
      <div class="filters">
        <label class="field"><span>Example</span><select name="example" onChange=${(/** @type {any} */ event) => address(event.target.value, chosen)}>
          <option value="">none</option>${(offered.data?.items || []).map((/** @type {any} */ each) => html`<option value=${each.name} selected=${each.name === example}>${each.name}</option>`)}</select></label>
        <label class="field"><span>Scenario (YAML, JSON) or recording</span><input type="file" name="file" accept=".yaml,.yml,.json,.jsonl,.ndjson" onChange=${(/** @type {any} */ event) => take(event.target.files[0])} /></label>
      </div>
      ${file
        ? html`<p><strong><bdi>${plain(file.name, 120)}</bdi></strong>, ${number(file.text.length)} characters <button type="button" onClick=${() => keep(null)}>Remove</button></p>`
        : html`<label class="field json"><span>Scenario, as text</span><textarea name="scenario" rows="10" spellcheck=${false} value=${text} onInput=${(/** @type {any} */ event) => write(event.target.value)}></textarea></label>`}
      <fieldset><legend>Policies, ${POLICIES_MAX} at most; none: the scenario's own</legend>
        ${presets.map((/** @type {string} */ name) => html`<label><input type="checkbox" name="policy" value=${name} checked=${chosen.includes(name)} disabled=${!chosen.includes(name) && chosen.length >= POLICIES_MAX}
          onChange=${(/** @type {any} */ event) => address(example, event.target.checked ? [...chosen, name] : chosen.filter((each) => each !== name))} /> ${name}</label>`)}
        <label class="field"><span>Lists of criteria, a blank between two</span><input name="criteria" value=${own} placeholder="lane,deadline,arrival" autocomplete="off" spellcheck=${false}
          onChange=${(/** @type {any} */ event) => address(example, [...chosen.filter((each) => presets.includes(each)), ...event.target.value.split(/\s+/).filter(Boolean)])} /></label>
      </fieldset>
      <div class="buttons"><button class="primary" disabled=${nothing || run.since > 0}>Run</button>
        ${run.since > 0 && html`<button type="button" onClick=${() => stop.current?.abort()}>Cancel</button><progress aria-label="The simulation runs"></progress><span role="status">running for ${span(Math.max(0, Math.floor((now.value - run.since) / 1_000) * 1_000))}</span>`}</div>
    </form><//>
    <${Failure} error=${run.error} />
    ${run.result
      ? html`<${Result} found=${run.result} />`
      : !run.error && !run.since && html`<${Empty}>Choose an example, a file, or write a scenario; tick what to compare; press Run. <code>hascheduler record afternoon.jsonl --for 5m</code> records what this cluster does.<//>`}`;
}

/** @param {{found: import("../wire.js").SimulationResponse}} props */
function Result({ found }) {
  const replay = found.replay;
  return html`<section aria-label="What comes of it"><h2>What comes of it</h2>
    ${found.note && html`<p><em><bdi>${plain(found.note, 600)}</bdi></em></p>`}
    ${replay && html`<p class=${replay.identical ? "good" : "bad"}>${replay.identical
      ? `● All ${number(replay.decisions)} recorded decisions in ${number(replay.steps)} steps are decided again.`
      : `✕ Step ${number(replay.differs_at_step)} is decided otherwise than it was recorded: another release, or another policy, made the recording.`}</p>`}
    <${Figures} runs=${found.runs} /><${Moves} runs=${found.runs} /><${Pictures} found=${found} /></section>`;
}
