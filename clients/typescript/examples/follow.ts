/** Prints an account's events after a position, one line each: `node follow.js 0 [--ticket]`. */

import { argv, env } from "node:process";

import { formatPosition, positionOf, streamEvents } from "../src/index.js";

const { TIP_URL: url = "http://127.0.0.1:8080", TIP_KEY: key = "", TIP_ACCOUNT: accountId = "" } = env;
const options = { url, accountId, credential: { key }, after: argv[2] ?? "0", ticket: argv.includes("--ticket") };

for await (const event of streamEvents(options)) {
  console.log(`${formatPosition(positionOf(event))} ${event.type}`);
}
