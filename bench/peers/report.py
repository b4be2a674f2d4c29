"""From the raw lines of a run to medians, ratios, tables, and the first part of docs/performance.md with its chart."""

import dataclasses
import json
import shutil
import statistics
import textwrap

import catalogue
import chart

RESULTS = "bench/peers/results.jsonl"
PAGE = "docs/performance.md"
CHART = "docs/performance.svg"
SIDES = ("client_cpu_us", "server_cpu_us")


class BadResults(Exception):
    pass


def read(path):
    try:
        return [json.loads(line) for line in path.read_text().splitlines() if line]
    except (OSError, ValueError) as error:
        raise BadResults(f"{path}: {error}") from None


def shown(value):
    """Three digits that count: 1.23, 45.6, 7,890, 123,000."""
    if value >= 1000:
        step = 10 ** (len(str(int(value))) - 3)
        return f"{round(value / step) * step:,}"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def progress(line, round_number):
    if line.get("unsupported"):
        figure = "has no such thing"
    elif line["measure"] == "latency":
        figure = f"p50 {shown(line['p50'])} ms, p99 {shown(line['p99'])} ms"
    else:
        figure = f"{shown(line['value'])} {line['unit']}"
    return f"  round {round_number}  {line['measure']:<17} {line['peer']:<26} {figure}  (others used {line['noise']:.0%})"


@dataclasses.dataclass(frozen=True)
class Verdict:
    target: catalogue.Target
    best: str  # the peer compared with
    hapax_value: float
    best_value: float

    @property
    def ratio(self):
        """How many times better Hapax is."""
        better, worse = self.hapax_value, self.best_value
        if self.target.lower_is_better:
            better, worse = worse, better
        return better / max(worse, 1e-9)

    @property
    def met(self):
        return self.ratio >= self.target.factor


