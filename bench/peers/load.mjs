// The measures, the same for every peer. A peer's script describes itself as one object and hands it to measure(), which runs
// the measure named on the command line, checks that the work was done, and prints one line of JSON.
//
// The object:
//   peer, version, settings       what is measured
//   open()                        connects, and makes the schema; the database is empty
//   submit(payload, key)          one task, durable when it resolves, to its id; with `key` a repetition changes nothing
//   bulk(payloads)                many tasks in one call
//   worker(mode, on_task)         starts a worker; on_task(payload) when a handler starts ('latency') or ends ('drain');
//                                 resolves to a function that stops it
//   is_done(id)                   whether the completion of that task is committed
//   total(), completed()          how many tasks the store has; how many of them it shows as completed
//   results()                     how many results it has; absent: it keeps none
//   settle()                      brings the store to rest
//   run_workflow(payload, key)    one workflow of three steps, from its start to its result; absent: it has none
//   run_steps(steps, key)         one workflow of so many steps, each of which adds one, to its result; absent: it has none
//   close()
//
// What a measure does not find in the object, the peer does not support, and the line says so.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';

const WARM_UP = 1000;
const LATENCY_WARM_UP = 20;

const flags = parseArgs({
  options: {
    measure: { type: 'string' },
    count: { type: 'string' },
    'in-flight': { type: 'string', default: '32' },
    batch: { type: 'string', default: '1000' },
    postgres: { type: 'string', default: '' },
    redis: { type: 'string', default: '0' },
  },
}).values;

export const args = {
  measure: flags.measure,
  count: Number(flags.count),
  in_flight: Number(flags['in-flight']),
  batch: Number(flags.batch),
  postgres: flags.postgres, // the URL of an empty database
  redis: Number(flags.redis), // the port
};

export function version_of(name) {
  const from = createRequire(import.meta.url).resolve(name);
  for (let folder = dirname(from); ; folder = dirname(folder)) {
    try {
      const found = JSON.parse(readFileSync(join(folder, 'package.json')));
      if (found.name === name) return found.version;
    } catch (error) {
      if (error.code !== 'ENOENT' || folder === dirname(folder)) throw error;
    }
  }
}

// The steps of settle() for whatever lives in PostgreSQL.
export async function settle_postgres(pool) {
  await pool.query('vacuum analyze');
  await pool.query('checkpoint');
}

export async function count_rows(pool, query) {
  return Number((await pool.query(query)).rows[0].count);
}

// About 100 bytes of JSON.
const payload_of = (i) => ({ i, user: `user-${String(i).padStart(7, '0')}`, action: 'resize', note: 'x'.repeat(40) });
const key_of = (i) => `order-2026-11-15-${String(i).padStart(9, '0')}`;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const range = (from, to) => Array.from({ length: to - from }, (_, i) => from + i);

export async function run_in_flight(from, to, in_flight, run) {
  let next = from;
  const lane = async () => {
    while (next < to) await run(next++);
  };
  await Promise.all(range(0, in_flight).map(lane));
}

async function rate(count, unit, run) {
  const start = performance.now();
  const used_before = process.cpuUsage();
  await run();
  const seconds = (performance.now() - start) / 1000;
  const used = process.cpuUsage(used_before);
  return { unit, count, seconds, value: count / seconds, client_cpu_us: (used.user + used.system) / count };
}

function expect(what, got, wanted) {
  if (got !== wanted) throw new Error(`${what}: ${got}, where it should be ${wanted}`);
}

// Numbers below zero are the warm-up's: they are other tasks than the measured ones.
const submit_keyed = (peer, from, to) =>
  run_in_flight(from, to, args.in_flight, (i) => peer.submit(payload_of(i), key_of(i)));

async function submit_key(peer) {
  await submit_keyed(peer, -WARM_UP, 0);
  await peer.settle();
  const figure = await rate(args.count, 'tasks/s', () => submit_keyed(peer, 0, args.count));
  expect('tasks in the store', await peer.total(), args.count + WARM_UP);
  return figure;
}

async function submit_duplicate(peer) {
  await submit_keyed(peer, 0, args.count);
  await peer.settle();
  await submit_keyed(peer, 0, Math.min(WARM_UP, args.count));
  const figure = await rate(args.count, 'tasks/s', () => submit_keyed(peer, 0, args.count));
  expect('tasks in the store', await peer.total(), args.count);
  return figure;
}

async function submit_bulk(peer, from, to, in_flight) {
  await run_in_flight(0, (to - from) / args.batch, in_flight, (call) => {
    const first = from + call * args.batch;
    return peer.bulk(range(first, first + args.batch).map(payload_of));
  });
}

