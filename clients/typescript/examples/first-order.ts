/** Places a market order and follows it until it is filled: `TIP_URL=… TIP_KEY=… TIP_ACCOUNT=… node first-order.js`. */

import { randomUUID } from "node:crypto";
import { argv, env, exit } from "node:process";

import { createTipClient, formatPosition, positionOf, streamEvents } from "../src/index.js";

const { TIP_URL: url = "http://127.0.0.1:8080", TIP_KEY: key = "", TIP_ACCOUNT: accountId = "" } = env;
const symbol = argv[2] ?? "AAPL";
const client = createTipClient(url, { key });

const { data: action, error } = await client.POST("/v1/accounts/{account_id}/intents", {
  params: { path: { account_id: accountId }, header: { "Idempotency-Key": randomUUID() } },
  body: { command: { type: "CREATE", payload: { symbol, order_side: "BUY", spec: { Market: { quantity: "1" } } } } },
});
if (!action) {
  console.error(`${error.code}: ${error.detail}`);
  exit(1);
}
console.log(`submitted ${action.intent_id}`);

const beforeTheOrder = String(action.sequence - 1);
for await (const event of streamEvents({ url, accountId, credential: { key }, after: beforeTheOrder })) {
  const order = event.broker_order;
  if (order?.intent_id === action.intent_id) {
    console.log(`${order.status} at ${formatPosition(positionOf(event))}`);
    if (order.status === "FILLED") {
      break;
    }
  }
}
