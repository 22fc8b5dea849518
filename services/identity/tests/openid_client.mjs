// Every flow with openid-client, driven by lines: it prints where a person has to go and reads where that led.
import * as client from "openid-client";
import * as readline from "node:readline/promises";

const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
const heard = async () => (await lines.next()).value;
const [base, redirectUri] = process.argv.slice(2);

const options = { execute: [client.allowInsecureRequests], algorithm: "oauth2" };
const config = await client.discovery(new URL(base), "tip", undefined, client.None(), options);

const verifier = client.randomPKCECodeVerifier();
const state = client.randomState();
const address = client.buildAuthorizationUrl(config, {
  redirect_uri: redirectUri,
  code_challenge: await client.calculatePKCECodeChallenge(verifier),
  code_challenge_method: "S256",
  state,
});
say({ go: address.href });
const answer = new URL(await heard());
const first = await client.authorizationCodeGrant(config, answer, { pkceCodeVerifier: verifier, expectedState: state });
say({ token: first.access_token });

const second = await client.refreshTokenGrant(config, first.refresh_token);
say({ token: second.access_token });
await client.tokenRevocation(config, second.refresh_token, { token_type_hint: "refresh_token" });
const refused = await client.refreshTokenGrant(config, second.refresh_token).catch((error) => error.error);
say({ refused });

const device = await client.initiateDeviceAuthorization(config, {});
say({ go: device.verification_uri_complete });
await heard();
const third = await client.pollDeviceAuthorizationGrant(config, device);
say({ token: third.access_token });
process.exit(0);
