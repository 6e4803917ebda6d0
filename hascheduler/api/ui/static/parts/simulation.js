// The figures and pictures of simulated runs: what `hascheduler simulate` prints and draws.
import { html } from "../html.js";
import { counted, number, plain, span } from "../format.js";

/** @typedef {import("../wire.js").SimulationResponse} Found */
/** @typedef {import("../wire.js").SimulationRun} Run */
/** @typedef {import("../wire.js").SimulationWaits} Waits */

const GROUPS_MAX = 10;
const OTHERS = "#9a9a9a";
const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800];
const TICKS_MAX = 6;
const HEIGHT = 130;
const GANTT_HEIGHT = 420;
const SLOT_MAX = 18;
const NAMED_MAX = 24;
const LETTERS_MAX = 40;
const WIDTH = 1_000;

/** Each group has a letter, as a colour is never the only sign. @param {number | null} group */
const letter = (group) => (group === null ? "" : String.fromCharCode(65 + group));
/** @param {number} share */
const percent = (share) => `${(100 * share).toFixed(0)} %`;
/** @param {number} share */
const at = (share) => `${(100 * share).toFixed(3)}%`;
/** @param {Waits} waits */
const longest = (waits) => Math.max(waits.max_ms, waits.oldest_ms);
/** @param {Waits} waits */
const named = (waits) => (waits.kind === "all" ? "all" : `${waits.kind} ${waits.name || "(none)"}`);

