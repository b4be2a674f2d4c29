// DBOS Transact: PostgreSQL, durable workflows. A task is a queued workflow of one step; the key is its workflow id.
import { DBOS, DBOSClient } from '@dbos-inc/dbos-sdk';
import pg from 'pg';
import { args, count_rows, measure, settle_postgres, version_of } from './load.mjs';

const settings = { connections: 20, worker_concurrency: 100, poll_ms: 50, idle_poll_ms: 10, worker_connections: 20 };
const QUEUE = 'noop_queue';
const TASK = 'noop';
const NAME = 'hapax-bench';
const log = { info() {}, debug() {}, warn: (text) => console.error('dbos:', text), error: (text) => console.error('dbos:', text) };
let pool, client;
let on_start = () => {};
let on_end = () => {};

DBOS.registerWorkflow(
  async (payload) => {
    on_start(payload);
    const result = await DBOS.runStep(async () => ({ ok: payload.i }), { name: 'only' });
    on_end(payload);
    return result;
  },
  { name: TASK },
);

const three_steps = DBOS.registerWorkflow(
  async (payload) => {
    let result;
    for (const name of ['first', 'second', 'third']) {
      result = await DBOS.runStep(async () => ({ ok: payload.i, name }), { name });
    }
    return result;
  },
  { name: 'three_steps' },
);

const many_steps = DBOS.registerWorkflow(
  async (steps) => {
    let number = 0;
    for (let step = 0; step < steps; ++step) {
      const before = number;
      number = await DBOS.runStep(async () => before + 1, { name: 'next' });
    }
    return number;
  },
  { name: 'many_steps' },
);

async function launch() {
  DBOS.setConfig({
    name: NAME,
    systemDatabaseUrl: args.postgres,
    systemDatabasePoolSize: settings.worker_connections,
    logger: log,
    applicationVersion: '1',
  });
  await DBOS.launch();
}

measure({
  peer: 'DBOS',
  version: version_of('@dbos-inc/dbos-sdk'),
  settings,
  async open() {
    pool = new pg.Pool({ connectionString: args.postgres, max: 2 });
    await launch(); // makes the schema
    await DBOS.shutdown();
    client = await DBOSClient.create({
      systemDatabaseUrl: args.postgres,
      systemDatabasePoolSize: settings.connections,
      logger: log,
      applicationName: NAME,
    });
  },
  async submit(payload, key) {
    const how = { queueName: QUEUE, workflowName: TASK, ...(key ? { workflowID: key } : {}) };
    return (await client.enqueue(how, payload)).workflowID;
  },
  bulk: (payloads) =>
    pool.query(
      `select dbos.enqueue_workflow($1, $2, array[payload], application_name => $3) from unnest($4::json[]) payload`,
      [TASK, QUEUE, NAME, payloads.map((payload) => JSON.stringify(payload))],
    ),
  async worker(mode, on_task) {
    if (mode === 'drain') on_end = on_task;
    else on_start = on_task;
    // A process reads the queue's row as it is launched: it has to be there before.
    await client.registerQueue(
      QUEUE,
      mode === 'drain'
        ? { minPollingIntervalMs: settings.poll_ms, workerConcurrency: settings.worker_concurrency }
        : { minPollingIntervalMs: settings.idle_poll_ms },
    );
    await launch();
    return () => DBOS.shutdown();
  },
  async run_workflow(payload, key) {
    const handle = await DBOS.startWorkflow(three_steps, { workflowID: key })(payload);
    return handle.getResult();
  },
  async run_steps(steps, key) {
    const handle = await DBOS.startWorkflow(many_steps, { workflowID: key })(steps);
    return handle.getResult();
  },
  is_done: async (id) => {
    const found = await pool.query('select status from dbos.workflow_status where workflow_uuid = $1', [id]);
    return found.rows[0].status === 'SUCCESS';
  },
  total: () => count_rows(pool, 'select count(*) from dbos.workflow_status'),
  completed: () => count_rows(pool, `select count(*) from dbos.workflow_status where status = 'SUCCESS'`),
  results: () => count_rows(pool, 'select count(*) from dbos.operation_outputs where output is not null'),
  settle: () => settle_postgres(pool),
  async close() {
    await client.destroy();
    await pool.end();
  },
});
