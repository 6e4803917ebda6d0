#!/usr/bin/env node
// A whole processor in JavaScript, without dependencies: node 18 and the HTTP API, no broker and no database.
//   HASCHEDULER_URL=http://127.0.0.1:8080 HASCHEDULER_TOKEN=hsk_… node worker.mjs
import { setTimeout as sleep } from "node:timers/promises";

const handlers = { // the return value is the job's result; an error is retried, unless error.permanent
  async nap({ payload, failures }, signal, report) {
    const { seconds = 1, failing = 0 } = payload ?? {};
    if (failures < failing) throw new Error(`failure ${failures + 1} of ${failing}`);
    for (let slept = 0; slept < seconds; slept += 0.1) {
      report((100 * slept) / seconds, `${slept.toFixed(1)} of ${seconds} s`);
      await sleep(100, null, { signal });
    }
    return { slept: seconds };
  },
};
const { HASCHEDULER_URL: url = "http://127.0.0.1:8080", HASCHEDULER_TOKEN: token, NAME: name = "napper" } = process.env;
const slots = Number(process.env.SLOTS ?? 4);
const headers = { "Content-Type": "application/json", ...(token && { Authorization: `Bearer ${token}` }) };
const running = new Map(); // the attempts it holds: their ids, progress, and how to stop them
const leaving = new AbortController();
let gone = false;

async function once(path, body, options) {
  const sent = { method: "POST", headers, body: JSON.stringify(body), ...options };
  const answer = await fetch(`${url}/v1/work/${path}`, sent);
  if (answer.ok) return answer.status === 204 ? null : answer.json();
  throw Object.assign(new Error(`${path}: ${await answer.text()}`), { refused: answer.status < 500 && answer.status });
}

async function ask(path, body, options) { // retry until there is an answer: every request may be repeated
  for (let pause = 100; ; await sleep(pause), pause = Math.min(2 * pause, 2000)) {
    try { return await once(path, body, options); } catch (error) {
      if (error.refused || options?.signal?.aborted) throw error;
    }
  }
}

async function run({ job, attempt }) {
  const me = { job, attempt, stop: new AbortController() }, { signal } = me.stop, key = `${job}/${attempt}`;
  running.set(key, me);
  let limit, end;
  try {
    const started = await ask("start", { processor, job, attempt });
    if (started.timeout !== null) limit = setTimeout(() => me.stop.abort("timed out"), 1000 * started.timeout);
    try {
      const report = (percent, text) => Object.assign(me, { percent, text });
      end = { outcome: "succeeded", result: (await handlers[started.definition](started, signal, report)) ?? null };
    } catch (error) {
      end = { outcome: "failed", error: String(signal.aborted ? signal.reason : error), retryable: !error.permanent };
      if (signal.reason === "cancelled") end = { outcome: "cancelled" };
    }
    const finish = (end) => ask("finish", { processor, job, attempt, ...end });
    if (signal.reason !== "revoked") await finish(end).catch((error) => { // 422: a result that can't be stored
      if (error.refused !== 422) throw error;
      return finish({ outcome: "failed", error: String(error), retryable: false });
    });
  } catch (error) {
    if (error.refused !== 409) throw error; // 409: the attempt is no longer ours
  } finally { clearTimeout(limit); running.delete(key); }
}

async function beat() {
  for (let answered = Date.now(); ; await sleep(1000 * terms.heartbeat_interval)) {
    const reported = [...running.values()].map(({ stop, ...attempt }) => attempt), draining = leaving.signal.aborted;
    const began = Date.now(), left = answered + 1000 * terms.heartbeat_deadline - began;
    try {
      const signal = AbortSignal.timeout(Math.max(1, Math.min(left, 2000 * terms.heartbeat_interval)));
      const answer = await once("heartbeat", { processor, running: reported, draining }, { signal });
      answered = began;
      for (const reason of ["cancelled", "revoked"])
        for (const { job, attempt } of answer[reason]) running.get(`${job}/${attempt}`)?.stop.abort(reason);
    } catch (error) { // without an answer others get our jobs, which must not run twice: exit, and let a supervisor restart us
      if (gone) return;
      if (error.refused === 404 && !running.size) { answered = began; continue; } // the next fetch gets 404 too
      const isOver = Date.now() - answered >= 1000 * terms.heartbeat_deadline;
      if (isOver || (error.refused && error.refused !== 404)) process.exit(1);
    }
  }
}

let terms, processor;
async function register() {
  terms = await ask("processors", { name, definitions: Object.keys(handlers), slots });
  processor = terms.processor;
}

await register();
process.on("SIGTERM", () => leaving.abort());
beat();
while (!leaving.signal.aborted) {
  while (running.size >= slots) await sleep(20);
  const held = [...running.values()].map(({ job, attempt }) => ({ job, attempt })), limit = slots - held.length;
  try {
    const { signal } = leaving;
    (await ask("fetch", { processor, wait: "20s", limit, running: held }, { signal })).attempts.forEach(run);
  } catch (error) {
    if (leaving.signal.aborted) break;
    if (error.refused !== 404) throw error;
    while (running.size) await sleep(20); // they end, or its heartbeats end this process
    await register(); // may happen whenever it holds nothing: jobs wait for it in another shard
  }
}
while (running.size) await sleep(20);
gone = true; // a heartbeat may be refused from here on
await ask(`processors/${processor}`, undefined, { method: "DELETE" });
process.exit(0);
