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
    # A bucket answers some hundred requests a second, a database some thousand.
    whole = size()
    smaller = Size(whole.seconds, whole.clients // 2, min(whole.keys_each // 2, 40), late_share=0.2, lease_s=3)

    found, numbers = run(tmp_path, s3.create_bucket("chaos"), smaller, seed(), environment=s3.environment)

    print(numbers)
    assert found == []
    assert numbers["server"] > 2 and numbers["worker"] > 2, "too little happened to mean anything"
    assert numbers["stale finishes refused"] > 0, "no worker was ever late: the fencing was not tried"