class Summary:
    """The medians of a run, by measure and peer."""

    def __init__(self, lines):
        if not lines or "facts" not in lines[0]:
            raise BadResults("the results do not start with the facts of the machine")
        self.facts = lines[0]["facts"]
        self.lines = lines[1:]
        self.peers = [peer for peer in catalogue.PEERS if any(line["peer"] == peer.name for line in self.lines)]
        self.measures = [measure for measure in catalogue.MEASURES if any(line["measure"] == measure.name for line in self.lines)]
        self.versions = {line["peer"]: line["version"] for line in self.lines}
        self.settings = {line["peer"]: line["settings"] for line in self.lines if line.get("settings")}

    @property
    def is_quick(self):
        return self.facts["quick"]

    def runs(self, measure, peer):
        wanted = [line for line in self.lines if line["measure"] == measure and line["peer"] == peer]
        return [line for line in wanted if not line.get("unsupported")]

    def median(self, measure, peer, field="value"):
        """None: it was not measured."""
        values = [line[field] for line in self.runs(measure, peer)]
        return statistics.median(values) if values else None

    def noise(self):
        return max((line["noise"] for line in self.lines), default=0)

    def _candidates(self, target):
        """Of the peers that a target compares with: their medians and names."""
        candidates = []
        for peer in self.peers:
            runs = self.runs(target.measure, peer.name)
            if peer.name != target.subject and runs and target.among(peer, runs[0]):
                candidates.append((self.median(target.measure, peer.name, target.field), peer.name))
        return candidates

    def verdicts(self):
        verdicts = []
        for target in catalogue.TARGETS:
            hapax = self.median(target.measure, target.subject, target.field)
            if hapax is None:
                continue
            if target.own:
                candidates = [(self.median(target.measure, target.subject, target.own), target.against)]
            elif target.limit:
                candidates = [(target.limit, target.against)]
            else:
                candidates = self._candidates(target)
            if not candidates:
                continue
            value, best = (min if target.lower_is_better else max)(candidates)
            verdicts.append(Verdict(target, best, hapax, value))
        return verdicts

    def all_met(self):
        return all(verdict.met for verdict in self.verdicts())

    def cell(self, measure, peer):
        value = self.median(measure.name, peer.name)
        if value is None:
            return "–"
        if measure.name == "latency":
            return f"{shown(value)} / {shown(self.median(measure.name, peer.name, 'p99'))}"
        if measure.name == "idle":
            return f"{shown(value)} / {self.median(measure.name, peer.name, 'cpu_percent'):.1f} %"
        drops = any(line.get("keeps_results") is False for line in self.runs(measure.name, peer.name))
        return shown(value) + (" ¹" if drops else "")

    def table(self):
        """Rows of cells, the heading first."""
        heading = [""]
        for measure in self.measures:
            unit = {"latency": "p50 / p99, ms", "idle": "MiB / of a core"}.get(measure.name, measure.unit)
            heading.append(f"{measure.title}, {unit}")
        return [heading] + [[peer.name, *(self.cell(measure, peer) for measure in self.measures)] for peer in self.peers]

    def cpu_table(self):
        """Processor time of one operation, in the process that asks and in the server. Empty if none was measured."""
        rows = [["", *(measure.title for measure in self.measures)]]
        for peer in self.peers:
            cells = [self._cpu_cell(measure, peer) for measure in self.measures]
            if any(cell != "–" for cell in cells):
                rows.append([peer.name, *cells])
        return rows if len(rows) > 1 else []

    def _cpu_cell(self, measure, peer):
        runs = [line for line in self.runs(measure.name, peer.name) if "client_cpu_us" in line]
        if not runs:
            return "–"
        sides = [statistics.median(line[side] for line in runs if side in line) for side in SIDES if any(side in line for line in runs)]
        return " + ".join(shown(value) for value in sides)

    def verdict_table(self):
        rows = [["", "Hapax", "compared with", "it has", "times better", "wanted", ""]]
        titles = {measure.name: measure.title for measure in catalogue.MEASURES}
        for verdict in self.verdicts():
            target = verdict.target
            title = titles[target.measure] + (f", {target.field.replace('_', ' ')}" if target.field != "value" else "")
            title += f": {target.subject}" if target.subject != "Hapax" else ""
            against = target.against if target.against == verdict.best else f"{target.against}: {verdict.best}"
            rows.append([title, shown(verdict.hapax_value), against, shown(verdict.best_value), f"{verdict.ratio:.2f}",
                         f"{target.factor:.3g}", "met" if verdict.met else "MISSED"])  # fmt: skip
        return rows

    def machine_line(self):
        facts = self.facts
        redis = f", Redis {facts['redis']}" if facts.get("redis") else ""
        return (
            f"{facts['processors']} processors ({facts['processor']}), {facts['memory_gib']} GiB, Linux {facts['kernel']}, "
            f"{facts['file_system']} with {facts['fdatasyncs_per_second']:,} fdatasync/s, PostgreSQL {facts['postgres']}{redis}, "
            f"Node {facts['node']}, {facts['date']}"
        )

    def text(self):
        parts = ["", self.machine_line(), "", aligned(self.table()), ""]
        if any("¹" in cell for row in self.table() for cell in row):
            parts += ["¹ throws results away", ""]
        if self.cpu_table():
            parts += ["processor time of one operation in µs: the process that asks + the server", aligned(self.cpu_table()), ""]
        if self.verdicts():
            parts += [aligned(self.verdict_table()), ""]
        parts.append(f"median of {self.facts['rounds']} rounds; others used at most {self.noise():.0%} of the processors during a run")
        if self.is_quick:
            parts.append("quick: the counts are too small for these figures to mean anything")
        return "\n".join(parts)

    def markdown(self):
        return _PAGE.format(
            machine=textwrap.fill(self._conditions(), 120, break_long_words=False, break_on_hyphens=False),
            rounds=self.facts["rounds"],
            table=_markdown_table(self.table()),
            cpu=_markdown_table(self.cpu_table()) if self.cpu_table() else "Not measured in this run.",
            verdicts=_markdown_table(self.verdict_table()),
            settings=_markdown_table([["", "version", "store", "settings"], *self._settings_rows()]),
        )

    def _conditions(self):
        return (
            f"Measured on {self.machine_line()}. PostgreSQL as `initdb` leaves it, with `fsync` and `synchronous_commit` on: "
            "what was acknowledged is on disk. "
            f"Other processes used at most {self.noise():.0%} of the processors during a run."
        )

    def _settings_rows(self):
        for peer in self.peers:
            settings = ", ".join(f"{name} {value}" for name, value in self.settings.get(peer.name, {}).items())
            yield [peer.name, self.versions[peer.name], peer.store, settings.replace("_", " ")]


