/** How far a reader of events has come: every event once and in order, over any number of connections. */

import { positionOf, type LogPosition } from "./position.js";
import { StreamInterrupted, TipProblem } from "./problems.js";
import type { components } from "./schema.js";

type TradingEvent = components["schemas"]["TradingEvent"];

const FIRST_DELAY_MS = 100;
const LONGEST_DELAY_MS = 2_000;

export class Cursor {
  failures = 0;

  constructor(public position: LogPosition | null) {}

  /** Whether the event is new and somebody's; heartbeats only move the position on. */
  accept(event: TradingEvent): boolean {
    const place = positionOf(event);
    if (this.position !== null && this.position.epoch !== "" && this.position.epoch !== place.epoch) {
      throw new TipProblem(400, "out_of_range", "The log was restored and goes on in another epoch.");
    }
    this.failures = 0;
    const last = this.position?.sequence ?? -1n;
    const isEvent = event.heartbeat === undefined && event.replay_complete === undefined;
    if (place.sequence < last || (isEvent && place.sequence === last)) {
      return false;
    }
    this.position = place;
    return isEvent;
  }

  /** Milliseconds to wait before connecting again; `chance` is from 0 to 1. Throws a failure that will not pass. */
  delayAfter(failure: unknown, chance: number): number {
    if (!(failure instanceof StreamInterrupted || (failure instanceof TipProblem && failure.isTransient))) {
      throw failure;
    }
    const longest = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** Math.min(this.failures, 10));
    this.failures += 1;
    const wanted = failure instanceof TipProblem ? failure.retryAfterMs : 0;
    return Math.max(wanted, longest * (0.5 + chance / 2));
  }
}
