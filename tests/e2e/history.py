"""What clients saw of a server, and whether a correct queue could have behaved like that.

Every event has the instants (of one counter) at which it was sent and answered: two events overlap unless one was
answered before the other was sent. A request that was never answered may or may not have happened.
"""

import itertools
import threading
from collections import defaultdict
from dataclasses import dataclass
from typing import Optional


@dataclass
class Event:
    sent: int
    answered: Optional[int] = None  # None: the answer was lost

    @property
    def acknowledged(self):
        return self.answered is not None

    def before(self, other):
        return self.acknowledged and self.answered < other.sent


@dataclass
class Submitted(Event):
    key: Optional[str] = None
    nonce: str = ""  # in the input: the same for all submissions of one key, sent once otherwise
    id: Optional[str] = None
    created: bool = False


@dataclass
class Claimed(Event):
    id: str = ""
    attempt: int = 0
    lease: str = ""


@dataclass
class Finished(Event):
    id: str = ""
    attempt: int = 0
    lease: str = ""
    result: object = None
    accepted: bool = False  # False: the lease was lost


@dataclass
class Seen(Event):
    """One execution as a read showed it; status None if it was not there."""

    id: str = ""
    status: Optional[str] = None
    key: Optional[str] = None
    nonce: str = ""
    attempt: int = 0
    result: object = None


class History:
    """Events in no particular order; may be shared by threads."""

    def __init__(self):
        self._instants = itertools.count(1)
        self._lock = threading.Lock()
        self.events = []

    def instant(self):
        return next(self._instants)

    def add(self, event):
        with self._lock:
            self.events.append(event)
        return event

    def of(self, kind):
        with self._lock:
            return [event for event in self.events if isinstance(event, kind)]


def violations(history, final=None):
    """Sentences about what a correct queue would not do. `final` is everything stored at the end, after all work was
    done: a list of Seen."""
    found = []
    found += _submissions(history)
    found += _handouts(history)
    found += _finishes(history)
    if final is not None:
        found += _end(history, final)
    return found


def _submissions(history):
    ids_by_key, creations, ids_by_nonce = defaultdict(set), defaultdict(int), defaultdict(set)
    for event in history.of(Submitted):
        if not event.acknowledged:
            continue
        ids_by_nonce[event.nonce].add(event.id)
        if event.key is None:
            if not event.created:
                yield f"the unkeyed submission {event.nonce} was taken for a duplicate of {event.id}"
        else:
            ids_by_key[event.key].add(event.id)
            creations[event.key] += event.created
    for key, ids in ids_by_key.items():
        if len(ids) > 1:
            yield f"key {key} was answered with {len(ids)} executions: {sorted(ids)}"
        if creations[key] > 1:
            yield f"key {key} was created {creations[key]} times"
    nonces_by_id = defaultdict(set)
    for nonce, ids in ids_by_nonce.items():
        for id in ids:
            nonces_by_id[id].add(nonce)
    for id, nonces in nonces_by_id.items():
        if len(nonces) > 1:
            yield f"different submissions were answered with one execution {id}: {sorted(nonces)}"


def _handouts(history):
    by_attempt, by_id = defaultdict(set), defaultdict(list)
    for claim in history.of(Claimed):
        by_attempt[claim.id, claim.attempt].add(claim.lease)
        by_id[claim.id].append(claim)
    for (id, attempt), leases in by_attempt.items():
        if len(leases) > 1:
            yield f"attempt {attempt} of {id} was handed out {len(leases)} times"
    for id, claims in by_id.items():
        for earlier, later in itertools.permutations(claims, 2):
            if earlier.before(later) and earlier.attempt >= later.attempt and earlier.lease != later.lease:
                yield f"attempt {later.attempt} of {id} was handed out after attempt {earlier.attempt}"


def _finishes(history):
    claims, seen = defaultdict(list), defaultdict(list)
    for claim in history.of(Claimed):
        claims[claim.id].append(claim)
    for sight in history.of(Seen):
        seen[sight.id].append(sight)
    accepted = defaultdict(list)
    for finish in history.of(Finished):
        if finish.acknowledged and finish.accepted:
            accepted[finish.id].append(finish)
    for id, finishes in accepted.items():
        if len({finish.lease for finish in finishes}) > 1:
            yield f"{id} was finished under {len({finish.lease for finish in finishes})} leases"
        for finish in finishes:
            for claim in claims[id]:
                if claim.attempt > finish.attempt and claim.before(finish):
                    yield f"a stale finish of {id} was accepted: attempt {finish.attempt}, while {claim.attempt} ran"
                if finish.before(claim):
                    yield f"{id} was handed out again after it was finished"
            for sight in seen[id]:
                if finish.before(sight):
                    yield from _differs(finish, sight)


def _differs(finish, sight):
    if sight.status is None:
        yield f"{sight.id} was finished and is lost"
    elif sight.status != "completed":
        yield f"{sight.id} was finished and is {sight.status} again"
    elif sight.result != finish.result:
        yield f"{sight.id} was finished with {finish.result!r} and has {sight.result!r}"


def _end(history, final):
    by_id = {sight.id: sight for sight in final}
    if len(by_id) != len(final):
        yield "the listing shows an execution twice"
    by_key, by_nonce = defaultdict(set), defaultdict(set)
    for sight in final:
        by_nonce[sight.nonce].add(sight.id)
        if sight.key is not None:
            by_key[sight.key].add(sight.id)
        if sight.status != "completed":
            yield f"{sight.id} is {sight.status} although all work was done"
    for key, ids in by_key.items():
        if len(ids) > 1:
            yield f"key {key} has {len(ids)} executions: {sorted(ids)}"
    for nonce, ids in by_nonce.items():
        if len(ids) > 1:
            yield f"the submission {nonce} has {len(ids)} executions: {sorted(ids)}"
    sent = {event.nonce for event in history.of(Submitted)}
    for sight in final:
        if sight.nonce not in sent:
            yield f"{sight.id} was never submitted"
    for event in history.of(Submitted):
        if event.acknowledged and event.id not in by_id:
            yield f"the acknowledged submission {event.nonce} is lost: {event.id}"
        elif event.acknowledged and (by_id[event.id].key, by_id[event.id].nonce) != (event.key, event.nonce):
            yield f"{event.id} is not what was submitted as {event.nonce}"
    for finish in history.of(Finished):
        if finish.acknowledged and finish.accepted:
            sight = by_id.get(finish.id) or Seen(0, id=finish.id)
            yield from _differs(finish, sight)


def lost_so_far(history, seen):
    """The executions that an acknowledged submission promised and that are gone."""
    acknowledged = {event.id for event in history.of(Submitted) if event.acknowledged}
    gone = [sight.id for sight in seen if sight.status is None and sight.id in acknowledged]
    return [f"the acknowledged execution {id} is lost" for id in gone]
