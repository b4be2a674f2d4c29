// The client that OpenAPI Generator makes for TypeScript: submits, is a duplicate, claims, finishes.
import assert from "node:assert/strict";

import { ClaimsApi, Configuration, TasksApi } from "./client";

async function main() {
  const configuration = new Configuration({ basePath: process.argv[2] });
  const tasks = new TasksApi(configuration);
  const claims = new ClaimsApi(configuration);

  const submitRequest = { type: "greet", queue: "generator-typescript-fetch", input: { name: "Ada" } };
  const receipt = await tasks.submitTask({ submitRequest, idempotencyKey: "greet-typescript-fetch" });
  assert(receipt.created);
  assert(!(await tasks.submitTask({ submitRequest, idempotencyKey: '"greet-typescript-fetch"' })).created);

  const claimRequest = { queues: new Set(["generator-typescript-fetch"]), wait: "5s" };
  const [claim] = (await claims.claim({ claimRequest })).claims;
  assert.deepEqual(claim.execution.input, { name: "Ada" });
  const finishRequest = { outcomes: [{ lease: claim.lease, result: { greeting: "Hello Ada" } }] };
  assert((await claims.finish({ finishRequest })).outcomes[0].ok);

  const result = await tasks.getTaskResult({ id: receipt.execution.id, wait: "5s" });
  assert.equal(result.status, "completed");
  assert.deepEqual(result.result, { greeting: "Hello Ada" });
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