def aligned(rows):
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def _markdown_table(rows):
    head, *body = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([head, "|---" * len(rows[0]) + "|", *body])


def publish(source, summary, root):
    """Keeps the raw lines in the repository, and writes the chart and the page up to END from them."""
    if source.resolve() != (root / RESULTS).resolve():
        shutil.copyfile(source, root / RESULTS)
    page = root / PAGE
    _, _, rest = page.read_text(encoding="utf-8").partition(END) if page.exists() else ("", "", "\n")
    page.write_text(summary.markdown() + END + rest, encoding="utf-8")
    (root / CHART).write_text(chart.draw(summary))


END = "<!-- end of what ./dev peers --docs writes -->"

_PAGE = """\
# Performance

Hapax next to other task queues: one machine, one PostgreSQL, each measure of all of them in one run, the same work for
each. Medians of {rounds} interleaved rounds. `./dev peers --docs` writes this part of the page from
[the raw lines](../bench/peers/results.jsonl); [below](#layouts-on-postgresql) are the measurements behind decisions.

![Hapax next to its peers](performance.svg)

{table}

¹ throws results away.

Processor time of one operation in µs, of the process that asks and, after the plus, of a Hapax server. That of the
database is in neither.

{cpu}

{verdicts}

{machine}

## What was measured

- **Keyed submit**: one task per call, 100 bytes of JSON, each with its own key, 32 calls in flight without a thread for
  each: promises of the peers, `submit_async` of Hapax.
- **Duplicate submit**: the same calls again.
- **Bulk submit**: 1,000 tasks per call, without keys, 2 calls in flight.
- **Drain**: 20,000 waiting tasks that do nothing and one worker, started by the process that submitted them, until the
  store shows every task as completed, with its result where the peer keeps results.
- **Submit to start of handler**: one task at a time to an idle worker, from the call of submit until its handler runs.
  The worker is in the submitter's process. There Hapax hands the task over in the commit of the submission, while the
  peers' workers learn of it from their store. *In two processes*, so does Hapax's worker.
- **Workflows**: three steps one after the other, each with a result, 32 workflows in flight without a thread for each,
  from start to result: promises of the peers, `start_async` and `when_closed` of Hapax.
- **Steps of a workflow of 1,000**: one workflow at a time, its steps one after the other, alternating with ten workflows
  of 100 steps. The ratio shows whether a step of a long workflow costs more.

Every run starts with an empty database. All but the drain have a warm-up. Each run reads the store afterwards: a task
that is missing, doubled or without its result ends the whole benchmark. The peers are not always asked for the same:
graphile-worker and BullMQ forget a key when its job is removed, and none of them notices the same key with another
input. Hapax does all of that within these figures.

*Hapax* is the C++ library with the engine in the process. *Hapax over HTTP* is the same library as a client of one
`hapax serve`. *From C* is a C program on the [C ABI](embedding.md), with the engine in its process. *On SQLite* is the
same on one file; those rows are compared with each other only.

## Who was measured

{settings}

## Running it again

```sh
./dev peers            # about an hour on two processors; raw lines in build/peers.jsonl
./dev peers --docs     # the same, and writes this part of the page
./dev peers --quick    # minutes; does everything work?
```

[bench/peers](../bench/peers/README.md) has the programs.

"""
