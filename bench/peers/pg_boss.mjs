// pg-boss: PostgreSQL; completed jobs stay in their table with their output. The key is the job's own id, a UUID that the caller
// may choose: it holds as long as the row is there, and is quicker than its singletonKey.
import { createHash } from 'node:crypto';
import pg from 'pg';
import { PgBoss } from 'pg-boss';
import { args, count_rows, measure, settle_postgres, version_of } from './load.mjs';

const settings = { connections: 20, batch: 2000, local_concurrency: 2, worker_connections: 10 };
const QUEUE = 'noop';
let pool, boss, worker;

function uuid_of(key) {
  const hex = createHash('md5').update(key).digest('hex');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

async function start(max, more) {
  const started = new PgBoss({ connectionString: args.postgres, max, supervise: false, schedule: false, ...more });
  started.on('error', (error) => console.error(error));
  await started.start();
  return started;
}

measure({
  peer: 'pg-boss',
  version: version_of('pg-boss'),
  settings,
  async open() {
    pool = new pg.Pool({ connectionString: args.postgres, max: 1 });
    boss = await start(settings.connections, {});
    // A queue that notifies costs a NOTIFY for each submission: only where the wake-up is what is measured.
    await boss.createQueue(QUEUE, { notify: args.measure === 'latency' });
    worker = await start(settings.worker_connections, { useListenNotify: true });
  },
  submit: (payload, key) => boss.send(QUEUE, payload, key ? { id: uuid_of(key) } : {}),
  bulk: (payloads) => boss.insert(QUEUE, payloads.map((data) => ({ data }))),
  async worker(mode, on_task) {
    const drain = {
      batchSize: settings.batch,
      localConcurrency: settings.local_concurrency,
      burstWhenBatchFull: true,
      pollingIntervalSeconds: 0.5,
      perJobResults: true,
    };
    const idle = { batchSize: 1, pollingIntervalSeconds: 0.5 };
    await worker.work(QUEUE, mode === 'drain' ? drain : idle, async (jobs) => {
      for (const job of jobs) on_task(job.data);
      if (mode !== 'drain') return { ok: jobs[0].data.i };
      return jobs.map((job) => ({ id: job.id, status: 'completed', output: { ok: job.data.i } }));
    });
    return () => worker.offWork(QUEUE, { wait: true });
  },
  is_done: async (id) =>
    (await pool.query(`select state from pgboss.job where id = $1`, [id])).rows[0].state === 'completed',
  total: () => count_rows(pool, `select count(*) from pgboss.job`),
  completed: () => count_rows(pool, `select count(*) from pgboss.job where state = 'completed'`),
  results: () => count_rows(pool, `select count(*) from pgboss.job where output is not null`),
  settle: () => settle_postgres(pool),
  async close() {
    await boss.stop({ graceful: false });
    await worker.stop({ graceful: false });
    await pool.end();
  },
});
