-- Layout C: as B, but what is kept lies in parts by its id, which is by its time: a part goes as a whole when its time
-- is over.
\ir hot_table.sql
ALTER TABLE executions RENAME TO whole;
DROP INDEX keys;
DROP TABLE closed;
CREATE TABLE executions (LIKE whole, PRIMARY KEY (id)) PARTITION BY RANGE (id);
DROP TABLE whole;
CREATE INDEX keys ON executions (key_hash) WHERE key_hash IS NOT NULL;
CREATE TABLE closed (LIKE open INCLUDING DEFAULTS, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE INDEX closed_ends ON closed (queue_no, finished_at, id);
-- 500,000 in each: say, a day's.
SELECT format('CREATE TABLE %1$s_%2$s PARTITION OF %1$s FOR VALUES FROM (%3$L) TO (%4$L)', whole, part,
              lpad(to_hex(part * 500000), 32, '0')::uuid, lpad(to_hex((part + 1) * 500000), 32, '0')::uuid)
FROM unnest(ARRAY['executions', 'closed']) whole, generate_series(0, 29) part \gexec
