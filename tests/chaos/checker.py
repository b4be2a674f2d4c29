"""Reads the records of a run and the final content of the store, and reports what a correct queue would not do.

    checker.py DIRECTORY    prints a sentence per violation; the exit code is 1 if there is any
"""

import pathlib
import sys
from collections import Counter, defaultdict

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

from history import Claimed, Finished, Seen, Submitted, violations  # noqa: E402
from record import read_effects, read_history, read_lines  # noqa: E402


def read_final(directory):
    return [Seen(**line) for line in read_lines(directory, "final.jsonl")]


def check(directory):
    """Sentences; none if all is well. The directory has events-*.jsonl, effects-*.jsonl, keys.jsonl and final.jsonl."""
    history, effects, final = read_history(directory), read_effects(directory), read_final(directory)
    keys = [line["key"] for line in read_lines(directory, "keys.jsonl")]
    found = list(violations(history, final))
    found += _keys(history, final, keys)
    found += _effects(history, effects, final)
    found += _leases(history)
    return found


def _keys(history, final, keys):
    """Every key of the clients was acknowledged and has exactly one execution."""
    if not keys:
        yield "no key was to be submitted: there is nothing to check"
    acknowledged = {event.key for event in history.of(Submitted) if event.acknowledged}
    executions = Counter(sight.key for sight in final)
    for key in keys:
        if key not in acknowledged:
            yield f"key {key} was never acknowledged"
        if executions[key] != 1:
            yield f"key {key} has {executions[key]} executions at the end"


def _effects(history, effects, final):
    """An effect happens before its report: every finished execution has one, under its effect key."""
    by_id = defaultdict(list)
    for effect in effects:
        by_id[effect["id"]].append(effect)
    for sight in final:
        if sight.status == "completed" and not by_id[sight.id]:
            yield f"{sight.id} is completed without an effect"
        if len({effect["effect_key"] for effect in by_id[sight.id]}) > 1:
            yield f"{sight.id} had different effect keys"
        if any(effect["nonce"] != sight.nonce for effect in by_id[sight.id]):
            yield f"{sight.id} was handed out with another input than it has"
    claimed = {(claim.id, claim.attempt) for claim in history.of(Claimed)}
    known = {sight.id for sight in final}
    for effect in effects:
        if (effect["id"], effect["attempt"]) not in claimed:
            yield f"{effect['id']} had an effect in attempt {effect['attempt']} that nobody claimed"
        if effect["id"] not in known:
            yield f"{effect['id']} had an effect and is not there"


def _leases(history):
    """No report uses a lease that was never handed out."""
    given = {claim.lease for claim in history.of(Claimed)}
    for finish in history.of(Finished):
        if finish.acknowledged and finish.accepted and finish.lease not in given:
            yield f"a finish of {finish.id} was accepted under a lease that nobody was given"


def summary(directory):
    history, final = read_history(directory), read_final(directory)
    submitted = history.of(Submitted)
    finishes = [finish for finish in history.of(Finished) if finish.acknowledged]
    return {
        "keys": len(list(read_lines(directory, "keys.jsonl"))),
        "executions": len(final),
        "submissions": len(submitted),
        "acknowledged": sum(event.acknowledged for event in submitted),
        "claims": len(history.of(Claimed)),
        "finishes": sum(finish.accepted for finish in finishes),
        "stale finishes refused": sum(not finish.accepted for finish in finishes),
        "effects": len(read_effects(directory)),
    }


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: checker.py DIRECTORY")
    found = check(sys.argv[1])
    for sentence in found:
        print(sentence)
    print(f"{len(found)} violations; " + ", ".join(f"{count} {what}" for what, count in summary(sys.argv[1]).items()))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
