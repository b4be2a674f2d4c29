"""Does Hapax on PostgreSQL stay fast? Runs the same load on a fresh database, on one where a transaction held open
blocks vacuum, and on one with many closed executions.

`./dev held-open` builds and runs it. It takes seconds, or with --full 10 minutes and 5,000,000 executions.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys

import catalogue
import machine
import report
import servers

ROOT = catalogue.FOLDER.parents[1]
WANTED = 0.8
SEED_SECONDS = 5

# Copies the executions of a real load under new ids and hashes, as if the load had run much longer. Ids go back in
# time.
COPY_FUNCTIONS = """
create or replace function copied_id(id uuid, copy int) returns uuid language sql immutable as $$
  select (lpad(to_hex(('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint - 60000 * copy), 12, '0')
          || '7' || substr(m, 1, 3) || '8' || substr(m, 4, 15))::uuid from md5(id::text || copy) m $$;
create or replace function copied_hash(hash bytea, copy int) returns bytea language sql immutable as $$
  select sha256(hash || int4send(copy)) $$;
create or replace function copied_hash(hash uuid, copy int) returns uuid language sql immutable as $$
  select md5(hash::text || copy)::uuid $$;
"""
COPIED_TABLES = ("executions", "closed", "identities")
COPIED_COLUMNS = {
    "id": "copied_id(id, {copy})",
    "owner": "copied_id(owner, {copy})",
    "hash": "copied_hash(hash, {copy})",
    "identity_hash": "copied_hash(identity_hash, {copy})",
    "key_hash": "key_hash # hashint4({copy})",
    "key_shelf": "((nextval('keyed') >> 18) + 1)::int4",
}


class Failed(Exception):
    pass


class HeldTransaction:
    """A transaction with a snapshot, which blocks vacuum in its database."""

    def __init__(self, url):
        self._session = subprocess.Popen(
            ["psql", "-X", "-q", "-A", "-t", "-d", url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._session.stdin.write("begin isolation level repeatable read; select txid_current();\n")
        self._session.stdin.flush()
        if not self._session.stdout.readline().strip().isdigit():
            raise Failed("the transaction to be held open could not be begun")

    def release(self):
        """Raises if the transaction has ended."""
        answer, _ = self._session.communicate("select txid_current_if_assigned() is not null; commit;\n")
        if answer.strip() != "t":
            raise Failed("the transaction was not open any more at the end")


class Lab:
    def __init__(self, options):
        self._options = options
        shutil.rmtree(options.dir, ignore_errors=True)
        options.dir.mkdir(parents=True)
        self.postgres = servers.Postgres(options.dir)

    def close(self):
        self.postgres.stop()
        shutil.rmtree(self._options.dir, ignore_errors=True)

    def soak(self, url, seconds, first=0):
        command = [str(self._options.hapax_peer), "--soak", str(seconds), "--first", str(first), "--postgres", url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 600, check=False)
        if done.returncode != 0:
            raise Failed(f"{' '.join(command)}: {done.stderr}")
        return json.loads(done.stdout)

    def fill_with_closed(self, database, wanted):
        """A database with at least that many closed executions: those of a real load, and copies of them."""
        url = self.postgres.fresh_database(database)
        seed = self.soak(url, SEED_SECONDS)["count"]
        self.postgres.run(f"set search_path to hapax; {COPY_FUNCTIONS}", database)
        for table in COPIED_TABLES:
            columns = self.postgres.run(
                "select string_agg(column_name, ',' order by ordinal_position) from information_schema.columns "
                f"where table_schema = 'hapax' and table_name = '{table}'",
                database,
            )
            if not columns:
                raise Failed(f"there is no table hapax.{table}: the layout has changed, and held_open.py does not know it")
            self.postgres.run(f"create table hapax.originals as table hapax.{table}", database)
            for copy in range(1, wanted // seed + 1):
                copied = ", ".join(COPIED_COLUMNS.get(name, name).format(copy=copy) for name in columns.split(","))
                self.postgres.run(f"set search_path to hapax; insert into {table} select {copied} from originals", database)
            self.postgres.run("drop table hapax.originals", database)
        self.postgres.run("drop function hapax.copied_id, hapax.copied_hash(bytea, int), hapax.copied_hash(uuid, int)", database)
        self.postgres.run("vacuum analyze", database)
        self.postgres.run("checkpoint", database)
        closed = int(self.postgres.run("select count(*) from hapax.closed", database))
        if closed < wanted:
            raise Failed(f"{closed} closed executions where there should be {wanted}")
        return url, closed


def fresh_rate(lab, options):
    return statistics.median(lab.soak(lab.postgres.fresh_database("fresh"), options.window)["tasks_per_second"])


def held_rate(lab, options):
    url = lab.postgres.fresh_database("held")
    transaction = HeldTransaction(url)
    rates = lab.soak(url, options.held)["tasks_per_second"]
    transaction.release()
    return statistics.median(rates[-options.window :])


def measure(options):
    lab = Lab(options)
    try:
        facts = machine.facts(options.dir, lab.postgres, None)
        print("filling a database with closed executions", file=sys.stderr, flush=True)
        crowded_url, closed = lab.fill_with_closed("crowded", options.closed)
        first = 1_000_000_000  # beyond what the seed has
        rates = {"fresh": [], "held": [], "crowded": []}
        for round_number in range(1, options.rounds + 1):
            rates["fresh"].append(fresh_rate(lab, options))
            soaked = lab.soak(crowded_url, options.window, first)
            first += 2 * soaked["count"]
            rates["crowded"].append(statistics.median(soaked["tasks_per_second"]))
            rates["held"].append(held_rate(lab, options))
            print(f"  round {round_number}  {', '.join(f'{name} {report.shown(of[-1])}' for name, of in rates.items())} tasks/s",
                  file=sys.stderr, flush=True)  # fmt: skip
    finally:
        lab.close()
    return {"facts": facts, "window_seconds": options.window, "held_seconds": options.held, "closed": closed, "rates": rates}


def show(results):
    """Prints the table and returns whether every figure meets its target."""
    medians = {name: statistics.median(rates) for name, rates in results["rates"].items()}
    titles = {
        "fresh": "fresh",
        "held": f"a transaction held open for {results['held_seconds']} s",
        "crowded": f"{results['closed']:,} closed executions around",
    }
    rows = [["keyed submit and drain at once", "tasks/s", "of fresh", ""]]
    for name, title in titles.items():
        ratio = medians[name] / medians["fresh"]
        verdict = "" if name == "fresh" else "met" if ratio >= WANTED else f"MISSED: {WANTED} wanted"
        rows.append([title, report.shown(medians[name]), f"{ratio:.2f}", verdict])
    print(report.aligned(rows))
    return all(medians[name] >= WANTED * medians["fresh"] for name in titles)


def main():
    parser = argparse.ArgumentParser(prog="./dev held-open", description="Does Hapax on PostgreSQL stay as fast as it began?")
    parser.add_argument("--full", action="store_true", help="10 minutes held open, 5,000,000 closed, figures of 30 s")
    parser.add_argument("--held", type=int, help="seconds that the transaction is held open (20)")
    parser.add_argument("--closed", type=int, help="executions around (200000)")
    parser.add_argument("--window", type=int, help="seconds that a figure is taken over (5)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "build" / "held_open.json")
    parser.add_argument("--dir", type=pathlib.Path, default=ROOT / "build" / "held-open-data", help="of the server's data; emptied")
    parser.add_argument("--hapax-peer", type=pathlib.Path, default=ROOT / "build/bench/bench/peers/hapax_peer", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.held = options.held or (600 if options.full else 20)
    options.closed = options.closed or (5_000_000 if options.full else 200_000)
    options.window = options.window or (30 if options.full else 5)
    servers.end_in_order_on_sigterm()
    try:
        results = measure(options)
    except KeyboardInterrupt:
        print("held-open: interrupted", file=sys.stderr)
        return 130
    except (Failed, servers.ServerError) as failure:
        print(f"held-open: {failure}", file=sys.stderr)
        return 2
    options.results.parent.mkdir(parents=True, exist_ok=True)
    options.results.write_text(json.dumps(results) + "\n")
    met = show(results)
    return 0 if met or not options.full else 1


if __name__ == "__main__":
    sys.exit(main())
