"""The client that OpenAPI Generator makes for Python: submits, is a duplicate, claims, finishes."""

import sys

import openapi_client as hapax

client = hapax.ApiClient(hapax.Configuration(host=sys.argv[1]))
tasks, claims = hapax.TasksApi(client), hapax.ClaimsApi(client)

request = hapax.SubmitRequest(type="greet", queue="generator-python", input={"name": "Ada"})
receipt = tasks.submit_task(request, idempotency_key="greet-python")
assert receipt.created
assert not tasks.submit_task(request, idempotency_key='"greet-python"').created

claim = claims.claim(hapax.ClaimRequest(queues=["generator-python"], wait="5s")).claims[0]
assert claim.execution.input == {"name": "Ada"}
item = hapax.FinishItem(lease=claim.lease, result={"greeting": "Hello Ada"})
assert claims.finish(hapax.FinishRequest(outcomes=[item])).outcomes[0].ok

result = tasks.get_task_result(receipt.execution.id, wait="5s")
assert result.status == "completed" and result.result == {"greeting": "Hello Ada"}, result
