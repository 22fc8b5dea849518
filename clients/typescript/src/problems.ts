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

/** A stream broke off without a reason, or was silent for too long. */
export class StreamInterrupted extends Error {
  override readonly name = "StreamInterrupted";
}

/** Codes with which a stream ends that would end the next one as well, and their statuses. */
const ENDS: Readonly<Record<string, number>> = {
  credential_ended: 401,
  unauthenticated: 401,
  permission_ended: 403,
  forbidden: 403,
  account_not_found: 404,
  epoch_ended: 400,
  out_of_range: 400,
  stuck: 429,
  too_many_streams: 429,
};

/** The last event of a stream: what is not the caller's doing passes, and the stream is resumed. */
export function problemOfEnd(code: string, detail: string): TipProblem {
  return new TipProblem(ENDS[code] ?? 503, code, detail);
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
