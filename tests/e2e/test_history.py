"""The checker of histories finds violations."""

import pytest

from history import Claimed, Finished, History, Seen, Submitted, lost_so_far, violations


class Story:
    """A sequential history: every event is answered before the next is sent."""

    def __init__(self):
        self.history = History()

    def _next(self, kind, answered=True, **fields):
        sent = self.history.instant()
        return self.history.add(kind(sent, self.history.instant() if answered else None, **fields))

    def submitted(self, id, key=None, nonce=None, created=True, **more):
        return self._next(Submitted, id=id, key=key, nonce=nonce or key or f"n-{id}", created=created, **more)

    def claimed(self, id, attempt=1, **more):
        return self._next(Claimed, id=id, attempt=attempt, lease=more.pop("lease", f"{id}/{attempt}"), **more)

    def finished(self, id, attempt=1, result="r", accepted=True, **more):
        return self._next(
            Finished, id=id, attempt=attempt, lease=f"{id}/{attempt}", result=result, accepted=accepted, **more
        )

    def seen(self, id, status="completed", result="r", **more):
        return self._next(Seen, id=id, status=status, result=result, **more)


def done(id, key=None, nonce=None, result="r", status="completed"):
    return Seen(0, id=id, status=status, key=key, nonce=nonce or key or f"n-{id}", result=result)


@pytest.fixture
def story():
    """Two correct tasks, one with a key that was sent twice, one that needed a second attempt."""
    story = Story()
    story.submitted("a", key="k")
    story.submitted("a", key="k", created=False)
    story.submitted("b")
    story.claimed("a")
    story.finished("a")
    story.claimed("b", 1)
    story.claimed("b", 2)
    story.finished("b", 1, accepted=False)
    story.finished("b", 2)
    story.finished("b", 2)
    return story


HONEST_END = [done("a", key="k"), done("b")]


def check(story, final=None):
    return violations(story.history, HONEST_END if final is None else final)


def test_an_honest_history_has_no_violations(story):
    assert check(story) == []


def test_a_lost_answer_may_have_happened_or_not(story):
    story.submitted(None, nonce="n-c", answered=False)

    assert check(story) == []
    assert check(story, HONEST_END + [done("c")]) == []


def test_a_lost_submission_is_found(story):
    assert "is lost" in check(story, [done("b")])[0]
    gone = story.seen("a", status=None)
    assert "is lost" in lost_so_far(story.history, [gone])[0]


def test_two_executions_for_one_key_are_found_in_the_answers(story):
    story.submitted("c", key="k", created=False)

    assert any("answered with 2 executions" in v for v in check(story))


def test_two_executions_for_one_key_are_found_at_the_end(story):
    assert any("has 2 executions" in v for v in check(story, HONEST_END + [done("c", key="k")]))


def test_a_key_created_twice_is_found_even_with_one_id(story):
    story.submitted("a", key="k")

    assert any("created 2 times" in v for v in check(story))


def test_an_unkeyed_submission_that_ran_twice_is_found(story):
    assert any("has 2 executions" in v for v in check(story, HONEST_END + [done("c", nonce="n-b")]))


def test_an_unkeyed_submission_taken_for_a_duplicate_is_found(story):
    story.submitted("b", nonce="n-other", created=False)

    assert any("taken for a duplicate" in v for v in check(story))


def test_two_submissions_answered_with_one_execution_are_found(story):
    story.submitted("b", nonce="n-other")

    assert any("answered with one execution" in v for v in check(story))


def test_the_checker_finds_an_execution_that_was_never_submitted(story):
    assert any("never submitted" in v for v in check(story, HONEST_END + [done("ghost")]))


def test_an_execution_with_another_submissions_input_is_found(story):
    assert any("is not what was submitted" in v for v in check(story, [done("a", key="k"), done("b", nonce="n-x")]))


def test_a_finished_task_that_was_reopened_is_found(story):
    story.seen("a", status="pending")

    assert any("is pending again" in v for v in check(story))


def test_a_finished_task_that_was_handed_out_again_is_found(story):
    story.claimed("a", 2)

    assert any("handed out again" in v for v in check(story))


def test_a_finished_task_that_vanished_is_found(story):
    story.seen("a", status=None)

    assert any("finished and is lost" in v for v in check(story))


def test_a_result_that_changed_is_found(story):
    assert any("has 'other'" in v for v in check(story, [done("a", key="k", result="other"), done("b")]))


def test_a_stale_finish_that_was_accepted_is_found():
    story = Story()
    story.submitted("b")
    story.claimed("b", 1)
    story.claimed("b", 2)
    story.finished("b", 1)

    assert any("stale finish" in v for v in violations(story.history))


def test_a_finish_under_two_leases_is_found(story):
    story.finished("b", 1)

    assert any("under 2 leases" in v for v in check(story))


def test_an_attempt_handed_out_twice_is_found(story):
    story.claimed("b", 1, lease="another")

    assert any("was handed out 2 times" in v for v in check(story))


def test_an_attempt_that_went_backwards_is_found():
    story = Story()
    story.claimed("b", 2)
    story.claimed("b", 1)

    assert any("handed out after attempt 2" in v for v in violations(story.history))


def test_work_left_over_at_the_end_is_found(story):
    final = [done("a", key="k"), done("b", status="running")]
    assert any("although all work was done" in v for v in check(story, final))


def test_an_execution_listed_twice_is_found(story):
    assert any("twice" in v for v in check(story, HONEST_END + [done("b")]))
