-- Layout A: one table, every status a partial index of it.
CREATE TABLE identities (hash bytea PRIMARY KEY, owner uuid NOT NULL, expires_at int8);
CREATE TABLE executions (
  id uuid PRIMARY KEY,
  queue_no int4 NOT NULL, kind int2 NOT NULL, status int2 NOT NULL, parked bool NOT NULL, priority int4 NOT NULL,
  run_at int8 NOT NULL, due_at int8, attempt int4 NOT NULL, attempt_limit int4 NOT NULL, max_attempts int4 NOT NULL,
  retry_initial_ms int8 NOT NULL, retry_factor float8 NOT NULL, retry_max_ms int8 NOT NULL, timeout_ms int8,
  deadline_at int8, created_at int8 NOT NULL, started_at int8, finished_at int8, lease_secret bytea,
  lease_expires_at int8, worker bytea NOT NULL, concurrency_key bytea, type bytea NOT NULL, identity_hash bytea,
  key_hash int4, idempotency_key bytea, input_hash bytea NOT NULL, input bytea NOT NULL, result bytea
);
CREATE INDEX ready ON executions (queue_no, priority DESC, run_at, id) WHERE status = 0 AND NOT parked;
CREATE INDEX running ON executions (queue_no, concurrency_key) WHERE status = 1;
CREATE INDEX due ON executions (due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX closed ON executions (queue_no, kind, finished_at, id) WHERE finished_at IS NOT NULL;
CREATE INDEX keys ON executions (key_hash) WHERE key_hash IS NOT NULL;
CREATE SEQUENCE made;
