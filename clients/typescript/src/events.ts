/** An account's events: exactly once, in order, resumed by themselves whatever happens to the connection. */

import { headersOf, type Credential } from "./client.js";
import { Cursor } from "./cursor.js";
import { formatPosition, parsePosition } from "./position.js";
import { StreamInterrupted, isRecord, problemOfAnswer, problemOfEnd, unexpected } from "./problems.js";
import type { components } from "./schema.js";
import { ServerSentParser, type Message } from "./serverSent.js";

export type TradingEvent = components["schemas"]["TradingEvent"];
export type TradingEventType = components["schemas"]["TradingEventType"];

export interface StreamOptions {
  readonly url: string;
  readonly accountId: string;
  readonly credential: Credential;
  /** A stored position: everything after it, then what is new. `"0"`: from the beginning. Without it: from now on. */
  readonly after?: string;
  readonly subscriptions?: readonly TradingEventType[];
  /** Open each connection with a ticket instead of headers, so that no credential is in the request of the stream. */
  readonly ticket?: boolean;
  readonly signal?: AbortSignal;
  /** A live stream has a heartbeat every 15 seconds; after this silence it is opened anew. */
  readonly silenceMs?: number;
}

/** Ends when the signal aborts; throws a TipProblem if the stream cannot go on, such as for a revoked credential. */
export async function* streamEvents(options: StreamOptions): AsyncGenerator<TradingEvent, void, void> {
  const cursor = new Cursor(options.after === undefined ? null : parsePosition(options.after));
  const caller = { headers: new Headers(headersOf(options.credential)), events: addressOf(options, "events") };
  while (!options.signal?.aborted) {
    try {
      for await (const message of connection(options, caller, cursor)) {
        const event = eventOf(message);
        if (options.signal?.aborted) {
          return;
        }
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

/** Made once, so that a credential or an address that can never be sent is an error and no reason to wait. */
interface Caller {
  readonly headers: Headers;
  readonly events: URL;
}

/** The messages of one connection. */
async function* connection(
  options: StreamOptions,
  caller: Caller,
  cursor: Cursor,
): AsyncGenerator<Message, void, void> {
  const silence = new Silence(options.silenceMs ?? 45_000);
  const signal = options.signal ? AbortSignal.any([options.signal, silence.signal]) : silence.signal;
  try {
    const answer = await open(options, caller, cursor, signal);
    const parser = new ServerSentParser();
    for await (const chunk of chunks(answer)) {
      silence.interrupt();
      yield* parser.feed(chunk);
    }
  } finally {
    silence.end();
  }
}

async function open(options: StreamOptions, caller: Caller, cursor: Cursor, signal: AbortSignal): Promise<Response> {
  const target = new URL(caller.events);
  for (const type of options.subscriptions ?? []) {
    target.searchParams.append("subscriptions", type);
  }
  const headers = options.ticket ? new Headers() : new Headers(caller.headers);
  headers.set("accept", "text/event-stream");
  if (cursor.position !== null) {
    headers.set("last-event-id", formatPosition(cursor.position));
  }
  if (options.ticket) {
    target.searchParams.set("ticket", await ticketFor(options, caller, signal));
  }
  return answered(target, { headers, signal });
}

/** Valid once and soon: for each connection a new one. */
async function ticketFor(options: StreamOptions, caller: Caller, signal: AbortSignal): Promise<string> {
  const target = addressOf(options, "events/ticket");
  const answer = await answered(target, { method: "POST", headers: caller.headers, signal });
  const body = (await answer.json()) as components["schemas"]["EventsTicket"];
  return body.ticket;
}

/** Redirects are errors: a credential goes nowhere but to the address that it is meant for. */
async function answered(target: URL, request: RequestInit): Promise<Response> {
  const answer = await fetch(target, { ...request, redirect: "error" }).catch((failure: unknown) => {
    throw new StreamInterrupted("The platform cannot be reached.", { cause: failure });
  });
  if (!answer.ok) {
    throw await problemOfAnswer(answer);
  }
  return answer;
}

function addressOf(options: StreamOptions, path: string): URL {
  const base = options.url.endsWith("/") ? options.url : `${options.url}/`;
  return new URL(`v1/accounts/${encodeURIComponent(options.accountId)}/${path}`, base);
}

function eventOf(message: Message): TradingEvent {
  const data = parsed(message.data);
  if (isRecord(data) && message.event === "end") {
    throw problemOfEnd(String(data["code"]), String(data["detail"]));
  }
  if (!isRecord(data) || !/^\d+$/.test(String(data["sequence"]))) {
    throw unexpected("An event is not as the platform writes them.");
  }
  return data as TradingEvent;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

async function* chunks(answer: Response): AsyncGenerator<Uint8Array, void, void> {
  const reader = answer.body?.getReader();
  try {
    for (let read = await next(reader); read && !read.done; read = await next(reader)) {
      yield read.value;
    }
  } finally {
    await reader?.cancel().catch(() => undefined);
  }
}

async function next(
  reader: ReadableStreamDefaultReader<Uint8Array> | undefined,
): Promise<ReadableStreamReadResult<Uint8Array> | undefined> {
  return reader?.read().catch((failure: unknown) => {
    throw new StreamInterrupted("The connection broke.", { cause: failure });
  });
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
