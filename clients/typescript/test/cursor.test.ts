import assert from "node:assert/strict";
import { test } from "node:test";

import { Cursor } from "../src/cursor.js";
import type { TradingEvent } from "../src/events.js";
import { formatPosition, parsePosition } from "../src/position.js";
import { StreamInterrupted, TipProblem, problemOfEnd } from "../src/problems.js";

const EPOCH = "8f2d1f8e-0000-4000-8000-000000000001";

function event(sequence: number, more: Partial<TradingEvent> = {}): TradingEvent {
  const type = "EVENT_TYPE_BROKER_ORDER";
  return { event_id: "", sequence: `${sequence}`, trading_account_id: "", type, epoch: EPOCH, ...more };
}

test("an event that comes again after a reconnect is not new", () => {
  const cursor = new Cursor(null);
  const accepted = [1, 2, 2, 1, 3].map((sequence) => cursor.accept(event(sequence)));
  assert.deepEqual(accepted, [true, true, false, false, true]);
});

test("a heartbeat moves the position on and is nobody's event", () => {
  const cursor = new Cursor(parsePosition("4"));
  assert.equal(cursor.accept(event(9, { heartbeat: { latest_sequence: "9" } })), false);
  assert.equal(formatPosition(cursor.position ?? parsePosition("0")), `9@${EPOCH}`);
});

test("sequences beyond the whole numbers of JavaScript stay exact", () => {
  const cursor = new Cursor(parsePosition(`9007199254740992@${EPOCH}`));
  assert.equal(cursor.accept({ ...event(0), sequence: "9007199254740993" }), true);
});

test("a log of another epoch is not gone on with", () => {
  const cursor = new Cursor(parsePosition("4@another"));
  assert.throws(() => cursor.accept(event(5)), { code: "out_of_range" });
});

test("what will not pass is thrown, and what may pass is waited for a little longer each time", () => {
  const cursor = new Cursor(null);
  assert.throws(() => cursor.delayAfter(problemOfEnd("credential_ended", ""), 0), { code: "unauthenticated" });
  assert.throws(() => cursor.delayAfter(new TypeError("a fault of our own"), 0), TypeError);
  const delays = Array.from({ length: 8 }, () => cursor.delayAfter(new StreamInterrupted(), 1));
  assert.deepEqual(delays, [100, 200, 400, 800, 1600, 2000, 2000, 2000]);
  assert.equal(cursor.delayAfter(new TipProblem(503, "unavailable", "", null, 7000), 1), 7000);
});

test("a stream ends with the code that a request would be refused with", () => {
  const reasons = ["credential_ended", "permission_ended", "account_not_found", "epoch_ended", "anything new"];
  const codes = reasons.map((reason) => problemOfEnd(reason, "").code);
  assert.deepEqual(codes, ["unauthenticated", "forbidden", "not_found", "out_of_range", "unavailable"]);
});

test("a position that is none is refused", () => {
  for (const text of ["", "-1", "1.5", "@x", "a@b"]) {
    assert.throws(() => parsePosition(text), TypeError);
  }
});