/** @param {{runs: Run[]}} props */
export function Figures({ runs }) {
  const reports = runs.map((run) => run.report);
  /** @type {[string, string[], string?][]} */
  const rows = [
    ["completed", reports.map((each) => number(each.completed))],
    ["still waiting", reports.map((each) => number(each.pending))],
    ["no processor can run", reports.map((each) => number(each.unschedulable))],
    ["expired", reports.map((each) => number(each.expired))],
    ["per hour", reports.map((each) => number(Math.round(10 * each.per_hour) / 10))],
    ["slots used", reports.map((each) => percent(each.utilisation))],
    ["wait, mean", reports.map((each) => wait(each.waits[0], "mean_ms"))],
    ["wait, median", reports.map((each) => wait(each.waits[0], "p50_ms"))],
    ["wait, 95 %", reports.map((each) => wait(each.waits[0], "p95_ms"))],
    ["wait, longest", reports.map((each) => span(each.waits[0] && longest(each.waits[0])))],
  ];
  for (const kind of ["tenant", "key", "lane", "tier", "mode"]) {
    const names = (reports[0]?.waits || []).filter((each) => each.kind === kind).map((each) => each.name);
    if (names.length < 2 || names.length > GROUPS_MAX) continue;
    for (const name of names) {
      const found = reports.map((each) => each.waits.find((one) => one.kind === kind && one.name === name));
      rows.push([`mean, ${kind} ${name || "(none)"}`, found.map((each) => wait(each, "mean_ms"))]);
    }
  }
  rows.push(["overtakes within a mode", reports.map((each) => number(each.overtakes.times))]);
  rows.push(["most of one job", reports.map((each) => number(each.overtakes.most))]);
  rows.push(["attempts lost", reports.map((each) => number(each.lost))]);
  for (const [index, promise] of (reports[0]?.promises || []).entries()) {
    rows.push([`promise, ${promise.name}`, reports.map((each) => held(each.promises[index]?.held))]);
  }
  const shown = rows.filter(([name, values]) => !["no processor can run", "expired", "attempts lost"].includes(name) || values.some((value) => value !== "0"));
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Figures"><table class="figures">
      <thead><tr><th scope="col">Under</th>${runs.map((run) => html`<th scope="col"><bdi>${plain(run.policy, 60)}</bdi></th>`)}</tr></thead>
      <tbody>${shown.map(([name, values]) => html`<tr><th scope="row"><bdi>${plain(name, 80)}</bdi></th>${values.map((value) => html`<td class="number">${value}</td>`)}</tr>`)}</tbody></table></div>
    ${runs.map((run) => html`<${Details} run=${run} />`)}`;
}

/** @param {Waits | undefined} waits @param {"mean_ms" | "p50_ms" | "p95_ms"} field */
const wait = (waits, field) => (waits?.started ? span(waits[field]) : "–");
/** @param {boolean | null | undefined} is */
const held = (is) => (is === null || is === undefined ? "– not made" : is ? "● held" : "✕ broken");

/** @param {{run: Run}} props */
function Details({ run }) {
  return html`<details><summary>Waits and processors under ${plain(run.policy, 60)}</summary>
    <div class="scroll" tabindex="0" role="region" aria-label=${`Waits under ${plain(run.policy, 60)}`}><table>
      <thead><tr><th scope="col">Of</th><th scope="col">Jobs</th><th scope="col">Mean</th><th scope="col">Median</th><th scope="col">95 %</th><th scope="col">Longest</th><th scope="col">Still waiting</th></tr></thead>
      <tbody>${run.report.waits.map((each) => html`<tr><th scope="row"><bdi>${plain(named(each), 80)}</bdi></th><td class="number">${number(each.jobs)}</td>
        <td class="number">${wait(each, "mean_ms")}</td><td class="number">${wait(each, "p50_ms")}</td><td class="number">${wait(each, "p95_ms")}</td><td class="number">${span(longest(each))}</td><td class="number">${number(each.waiting)}</td></tr>`)}</tbody></table></div>
    <div class="scroll" tabindex="0" role="region" aria-label=${`Processors under ${plain(run.policy, 60)}`}><table>
      <thead><tr><th scope="col">Processor</th><th scope="col">Slots</th><th scope="col">Runs</th><th scope="col">Lost</th><th scope="col">Used</th></tr></thead>
      <tbody>${run.report.processors.map((each) => html`<tr><th scope="row"><bdi>${plain(each.processor, 80)}</bdi></th><td class="number">${number(each.slots)}</td><td class="number">${number(each.runs)}</td><td class="number">${number(each.lost)}</td><td class="number">${percent(each.used)}</td></tr>`)}</tbody></table></div></details>`;
}

/** Whose start each policy but the first moves. @param {{runs: Run[]}} props */
export function Moves({ runs }) {
  const first = plain(runs[0]?.policy, 60);
  const by = (/** @type {{job: string, by_ms: number} | null} */ most) => (most ? ` (most: ${plain(most.job, 60)}, by ${span(most.by_ms)})` : "");
  return html`${runs.map((run) => run.moved && html`<p><strong><bdi>${plain(run.policy, 60)}</bdi></strong>: ${counted(run.moved.sooner, "job starts", "jobs start")} sooner${by(run.moved.most_sooner)}, ${number(run.moved.later)} later${by(run.moved.most_later)}, ${number(run.moved.same)} at the same time${run.moved.in_one_only ? `, ${number(run.moved.in_one_only)} in one of the two only` : ""}, than under <bdi>${first}</bdi>.</p>`)}`;
}

/** @param {{found: Found}} props */
export function Pictures({ found }) {
  const { groups, runs } = found;
  const until = Math.max(1, found.until_ms);
  const colours = groups.map((group) => group.colour || OTHERS);
  return html`<h2>Pictures</h2><p class="dim">Colours and letters are of the ${plain(found.kind)}:</p>
    <ul class="legend">${groups.map((group, index) => html`<li><svg class="mark" viewBox="0 0 12 12" aria-hidden="true"><rect width="12" height="12" fill=${colours[index]} /></svg> <strong>${letter(index)}</strong> <bdi>${plain(group.name, 60)}</bdi></li>`)}</ul>
    <div class="columns pictures">${runs.map((run) => html`<section><h3><bdi>${plain(run.policy, 60)}</bdi></h3>
      <${Gantt} run=${run} until=${until} colours=${colours} /><${Waiting} run=${run} until=${until} colours=${colours} most=${most(runs)} />
      <${Lines} run=${run} until=${until} colours=${colours} /><${Costs} run=${run} until=${until} colours=${colours} /></section>`)}</div>`;
}

/** @param {{until: number}} props */
function Axis({ until }) {
  const stepMs = 1_000 * (STEPS_S.find((each) => until / (1_000 * each) <= TICKS_MAX) || Math.ceil(until / 1_000 / TICKS_MAX));
  const ticks = Array.from({ length: Math.floor(until / stepMs) + 1 }, (_, index) => index * stepMs);
  return html`<svg class="axis" aria-hidden="true">${ticks.map((each) => html`<line x1=${at(each / until)} x2=${at(each / until)} y1="0" y2="5" />
    <text x=${at(each / until)} y="17" text-anchor=${each === 0 ? "start" : each / until > 0.93 ? "end" : "middle"}>${each ? span(each) : "0"}</text>`)}</svg>`;
}

/** What can be read on it. @param {string} colour */
function ink(colour) {
  const [red, green, blue] = [1, 3, 5].map((place) => parseInt(colour.slice(place, place + 2), 16));
  return 299 * (red || 0) + 587 * (green || 0) + 114 * (blue || 0) > 140_000 ? "#17202c" : "#ffffff";
}

/** Who ran what when: a band a processor, a row a slot. @param {{run: Run, until: number, colours: string[]}} props */
function Gantt({ run, until, colours }) {
  const { rows, bars } = run.picture;
  const slots = rows.reduce((sum, row) => sum + row.slots, 0);
  const isNamed = rows.length <= NAMED_MAX;
  const head = isNamed ? 15 : 1;
  const high = Math.min(SLOT_MAX, Math.max(0.5, GANTT_HEIGHT / Math.max(1, slots)));
  /** @type {number[]} */
  const tops = [];
  let height = 0;
  for (const row of rows) {
    tops.push(height + head);
    height += head + row.slots * high;
  }
  const top = (/** @type {number} */ row) => tops[row] || 0;
  const left = [run.picture.bars_left_out && `${counted(run.picture.bars_left_out, "run")}, mostly short ones, are not drawn`, run.picture.rows_left_out && `${counted(run.picture.rows_left_out, "processor")} not either`].filter(Boolean);
  return html`<h4>Runs</h4><svg class="gantt" height=${Math.max(20, height)} role="img" aria-label=${`${counted(run.report.completed, "job")} completed on ${counted(rows.length, "processor")} within ${span(run.report.ended_at_ms)}, ${percent(run.report.utilisation)} of all slots used`}>
    ${rows.map((row, index) => html`<rect class="there" x=${at(row.join_ms / until)} width=${at((Math.min(row.leave_ms ?? until, until) - Math.min(row.join_ms, until)) / until)} y=${top(index)} height=${row.slots * high}><title>${plain(row.processor, 80)}</title></rect>
      ${isNamed && html`<text x="0" y=${top(index) - 4}>${plain(row.processor, 40)}${row.leave_ms !== null ? `, leaves at ${span(row.leave_ms)}` : ""}${row.drain_ms !== null ? `, drains from ${span(row.drain_ms)}` : ""}</text>`}`)}
    ${bars.map((bar) => {
      const y = top(bar.row) + bar.slot * high;
      const wide = (bar.to_ms - bar.from_ms) / until;
      const colour = colours[bar.group] || OTHERS;
      const middle = (bar.from_ms + bar.to_ms) / 2 / until;
      return html`<rect x=${at(bar.from_ms / until)} width=${at(Math.max(wide, 0.0008))} y=${y} height=${Math.max(0.5, high - (high > 4 ? 1 : 0))} fill=${colour} class=${wide > 0.006 && high > 4 ? "edged" : ""}><title>${plain(bar.job, 80)}: ${span(bar.from_ms)} to ${span(bar.to_ms)}${bar.lost ? ", lost with its processor" : ""}</title></rect>
        ${wide > 0.035 && high >= 10 && html`<text x=${at(middle)} y=${y + high / 2 + 3} text-anchor="middle" fill=${ink(colour)} class="letter">${bar.lost ? "✕ " : ""}${wide * 55 > bar.job.length ? plain(bar.job, 60) : letter(bar.group)}</text>`}`;
    })}</svg><${Axis} until=${until} />${left.length > 0 && html`<p class="dim">${left.join("; ")}.</p>`}`;
}

/** @param {Run[]} runs */
const most = (runs) => Math.max(1, ...runs.map((run) => Math.max(0, ...run.picture.waiting.times_ms.map((_, place) => total(run, place)))));
/** @param {Run} run @param {number} place */
const total = (run, place) => run.picture.waiting.counts.reduce((sum, each) => sum + (each[place] || 0), 0);

/** How many wait, stacked by group. @param {{run: Run, until: number, colours: string[], most: number}} props */
function Waiting({ run, until, colours, most: high }) {
  const { times_ms: times, counts } = run.picture.waiting;
  const y = (/** @type {number} */ value) => HEIGHT - 2 - (value / high) * (HEIGHT - 18);
  const ends = [...times.slice(1), Math.max(until, times[times.length - 1] || 0)];
  let below = times.map(() => 0);
  const bands = counts.map((band, group) => {
    const above = below.map((each, place) => each + (band[place] || 0));
    const path = steps(times, ends, above, until, y) + steps(times, ends, below, until, y, true);
    const thick = band.reduce((best, value, place) => (value > (band[best] || 0) ? place : best), 0);
    const mark = { x: (((times[thick] || 0) + (ends[thick] || 0)) / 2) / until, y: y(((above[thick] || 0) + (below[thick] || 0)) / 2) + 4, high: ((band[thick] || 0) / high) * HEIGHT };
    below = above;
    return { group, path, mark };
  });
  const own = Math.max(0, ...times.map((_, place) => total(run, place)));
  return html`<h4>Jobs that wait</h4><svg class="plot" height=${HEIGHT} role="img" aria-label=${`At most ${counted(own, "job")} wait at once`}>
    <svg width="100%" height=${HEIGHT} viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none">${bands.map((band) => html`<path d=${`${band.path}Z`} fill=${colours[band.group]} />`)}</svg>
    ${bands.map((band) => band.mark.high > 14 && html`<text class="letter" x=${at(Math.min(0.985, band.mark.x))} y=${band.mark.y} text-anchor="middle" fill=${ink(colours[band.group] || OTHERS)}>${letter(band.group)}</text>`)}
    <text x="0" y="11">${number(own)} at most</text></svg><${Axis} until=${until} />`;
}

/** A line of steps, or back along it. @param {number[]} times @param {number[]} ends @param {number[]} values @param {number} until @param {(value: number) => number} y @param {boolean} [back] */
function steps(times, ends, values, until, y, back = false) {
  const points = values.flatMap((value, place) => [[times[place] || 0, value], [ends[place] || 0, value]]);
  if (back) points.reverse();
  return points.map(([when, value], place) => `${place || back ? "L" : "M"}${((WIDTH * (when || 0)) / until).toFixed(1)} ${y(value || 0).toFixed(1)}`).join("");
}

/** Lines over time with a mark at the end of each. @param {{lines: {points: number[][], colour: string | null, text: string, mark: string, dot: boolean}[], until: number, label: string, fromZero?: boolean}} props */
function Plot({ lines, until, label, fromZero }) {
  const values = lines.flatMap((line) => line.points.map((point) => point[1] || 0));
  const low = fromZero ? 0 : Math.min(...values);
  const high = Math.max(low + 1, ...values);
  const y = (/** @type {number} */ value) => HEIGHT - 6 - ((value - low) / (high - low)) * (HEIGHT - 24);
  return html`<svg class="plot" height=${HEIGHT} role="img" aria-label=${label}>
    <svg width="100%" height=${HEIGHT} viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none">${lines.map((line) => html`<polyline points=${line.points.map(([when, value]) => `${((WIDTH * (when || 0)) / until).toFixed(1)},${y(value || 0).toFixed(1)}`).join(" ")} stroke=${line.colour || undefined}><title>${line.text}</title></polyline>`)}</svg>
    ${lines.map((line) => {
      const [when, value] = line.points[line.points.length - 1] || [0, 0];
      return html`${line.dot && html`<circle cx=${at((when || 0) / until)} cy=${y(value || 0)} r="2.5" fill=${line.colour || undefined} />`}${lines.length <= LETTERS_MAX && html`<text x=${at(Math.min(0.98, (when || 0) / until))} y=${y(value || 0) - 4} text-anchor="end">${line.mark}</text>`}`;
    })}
    <text x="0" y="11">${fromZero ? "" : `${number(Math.round(low))} to `}${number(Math.round(high))}</text></svg><${Axis} until=${until} />`;
}

/** The jobs for as long as they wait, as the policy compares them. @param {{run: Run, until: number, colours: string[]}} props */
function Lines({ run, until, colours }) {
  const found = run.picture.lines;
  if (!found || !found.lines.length) return null;
  const lines = found.lines.map((line) => ({ points: line.points, colour: colours[line.group] || OTHERS, text: plain(line.job, 80), mark: letter(line.group), dot: line.dispatched }));
  return html`<h4>Their ${found.by}</h4><${Plot} lines=${lines} until=${until} label=${`The ${found.by} of ${counted(lines.length, "job")} while they wait; a dot is a start`} />
    ${found.left_out > 0 && html`<p class="dim">${number(lines.length)} of ${counted(lines.length + found.left_out, "line")}.</p>`}`;
}

/** @param {{run: Run, until: number, colours: string[]}} props */
function Costs({ run, until, colours }) {
  const { costs, costs_left_out: more } = run.picture;
  if (!costs.length) return null;
  const lines = costs.map((cost) => ({
    points: cost.points.flatMap(([when, value], place) => [[when || 0, (cost.points[place - 1] || [0, 0])[1] || 0], [when || 0, value || 0]]).map(([when, value]) => [when || 0, (value || 0) / 1_000]),
    colour: cost.group === null ? null : colours[cost.group] || OTHERS,
    text: plain(cost.key, 80),
    mark: cost.group === null ? plain(cost.key, 20) : letter(cost.group),
    dot: false,
  }));
  return html`<h4>Cost consumed, in seconds</h4><${Plot} lines=${lines} until=${until} fromZero label=${`Accumulated cost of ${counted(lines.length, "key")}; most has ${plain(costs[0]?.key, 60) || "no key"}`} />
    ${more > 0 && html`<p class="dim">Of ${counted(more, "more key")} that consumed less there is no line.</p>`}`;
}
