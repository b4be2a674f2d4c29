// openapi-fetch with the types that openapi-typescript makes: submits, is a duplicate, claims, finishes.
import assert from "node:assert/strict";

import createClient from "openapi-fetch";

import type { paths } from "./hapax";

async function main() {
  const client = createClient<paths>({ baseUrl: process.argv[2] });

  const body = { type: "greet", queue: "openapi-typescript", input: { name: "Ada" } };
  const submit = (key: string) => client.POST("/v1/tasks", { body, params: { header: { "Idempotency-Key": key } } });
  const receipt = (await submit("greet-typescript")).data;
  assert(receipt && receipt.created);
  assert((await submit('"greet-typescript"')).data?.created === false);

  const claims = (await client.POST("/v1/claims", { body: { queues: ["openapi-typescript"], wait: "5s" } })).data;
  const claim = claims?.claims[0];
  assert(claim);
  assert.deepEqual(claim.execution.input, { name: "Ada" });
  const outcomes = [{ lease: claim.lease, result: { greeting: "Hello Ada" } }];
  assert((await client.POST("/v1/claims/finish", { body: { outcomes } })).data?.outcomes[0].ok);

  const path = { id: receipt.execution.id };
  const result = await client.GET("/v1/tasks/{id}/result", { params: { path, query: { wait: "5s" } } });
  assert.equal(result.data?.status, "completed");
  assert.deepEqual(result.data?.result, { greeting: "Hello Ada" });
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
