/** Why the platform refused or ended something. */

/** What the platform answers to whatever it refuses. `code` is constant; `detail` is for people. */
export class TipProblem extends Error {
  override readonly name = "TipProblem";

  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail: string,
    readonly requestId: string | null = null,
    readonly retryAfterMs: number = 0,
  ) {
    super(`${code}: ${detail}`);
  }

  /** Whether the same may succeed later. */
  get isTransient(): boolean {
    return [429, 502, 503, 504].includes(this.status);
  }
}

/** A stream broke off without a reason, could not be opened, or was silent for too long. */
export class StreamInterrupted extends Error {
  override readonly name = "StreamInterrupted";
}

/** What the reasons with which streams end are among the problems of requests. All others pass. */
const ENDS: Readonly<Record<string, readonly [status: number, code: string]>> = {
  credential_ended: [401, "unauthenticated"],
  unauthenticated: [401, "unauthenticated"],
  permission_ended: [403, "forbidden"],
  forbidden: [403, "forbidden"],
  account_not_found: [404, "not_found"],
  epoch_ended: [400, "out_of_range"],
  out_of_range: [400, "out_of_range"],
  stuck: [429, "stuck"],
  too_many_streams: [429, "too_many_streams"],
};

/** Of the last event of a stream. */
export function problemOfEnd(reason: string, detail: string): TipProblem {
  const [status, code] = ENDS[reason] ?? [503, "unavailable"];
  return new TipProblem(status, code, detail);
}

/** Of what is no answer of the platform: to ask again would bring the same. */
export function unexpected(detail: string): TipProblem {
  return new TipProblem(500, "unexpected_answer", detail);
}

export async function problemOfAnswer(answer: Response): Promise<TipProblem> {
  const body: unknown = await answer.json().catch(() => null);
  const known = isRecord(body) ? body : {};
  return new TipProblem(
    answer.status,
    textOf(known["code"], "unexpected_answer"),
    textOf(known["detail"], `The server answered ${answer.status}.`),
    answer.headers.get("x-request-id"),
    1000 * (Number(answer.headers.get("retry-after")) || 0),
  );
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function textOf(value: unknown, otherwise: string): string {
  return typeof value === "string" ? value : otherwise;
}
