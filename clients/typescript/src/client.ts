/** The whole API, typed: openapi-fetch with the platform's document and a credential. */

import createClient, { type Client } from "openapi-fetch";

import type { paths } from "./schema.js";

/** An API key, or a token of a user or service account. A service account names the organization it acts for. */
export type Credential = { key: string } | { token: string; organizationId?: string };
export type TipClient = Client<paths>;

/** Redirects are errors: a credential goes nowhere but to this address. */
export function createTipClient(url: string, credential: Credential): TipClient {
  return createClient<paths>({ baseUrl: url, headers: headersOf(credential), redirect: "error" });
}

export function headersOf(credential: Credential): Record<string, string> {
  if ("key" in credential) {
    return { "x-api-key": credential.key };
  }
  const organization = credential.organizationId ? { "x-organization-id": credential.organizationId } : {};
  return { authorization: `Bearer ${credential.token}`, ...organization };
}
