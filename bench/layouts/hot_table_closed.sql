INSERT INTO executions
SELECT lpad(to_hex(i), 32, '0')::uuid, 1, 0, 0, 3, 1000, 2, 60000, NULL, 1690000000000 + i, NULL, 'charge', sha256(i::text::bytea),
       hashtext(i::text), ('order-' || i)::bytea, sha256(i::text::bytea), '{"order":456,"amount":99.95}'
FROM (SELECT nextval('made') AS i FROM generate_series(1, :closed)) g;
INSERT INTO identities (hash, owner) SELECT identity_hash, id FROM executions;
INSERT INTO closed
SELECT id, 1, 2, false, 0, created_at, NULL, 1, 3, NULL, created_at, created_at, '\x00112233445566778899aabbccddeeff', NULL,
       'worker-1', NULL, '{"charge":"ch_1"}' FROM executions;
