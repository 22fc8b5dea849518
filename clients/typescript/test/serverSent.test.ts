import assert from "node:assert/strict";
import { test } from "node:test";

import { ServerSentParser } from "../src/serverSent.js";

const BYTES = new TextEncoder().encode(': hello\n\nid: 1@e\nevent: heartbeat\ndata: {"é":1}\n\ndata:a\r\ndata: b\r\n\r\n');
const MESSAGES = [
  { event: "heartbeat", data: '{"é":1}' },
  { event: "", data: "a\nb" },
];

test("messages are the same wherever the stream of bytes is cut", () => {
  for (let cut = 0; cut <= BYTES.length; cut++) {
    const parser = new ServerSentParser();
    assert.deepEqual([...parser.feed(BYTES.slice(0, cut)), ...parser.feed(BYTES.slice(cut))], MESSAGES);
  }
});

test("a message that does not end is not kept without bound", () => {
  const parser = new ServerSentParser();
  const piece = new TextEncoder().encode("x".repeat(600_000));
  parser.feed(piece);
  assert.throws(() => parser.feed(piece), { code: "unexpected_answer" });
});

test("nor is one of many lines", () => {
  const parser = new ServerSentParser();
  const line = new TextEncoder().encode(`data: ${"x".repeat(100_000)}\n`);
  assert.throws(() => Array.from({ length: 11 }, () => parser.feed(line)), { code: "unexpected_answer" });
});
