export { createTipClient, type Credential, type TipClient } from "./client.js";
export { streamEvents, type StreamOptions, type TradingEvent, type TradingEventType } from "./events.js";
export { StreamInterrupted, TipProblem } from "./problems.js";
export { formatPosition, parsePosition, positionOf, type LogPosition } from "./position.js";
export type { components, operations, paths } from "./schema.js";
