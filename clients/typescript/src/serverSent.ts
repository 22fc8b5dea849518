/** Server-sent events out of bytes. */

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

  /** The messages that are complete now. */
  feed(chunk: Uint8Array): Message[] {
    const lines = (this.#rest + this.#decoder.decode(chunk, { stream: true })).split("\n");
    this.#rest = lines.pop() ?? "";
    if (this.#rest.length > LONGEST) {
      throw new RangeError("An event is longer than any of the platform's.");
    }
    return lines.flatMap((line) => this.#line(line.replace(/\r$/, "")));
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
    }
    return [];
  }

  #dispatch(): Message[] {
    const message = { event: this.#event, data: this.#data.join("\n") };
    const isEmpty = this.#data.length === 0;
    this.#event = "";
    this.#data = [];
    return isEmpty ? [] : [message];
  }
}
