"""The client that openapi-python-client makes: submits, is a duplicate, claims, finishes."""

import sys

from hapax_client import Client
from hapax_client.api.claims import claim, finish
from hapax_client.api.tasks import get_task_result, submit_task
from hapax_client.models import ClaimRequest, FinishItem, FinishRequest, Status, SubmitRequest

client = Client(base_url=sys.argv[1])
request = SubmitRequest(type_="greet", queue="openapi-python-client", input_={"name": "Ada"})
receipt = submit_task.sync(client=client, body=request, idempotency_key="greet-python-client")
assert receipt.created
assert not submit_task.sync(client=client, body=request, idempotency_key='"greet-python-client"').created

taken = claim.sync(client=client, body=ClaimRequest(queues=["openapi-python-client"], wait="5s")).claims[0]
assert taken.execution.input_ == {"name": "Ada"}
item = FinishItem(lease=taken.lease, result={"greeting": "Hello Ada"})
assert finish.sync(client=client, body=FinishRequest(outcomes=[item])).outcomes[0].ok

result = get_task_result.sync(receipt.execution.id, client=client, wait="5s")
assert result.status == Status.COMPLETED and result.result == {"greeting": "Hello Ada"}, result
