"""Two servers and four workers on one PostgreSQL, which is restarted: once cleanly, once as after a crash."""

from scenario import run, seed, size


def test_everything_adds_up_after_kills_and_restarts_of_the_database(tmp_path, new_postgres):
    postgres = new_postgres().create().start()
    postgres.ask("CREATE DATABASE hapax")
    restarts = [(0.35, lambda: postgres.restart("fast")), (0.7, lambda: postgres.restart("immediate"))]

    found, numbers = run(tmp_path, postgres.url(), size(), seed(), also=restarts)

    print(numbers)
    assert found == []
    assert numbers["server"] > 2 and numbers["worker"] > 2, "too little happened to mean anything"
    assert numbers["stale finishes refused"] > 0, "no worker was ever late: the fencing was not tried"
