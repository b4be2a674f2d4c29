#!/usr/bin/env bash
# Compares the two layouts on a PostgreSQL that is already running: bench/layouts/run.sh [SECONDS] [CLOSED]. libpq's variables
# (PGHOST, PGPORT, PGUSER) say where. Two connections; rows per second. `held`: while another session holds a snapshot open.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
seconds=${1:-10} closed=${2:-1000000}
settings="-c enable_seqscan=off -c enable_bitmapscan=off -c jit=off"
export PGOPTIONS=$settings

# rows LAYOUT SCRIPT BATCH SECONDS: runs the script and gives rows per second.
rows() {
  local tps
  tps=$(pgbench -n -M simple -c 2 -j 2 -T "$4" -D batch="$3" -f "$here/$1_$2.pgbench" layouts 2>/dev/null | sed -n 's/^tps = \([0-9.]*\).*/\1/p')
  awk -v t="$tps" -v b="$3" 'BEGIN { printf "%d", t * b }'
}

fresh() {
  psql -q -d postgres -c 'DROP DATABASE IF EXISTS layouts' -c 'CREATE DATABASE layouts' 2>/dev/null
  psql -q -d layouts -f "$here/$1.sql"
}

fill() { psql -q -d layouts -c 'SET max_parallel_workers_per_gather = 0' >/dev/null; pgbench -n -c 1 -t "$2" -D batch=10000 -f "$here/$1_submit.pgbench" layouts >/dev/null 2>&1; }

measure() {
  local layout=$1
  fresh "$layout"
  echo "$layout submit, batches of 32: $(rows "$layout" submit 32 "$seconds")"
  echo "$layout submit, batches of 500: $(rows "$layout" submit 500 "$seconds")"
  fill "$layout" 40
  echo "$layout drain, batches of 100: $(rows "$layout" drain 100 "$seconds")"
  echo "$layout drain, batches of 500: $(rows "$layout" drain 500 "$seconds")"

  fresh "$layout"
  fill "$layout" 50
  (echo 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM identities;'; sleep $((seconds * 3 + 2))) | psql -q -d layouts >/dev/null &
  local holder=$!
  sleep 1
  echo "$layout drain, batches of 100, held, first: $(rows "$layout" drain 100 "$seconds")"
  echo "$layout drain, batches of 100, held, later: $(rows "$layout" drain 100 "$seconds")"
  wait "$holder"

  fresh "$layout"
  psql -q -d layouts -v closed="$closed" -f "$here/${layout}_closed.sql" -c 'VACUUM ANALYZE'
  echo "$layout submit, batches of 500, $closed closed: $(rows "$layout" submit 500 "$seconds")"
  fill "$layout" 20
  echo "$layout drain, batches of 100, $closed closed: $(rows "$layout" drain 100 "$seconds")"
}

measure one_table
measure hot_table
