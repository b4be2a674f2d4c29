// BullMQ on Redis, or with --postgres on its PostgreSQL backend. Completed jobs stay with their return value. The key is the job's id.
import { createPostgresBackend, Queue, withBackend, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import pg from 'pg';
import { args, measure, settle_postgres, version_of } from './load.mjs';

const QUEUE = 'noop';
const KEEP = { removeOnComplete: false, removeOnFail: false };
const ALL = ['wait', 'active', 'completed', 'delayed', 'prioritized'];
const on_postgres = args.postgres !== '';
const kinds = on_postgres ? withBackend(createPostgresBackend) : { Queue, Worker };
const settings = on_postgres ? { connections: 20, concurrency: 20, worker_connections: 10 } : { concurrency: 300 };
let redis, pool, queue;

const connection = (max) =>
  on_postgres
    ? { connectionString: args.postgres, max, migrate: true }
    : { host: '127.0.0.1', port: args.redis, maxRetriesPerRequest: null };

async function settle_redis() {
  while (/aof_rewrite_in_progress:1/.test(await redis.info('persistence'))) {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

measure({
  peer: on_postgres ? 'BullMQ on PostgreSQL' : 'BullMQ on Redis',
  version: version_of('bullmq'),
  settings,
  async open() {
    if (on_postgres) {
      pool = new pg.Pool({ connectionString: args.postgres, max: 1 });
    } else {
      redis = new Redis(connection());
      await redis.flushall();
      settings.appendfsync = (await redis.config('GET', 'appendfsync'))[1];
    }
    queue = new kinds.Queue(QUEUE, { connection: connection(settings.connections), defaultJobOptions: KEEP });
    await queue.waitUntilReady();
  },
  submit: async (payload, key) => (await queue.add('noop', payload, key ? { jobId: key } : {})).id,
  bulk: (payloads) => queue.addBulk(payloads.map((data) => ({ name: 'noop', data }))),
  async worker(mode, on_task) {
    const handle = async (job) => {
      on_task(job.data);
      return { ok: job.data.i };
    };
    const concurrency = mode === 'drain' ? settings.concurrency : 4;
    const worker = new kinds.Worker(QUEUE, handle, { connection: connection(settings.worker_connections), concurrency });
    await worker.waitUntilReady();
    return () => worker.close(true);
  },
  is_done: async (id) => (await queue.getJobState(id)) === 'completed',
  total: () => queue.getJobCountByTypes(...ALL),
  completed: () => queue.getJobCountByTypes('completed'),
  async results() {
    let found = 0;
    for (let first = 0; first < args.count; first += 1000) {
      const jobs = await queue.getJobs(['completed'], first, first + 999);
      found += jobs.filter((job) => job.returnvalue?.ok === job.data.i).length;
    }
    return found;
  },
  settle: () => (on_postgres ? settle_postgres(pool) : settle_redis()),
  async close() {
    await queue.close();
    if (on_postgres) await pool.end();
    else redis.disconnect();
  },
});