async function bulk(peer) {
  await submit_bulk(peer, -5 * args.batch, 0, 2);
  await peer.settle();
  const figure = await rate(args.count, 'tasks/s', () => submit_bulk(peer, 0, args.count, 2));
  expect('tasks in the store', await peer.total(), args.count + 5 * args.batch);
  return figure;
}

async function drain(peer) {
  await submit_bulk(peer, 0, args.count, 2);
  await peer.settle();
  expect('waiting tasks', await peer.total(), args.count);
  let handled = 0;
  let all_handled;
  const last = new Promise((resolve) => (all_handled = resolve));
  const on_task = () => {
    if (++handled === args.count) all_handled();
  };
  let stop;
  const figure = await rate(args.count, 'tasks/s', async () => {
    stop = await peer.worker('drain', on_task);
    await last;
    // Asked gently: a count reads the whole table, and the worker still has completions to commit.
    for (;;) {
      const start = performance.now();
      if ((await peer.completed()) >= args.count) break;
      await sleep(Math.max(5, 4 * (performance.now() - start)));
    }
  });
  await stop();
  expect('runs of the handler', handled, args.count);
  if (peer.results) expect('results in the store', await peer.results(), args.count);
  return { ...figure, keeps_results: Boolean(peer.results) };
}

async function latency(peer) {
  await peer.settle();
  const starts = new Map();
  const stop = await peer.worker('latency', (payload) => starts.get(payload.i)(performance.now()));
  await sleep(1500);
  const milliseconds = [];
  for (let i = 0; i < args.count + LATENCY_WARM_UP; ++i) {
    await sleep(20 + 80 * Math.random());
    const started = new Promise((resolve) => starts.set(i, resolve));
    const submitted = performance.now();
    const id = await peer.submit(payload_of(i));
    milliseconds.push((await started) - submitted);
    while (!(await peer.is_done(id))) await sleep(1);
  }
  await stop();
  expect('completed tasks', await peer.completed(), args.count + LATENCY_WARM_UP);
  const sorted = milliseconds.slice(LATENCY_WARM_UP).sort((a, b) => a - b);
  const quantile = (q) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))];
  return { unit: 'ms', count: args.count, value: quantile(0.5), p50: quantile(0.5), p99: quantile(0.99) };
}

async function workflow(peer) {
  const stop = await peer.worker('workflow', () => {});
  const run = (from, to) => run_in_flight(from, to, args.in_flight, (i) => peer.run_workflow(payload_of(i), key_of(i)));
  await run(-200, 0);
  await peer.settle();
  const figure = await rate(args.count, 'workflows/s', () => run(0, args.count));
  await stop();
  expect('completed workflows', await peer.completed(), args.count + 200);
  return figure;
}

async function long_workflow(peer) {
  const stop = await peer.worker('workflow', () => {});
  let started = 0;
  const steps_per_second = async (workflows, steps) => {
    const run = async () => {
      for (let i = 0; i < workflows; ++i) expect('the result of a workflow', await peer.run_steps(steps, key_of(started++)), steps);
    };
    return (await rate(workflows * steps, 'steps/s', run)).value;
  };
  await steps_per_second(10, args.count / 10);
  await peer.settle();
  const of_long = [];
  const of_short = [];
  for (let round = 0; round < 5; ++round) {
    of_short.push(await steps_per_second(10, args.count / 10));
    of_long.push(await steps_per_second(1, args.count));
  }
  await stop();
  expect('completed workflows', await peer.completed(), started);
  const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
  return { unit: 'steps/s', count: args.count, value: median(of_long), of_short: median(of_short) };
}

const MEASURES = {
  submit_key: { run: submit_key, needs: ['submit'] },
  submit_duplicate: { run: submit_duplicate, needs: ['submit'] },
  bulk: { run: bulk, needs: ['bulk'] },
  drain: { run: drain, needs: ['bulk', 'worker'] },
  latency: { run: latency, needs: ['submit', 'worker'] },
  workflow: { run: workflow, needs: ['run_workflow'] },
  long_workflow: { run: long_workflow, needs: ['run_steps'] },
};

export async function measure(peer) {
  const chosen = MEASURES[args.measure];
  if (!chosen) throw new Error(`unknown measure '${args.measure}'; there are ${Object.keys(MEASURES).join(', ')}`);
  if (!(args.count > 0)) throw new Error('--count has to be a positive number');
  const line = { peer: peer.peer, version: peer.version, measure: args.measure };
  if (chosen.needs.every((verb) => peer[verb])) {
    await peer.open();
    Object.assign(line, await chosen.run(peer), { settings: peer.settings });
    await peer.close();
  } else {
    line.unsupported = true;
  }
  console.log(JSON.stringify(line));
  process.exit(0); // some peers keep unreachable timers or connections
}
