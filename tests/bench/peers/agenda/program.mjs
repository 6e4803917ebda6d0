/**
 * Agenda 6 with its MongoDB backend: `node program.mjs work | submit COUNT | schedule COUNT`.
 *
 * Settings, by its README, its types and what they do in its JobProcessor:
 *
 * - `processEvery` 200 ms (default 5 s): it polls, and a job that becomes due in between waits for the next poll.
 * - Four definitions for the same handler: each is locked one job at a time, one after the other, so several lock side
 *   by side. One name a schedule, as `every` would have it, is one query a schedule and poll.
 * - `lockLimit` 50 a definition (default: none): without it a poll locks all that is due before it runs any, polls
 *   overlap, and locks expire before their jobs have had their turn.
 * - `concurrency` and `maxConcurrency` 200 (default 5 and 20): more than are ever locked.
 * - `lockLifetime` 10 s (default 10 min): what a dead instance holds is free sooner.
 * - No change stream channel: it looks for work at every write of every job, its own included; that was slower.
 * - Two worker processes, as many as cores.
 * - `repeatEvery('1 second')` counts from the last run. As a cron, all due at the full second, more was not fired.
 * - Schedules are jobs that are `unique` by their data; its index by name is there by default.
 */

import { openSync, writeSync } from 'node:fs';
import { Agenda, Job } from 'agenda';
import { MongoBackend } from '@agendajs/mongo-backend';
import { MongoClient } from 'mongodb';

const DEFINITIONS = 4;
const SUBMITS_AT_ONCE = 64;
const AHEAD_MS = 5_000;

const file = openSync(process.env.EFFECTS, 'a');

function leave(job, nominal_ms = null) {
  const line = { effect: 'peer', job, attempt: 1, nominal_ms, at_ms: Date.now() };
  writeSync(file, `${JSON.stringify(line)}\n`);
}

// A job that runs has its next time set already; the nominal time of this run is what it was before.
const { run } = Job.prototype;
Job.prototype.run = function remembering() {
  this.nominal_ms = this.attrs.nextRunAt?.getTime();
  return run.call(this);
};

function handle(job) {
  const { id, schedule } = job.attrs.data;
  if (schedule === undefined) leave(`job:${id}`);
  else leave(`fire:${schedule}:${job.nominal_ms}`, job.nominal_ms);
}

async function each(count, work) {
  let next = 0;
  const worker = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: SUBMITS_AT_ONCE }, worker));
}

const client = await MongoClient.connect(process.env.MONGODB_URI);
const db = client.db('peer');
const agenda = new Agenda({
  backend: new MongoBackend({ mongo: db }),
  processEvery: 200,
  defaultConcurrency: 200,
  maxConcurrency: 200,
  defaultLockLimit: 50,
  defaultLockLifetime: 10_000,
});
for (let number = 0; number < DEFINITIONS; number += 1) agenda.define(`noop-${number}`, handle);
await agenda.ready;

const [role, count] = [process.argv[2], Number(process.argv[3])];
if (role === 'work') {
  await agenda.start();
  leave(`ready:${process.pid}`);
} else if (role === 'submit') {
  leave('begin:');
  await each(count, (id) => agenda.now(`noop-${id % DEFINITIONS}`, { id }));
  await client.close();
} else {
  const begin = Date.now() + AHEAD_MS;
  await each(count, async (number) => {
    const schedule = `s-${number}`;
    const job = agenda.create(`noop-${number % DEFINITIONS}`, { schedule });
    job.unique({ 'data.schedule': schedule });
    job.repeatEvery('1 second', { skipImmediate: true });
    job.schedule(new Date(begin + Math.floor((1_000 * number) / count)));
    await job.save();
  });
  leave('scheduled:');
  await client.close();
}
