"""Two servers and four workers on one SQLite file."""

from scenario import run, seed, size


def test_everything_adds_up_after_kills_under_load(tmp_path):
    found, numbers = run(tmp_path, f"sqlite:{tmp_path / 'q.db'}", size(), seed())

    print(numbers)
    assert found == []
    assert numbers["server"] > 3 and numbers["worker"] > 3, "too little happened to mean anything"
    assert numbers["stale finishes refused"] > 0, "no worker was ever late: the fencing was not tried"
