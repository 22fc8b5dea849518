/** An account's events: exactly once, in order, resumed by themselves whatever happens to the connection. */

import { headersOf, type Credential } from "./client.js";
import { Cursor } from "./cursor.js";
import { formatPosition, parsePosition } from "./position.js";
import { StreamInterrupted, isRecord, problemOfAnswer, problemOfEnd } from "./problems.js";
import type { components } from "./schema.js";
import { ServerSentParser, type Message } from "./serverSent.js";

export type TradingEvent = components["schemas"]["TradingEvent"];
export type EventType = components["schemas"]["TradingEventType"];

export interface StreamOptions {
  readonly url: string;
  readonly accountId: string;
  readonly credential: Credential;
  /** A stored position: everything after it, then what is new. `"0"`: from the beginning. Without it: from now on. */
  readonly after?: string;
  readonly subscriptions?: readonly EventType[];
  /** Open each connection with a ticket instead of headers, so that no credential is in the request of the stream. */
  readonly ticket?: boolean;
  readonly signal?: AbortSignal;
  /** A live stream has a heartbeat every 15 seconds; after this silence it is opened anew. */
  readonly silenceMs?: number;
}

/** Ends when the signal aborts; throws a TipProblem if the stream cannot go on, such as for a revoked credential. */
export async function* streamEvents(options: StreamOptions): AsyncGenerator<TradingEvent, void, void> {
  const cursor = new Cursor(options.after === undefined ? null : parsePosition(options.after));
  while (!options.signal?.aborted) {
    try {
      for await (const message of connection(options, cursor)) {
        const event = eventOf(message);
        if (cursor.accept(event)) {
          yield event;
        }
      }
      throw new StreamInterrupted("The server closed the stream.");
    } catch (failure) {
      if (options.signal?.aborted) {
        return;
      }
      await pause(cursor.delayAfter(failure, Math.random()), options.signal);
    }
  }
}

/** The messages of one connection. */
async function* connection(options: StreamOptions, cursor: Cursor): AsyncGenerator<Message, void, void> {
  const silence = new Silence(options.silenceMs ?? 45_000);
  const signal = options.signal ? AbortSignal.any([options.signal, silence.signal]) : silence.signal;
  try {
    const answer = await open(options, cursor, signal);
    const parser = new ServerSentParser();
    for await (const chunk of chunks(answer)) {
      silence.interrupt();
      yield* parser.feed(chunk);
    }
  } finally {
    silence.end();
  }
}

async function open(options: StreamOptions, cursor: Cursor, signal: AbortSignal): Promise<Response> {
  const target = addressOf(options, "events");
  const headers: Record<string, string> = { accept: "text/event-stream" };
  for (const type of options.subscriptions ?? []) {
    target.searchParams.append("subscriptions", type);
  }
  if (cursor.position !== null) {
    headers["last-event-id"] = formatPosition(cursor.position);
  }
  if (options.ticket) {
    target.searchParams.set("ticket", await ticketFor(options, signal));
  } else {
    Object.assign(headers, headersOf(options.credential));
  }
  const answer = await fetch(target, { headers, signal });
  if (!answer.ok) {
    throw await problemOfAnswer(answer);
  }
  return answer;
}

/** Valid once and soon: for each connection a new one. */
async function ticketFor(options: StreamOptions, signal: AbortSignal): Promise<string> {
  const target = addressOf(options, "events/ticket");
  const answer = await fetch(target, { method: "POST", headers: headersOf(options.credential), signal });
  if (!answer.ok) {
    throw await problemOfAnswer(answer);
  }
  const body = (await answer.json()) as components["schemas"]["EventsTicket"];
  return body.ticket;
}

function addressOf(options: StreamOptions, path: string): URL {
  const base = options.url.endsWith("/") ? options.url : `${options.url}/`;
  return new URL(`v1/accounts/${encodeURIComponent(options.accountId)}/${path}`, base);
}

function eventOf(message: Message): TradingEvent {
  const data: unknown = JSON.parse(message.data);
  if (!isRecord(data)) {
    throw new StreamInterrupted("An event is not a JSON object.");
  }
  if (message.event === "end") {
    throw problemOfEnd(String(data["code"]), String(data["detail"]));
  }
  return data as TradingEvent;
}

async function* chunks(answer: Response): AsyncGenerator<Uint8Array, void, void> {
  const reader = answer.body?.getReader();
  try {
    for (let read = await reader?.read(); read && !read.done; read = await reader?.read()) {
      yield read.value;
    }
  } finally {
    await reader?.cancel().catch(() => undefined);
  }
}

/** Aborts when nothing has interrupted it for so long. */
class Silence {
  readonly #controller = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly milliseconds: number) {
    this.interrupt();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  interrupt(): void {
    clearTimeout(this.#timer);
    const failure = new StreamInterrupted("The stream was silent for too long.");
    this.#timer = setTimeout(() => this.#controller.abort(failure), this.milliseconds);
  }

  end(): void {
    clearTimeout(this.#timer);
  }
}

function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal?.addEventListener("abort", done);
  });
}
