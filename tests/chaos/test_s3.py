"""Two servers and four workers on one bucket."""

import pytest
from s3 import S3
from scenario import Size, run, seed, size


@pytest.fixture
def s3():
    s3 = S3().start()
    yield s3
    s3.close()


def test_everything_adds_up_after_kills_under_load(tmp_path, s3):
    whole = size()
    # A bucket answers some hundred times a second what a database answers some thousand times.
    smaller = Size(whole.seconds, whole.clients // 2, whole.keys_each // 2)

    found, numbers = run(tmp_path, s3.create_bucket("chaos"), smaller, seed(), environment=s3.environment)

    print(numbers)
    assert found == []
    assert numbers["server"] > 2 and numbers["worker"] > 2, "too little happened to mean anything"
    assert numbers["stale finishes refused"] > 0, "no worker was ever late: the fencing was not tried"
