-- Layout C: as B, but what is kept lies in parts by its id, which is by its time: a part goes as a whole when its time is over.
\ir hot_table.sql
DROP TABLE executions, closed;
CREATE TABLE executions (
  id uuid PRIMARY KEY,
  queue_no int4 NOT NULL, kind int2 NOT NULL, priority int4 NOT NULL, max_attempts int4 NOT NULL,
  retry_initial_ms int8 NOT NULL, retry_factor float8 NOT NULL, retry_max_ms int8 NOT NULL, timeout_ms int8,
  created_at int8 NOT NULL, concurrency_key bytea, type bytea NOT NULL, identity_hash bytea,
  key_hash int4, idempotency_key bytea, input_hash bytea NOT NULL, input bytea NOT NULL
) PARTITION BY RANGE (id);
CREATE INDEX keys ON executions (key_hash) WHERE key_hash IS NOT NULL;
CREATE TABLE closed (LIKE open INCLUDING DEFAULTS, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE INDEX closed_ends ON closed (queue_no, finished_at, id);
-- 500,000 in each: as many days of retention.
SELECT format('CREATE TABLE %1$s_%2$s PARTITION OF %1$s FOR VALUES FROM (%3$L) TO (%4$L)', whole, part,
              lpad(to_hex(part * 500000), 32, '0')::uuid, lpad(to_hex((part + 1) * 500000), 32, '0')::uuid)
FROM unnest(ARRAY['executions', 'closed']) whole, generate_series(0, 29) part \gexec
