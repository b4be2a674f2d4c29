#!/usr/bin/env bash
# Compares the layouts on a PostgreSQL that is already running: bench/layouts/run.sh [SECONDS] [CLOSED] [ROUNDS]. libpq's variables
# (PGHOST, PGPORT, PGUSER) say where. Two connections; rows per second, medians of the rounds, which all layouts take part in.
# `held`: while another session holds a snapshot open. What has CLOSED executions around is measured once.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
seconds=${1:-10} closed=${2:-1000000} rounds=${3:-3}
layouts=(one_table hot_table rotated)
export PGOPTIONS="-c enable_seqscan=off -c enable_bitmapscan=off -c jit=off"

# The script of that name for a layout: the tables of the rotated one are called as those of the hot table.
script() {
  local layout=$1
  if [[ $layout == rotated ]]; then layout=hot_table; fi
  echo "$here/${layout}_$2"
}

# rows LAYOUT SCRIPT BATCH [CLIENTS]: runs the script and gives rows per second.
rows() {
  local tps clients=${4:-2}
  tps=$(pgbench -n -M simple -c "$clients" -j "$clients" -T "$seconds" -D batch="$3" -f "$(script "$1" "$2").pgbench" layouts 2>/dev/null |
    sed -n 's/^tps = \([0-9.]*\).*/\1/p')
  awk -v t="$tps" -v b="$3" 'BEGIN { printf "%d", t * b }'
}

fresh() {
  psql -q -d postgres -c 'DROP DATABASE IF EXISTS layouts' -c 'CREATE DATABASE layouts' 2>/dev/null
  psql -q -d layouts -f "$here/$1.sql" >/dev/null
}

fill() { pgbench -n -c 1 -t "$2" -D batch=10000 -f "$(script "$1" submit).pgbench" layouts >/dev/null 2>&1; }

# note LAYOUT MEASURE ROWS: keeps a figure, and shows how far this is.
declare -A figures
measures=()
note() {
  figures[$1 $2]+="$3 "
  [[ " ${measures[*]/#/|} " == *"|$2 "* ]] || measures+=("$2")
  echo "$1 $2: $3" >&2
}

measure() {
  local layout=$1
  fresh "$layout"
  note "$layout" submit_32 "$(rows "$layout" submit 32)"
  note "$layout" submit_500 "$(rows "$layout" submit 500)"
  fill "$layout" 15
  note "$layout" drain_100 "$(rows "$layout" drain 100)"
  note "$layout" drain_500 "$(rows "$layout" drain 500)"

  fresh "$layout"
  fill "$layout" 25
  (
    echo 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM identities;'
    sleep $((seconds * 2 + 2))
  ) | psql -q -d layouts >/dev/null &
  local holder=$!
  sleep 1
  note "$layout" held_first "$(rows "$layout" drain 100)"
  note "$layout" held_later "$(rows "$layout" drain 100)"
  wait "$holder"
}

measure_crowded() {
  local layout=$1
  fresh "$layout"
  psql -q -d layouts -v closed="$closed" -f "$(script "$layout" closed).sql" -c 'VACUUM ANALYZE' -c 'CHECKPOINT'
  note "$layout" crowded_submit_500 "$(rows "$layout" submit 500)"
  fill "$layout" 20
  note "$layout" crowded_drain_100 "$(rows "$layout" drain 100)"
  if [[ $layout == rotated ]]; then
    local start=$EPOCHREALTIME
    psql -q -d layouts -f "$here/rotated_purge.sql"
    note "$layout" purge "$(awk -v s="$start" -v e="$EPOCHREALTIME" 'BEGIN { printf "%d", 500000 / (e - s) }')"
  else
    note "$layout" purge "$(rows "$layout" purge 1000 1)"
  fi
}

for ((round = 0; round < rounds; ++round)); do
  for layout in "${layouts[@]}"; do measure "$layout"; done
done
for layout in "${layouts[@]}"; do measure_crowded "$layout"; done

printf '%-20s' ''
printf '%12s' "${layouts[@]}"
echo
for measure in "${measures[@]}"; do
  printf '%-20s' "$measure"
  for layout in "${layouts[@]}"; do
    printf '%12d' "$(tr ' ' '\n' <<<"${figures[$layout $measure]}" | sed '/^$/d' | sort -n | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }')"
  done
  echo
done
