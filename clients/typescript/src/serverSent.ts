/** Server-sent events out of bytes. */

import { unexpected } from "./problems.js";

export interface Message {
  readonly event: string;
  readonly data: string;
}

const LONGEST = 2 ** 20;

/** Cuts a stream of bytes into messages, wherever it is cut itself. */
export class ServerSentParser {
  readonly #decoder = new TextDecoder();
  #rest = "";
  #event = "";
  #data: string[] = [];
  #length = 0;

  /** The messages that are complete now. */
  feed(chunk: Uint8Array): Message[] {
    const lines = (this.#rest + this.#decoder.decode(chunk, { stream: true })).split("\n");
    this.#rest = lines.pop() ?? "";
    const messages = lines.flatMap((line) => this.#line(line.replace(/\r$/, "")));
    if (this.#rest.length + this.#length > LONGEST) {
      throw unexpected("An event is longer than any of the platform's.");
    }
    return messages;
  }

  #line(line: string): Message[] {
    if (line === "") {
      return this.#dispatch();
    }
    const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (field === "event") {
      this.#event = value ?? "";
    } else if (field === "data") {
      this.#data.push(value ?? "");
      this.#length += (value ?? "").length;
    }
    return [];
  }

  #dispatch(): Message[] {
    const message = { event: this.#event, data: this.#data.join("\n") };
    const isEmpty = this.#data.length === 0;
    this.#event = "";
    this.#data = [];
    this.#length = 0;
    return isEmpty ? [] : [message];
  }
}
