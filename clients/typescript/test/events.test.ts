import assert from "node:assert/strict";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";

import { streamEvents, type TradingEvent } from "../src/events.js";

async function listening(listener: RequestListener): Promise<[Server, string]> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return [server, `http://127.0.0.1:${(server.address() as AddressInfo).port}`];
}

function written(sequence: number): string {
  return `event: EVENT_TYPE_ACCOUNT\ndata: {"sequence":"${sequence}","epoch":"e"}\n\n`;
}

async function read(url: string, key = "k", signal?: AbortSignal): Promise<TradingEvent[]> {
  const found: TradingEvent[] = [];
  for await (const event of streamEvents({ url, accountId: "a", credential: { key }, ...(signal && { signal }) })) {
    found.push(event);
  }
  return found;
}

test("a key is not sent on to where a server redirects", async () => {
  const seen: unknown[] = [];
  const [other, target] = await listening((request, answer) => {
    seen.push(request.headers["x-api-key"]);
    answer.end();
  });
  const abort = new AbortController();
  const [server, url] = await listening((_, answer) => {
    answer.writeHead(307, { location: target }).end();
    setTimeout(() => abort.abort(), 50);
  });
  await read(url, "secret", abort.signal);
  assert.deepEqual(seen, []);
  server.close();
  other.close();
});

test("what can never be sent is an error and no reason to wait", async () => {
  await assert.rejects(read("127.0.0.1:8080"), TypeError);
  await assert.rejects(read("http://127.0.0.1:1", "a\nb"), TypeError);
});

test("what is no event of the platform ends the stream", async () => {
  const [server, url] = await listening((_, answer) => answer.end("data: {}\n\n"));
  await assert.rejects(read(url), { code: "unexpected_answer" });
  server.close();
});

test("a stream whose credential ended is not opened again", async () => {
  let requests = 0;
  const [server, url] = await listening((_, answer) => {
    requests += 1;
    answer.end(`${written(1)}event: end\ndata: {"code":"credential_ended","detail":"revoked"}\n\n`);
  });
  await assert.rejects(read(url), { code: "unauthenticated", detail: "revoked" });
  assert.equal(requests, 1);
  server.close();
});

test("nothing comes after the caller has ended the stream", async () => {
  const [server, url] = await listening((_, answer) => void answer.write(written(1) + written(2) + written(3)));
  const abort = new AbortController();
  const found: string[] = [];
  const options = { url, accountId: "a", credential: { key: "k" }, signal: abort.signal };
  for await (const event of streamEvents(options)) {
    found.push(event.sequence);
    abort.abort();
  }
  assert.deepEqual(found, ["1"]);
  server.closeAllConnections();
  server.close();
});
