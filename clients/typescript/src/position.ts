/** Places in an account's log. Store one after each event, and a stream goes on behind it. */

import type { components } from "./schema.js";

/** `sequence` counts within one `epoch`; a restored log goes on in another epoch. */
export interface LogPosition {
  readonly sequence: bigint;
  readonly epoch: string;
}

export function positionOf(event: components["schemas"]["TradingEvent"]): LogPosition {
  return { sequence: BigInt(event.sequence), epoch: event.epoch };
}

/** The text to store. */
export function formatPosition(position: LogPosition): string {
  return position.epoch === "" ? `${position.sequence}` : `${position.sequence}@${position.epoch}`;
}

/** A stored text; `"0"` is the beginning of the log, whichever its epoch. */
export function parsePosition(text: string): LogPosition {
  const match = /^(\d+)(?:@(.*))?$/.exec(text);
  if (match?.[1] === undefined) {
    throw new TypeError("A position is a sequence, or <sequence>@<epoch>.");
  }
  return { sequence: BigInt(match[1]), epoch: match[2] ?? "" };
}
