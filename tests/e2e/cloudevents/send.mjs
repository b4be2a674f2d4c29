// Sends the events of standard input, a JSON array, with the CloudEvents SDK, and prints the answers, one to a line.
// Usage: node send.mjs URL binary|structured|batch
import { CloudEvent, CONSTANTS, HTTP, Mode, emitterFor } from 'cloudevents';
import { readFileSync } from 'node:fs';

const [url, mode] = process.argv.slice(2);
const events = JSON.parse(readFileSync(0, 'utf8')).map((attributes) => new CloudEvent(attributes));

async function send({ headers, body }) {
  const answer = await fetch(url, { method: 'POST', headers, body });
  console.log(JSON.stringify({ status: answer.status, body: await answer.json() }));
}

// The SDK reads batches but leaves writing them to its users: its events as one array, under its media type.
if (mode === Mode.BATCH) {
  const message = { headers: { [CONSTANTS.HEADER_CONTENT_TYPE]: CONSTANTS.MIME_CE_BATCH }, body: JSON.stringify(events) };
  if (HTTP.toEvent(message).length !== events.length) throw new Error('the SDK itself does not read this batch');
  await send(message);
} else {
  const emit = emitterFor(send, { mode });
  for (const event of events) await emit(event);
}
