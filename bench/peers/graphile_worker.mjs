// graphile-worker: PostgreSQL, woken by LISTEN/NOTIFY. A completed job is deleted; no result is kept, and its key is free again.
import { Logger, makeWorkerUtils, run } from 'graphile-worker';
import pg from 'pg';
import { args, count_rows, measure, settle_postgres, version_of } from './load.mjs';

const JOBS = 'graphile_worker._private_jobs';
const settings = { connections: 20, concurrency: 100, local_queue: 1000, worker_connections: 10, key_mode: 'unsafe_dedupe' };
const logger = new Logger(() => () => {});
let pool, queue;
let submitted = 0;

measure({
  peer: 'graphile-worker',
  version: version_of('graphile-worker'),
  settings,
  async open() {
    pool = new pg.Pool({ connectionString: args.postgres, max: settings.connections });
    // It warns about a pool without an error listener; errors of a query reach their caller anyway.
    pool.on('error', () => {});
    pool.on('connect', (client) => client.on('error', () => {}));
    queue = await makeWorkerUtils({ pgPool: pool, logger });
    await queue.migrate();
  },
  async submit(payload, key) {
    const job = await queue.addJob('noop', payload, key ? { jobKey: key, jobKeyMode: settings.key_mode } : {});
    ++submitted;
    return job.id;
  },
  async bulk(payloads) {
    await queue.addJobs(payloads.map((payload) => ({ identifier: 'noop', payload })));
    submitted += payloads.length;
  },
  async worker(mode, on_task) {
    const drain = {
      concurrentJobs: settings.concurrency,
      maxPoolSize: settings.worker_connections,
      localQueue: { size: settings.local_queue },
      completeJobBatchDelay: 0,
    };
    const idle = { concurrentJobs: 4, maxPoolSize: 5 };
    const preset = { worker: { connectionString: args.postgres, logger, ...(mode === 'drain' ? drain : idle) } };
    const runner = await run({ preset, noHandleSignals: true, taskList: { noop: (payload) => on_task(payload) } });
    return () => runner.stop();
  },
  is_done: async (id) => (await pool.query(`select 1 from ${JOBS} where id = $1`, [id])).rowCount === 0,
  total: () => count_rows(pool, `select count(*) from ${JOBS}`),
  completed: async () => submitted - (await count_rows(pool, `select count(*) from ${JOBS}`)),
  settle: () => settle_postgres(pool),
  async close() {
    await queue.release();
    await pool.end();
  },
});
