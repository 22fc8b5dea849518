// Verifies a statement in the browser, by docs/statement.md: every line has one form to the byte, each hash is computed
// anew, and the last one is what was signed. Lines are read as Windows-1252, which has one character for each byte.

const LONGEST_LINE = 1 << 20;
const BATCH = 512;
const HASH = "([0-9a-f]{64})";
const ID = '"([0-9a-f-]{36})"';
const NUMBER = "(0|[1-9][0-9]{0,18})";
const AT = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{6}";
const MOMENT = `(null|"${AT}Z")`;
const HEADER = new RegExp(`^\\{"statement":1,"account_id":${ID},"from":${MOMENT},"to":${MOMENT},"opening":\\{"sequence":${NUMBER},"hash":"${HASH}"\\}\\}\n$`);
const ENTRY = new RegExp(`^(\\{"sequence":${NUMBER},"previous_hash":"${HASH}","hash":"${HASH}","content":)\\{[^\n]*\\}\\}\n$`);
const CLOSING = new RegExp(`^\\{"signed_head":\\{"account_id":${ID},"epoch":${ID},"sequence":${NUMBER},"hash":"${HASH}","signed_at":"(${AT})Z","key_id":"([0-9a-f]{1,64})","signature":"([0-9a-f]{128})"\\},"sha256":"${HASH}"\\}\n$`);
const CLOSING_BEGINS = '{"signed_head":';

/** What is wrong with the file, and in which line. */
export class NotVerified extends Error {
  constructor(line, reason) {
    super(`line ${line}: ${reason}`);
    Object.assign(this, { line, reason });
  }
}

/** The browser lacks what it takes, which says nothing about the file. */
export class CannotVerify extends Error {}

const encoder = new TextEncoder();
const decoder = new TextDecoder("windows-1252");
const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
const unhex = (text) => Uint8Array.from(text.match(/../g), (pair) => parseInt(pair, 16));
const sha256 = async (bytes) => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));

/** Follow the chain from the first line to the signed head. `keys` are the public keys (bytes) by their ids. */
export async function verify(bytes, keys, onProgress = () => {}) {
  if (!globalThis.crypto?.subtle) throw new CannotVerify("This page did not come over TLS, so the browser computes no hashes here.");
  const lines = linesOf(bytes);
  const header = readHeader(lines.next().value);
  let end = { sequence: header.sequence, hash: header.hash };
  let [number, batch] = [1, []];
  for (const line of lines) {
    number = line.number;
    if (line.text.startsWith(CLOSING_BEGINS)) return closed(line, bytes, header, await follow(batch, header, end), keys);
    if (batch.push(line) < BATCH) continue;
    end = await follow(batch, header, end);
    batch = [];
    onProgress(line.end / bytes.length);
  }
  await follow(batch, header, end);
  throw new NotVerified(number + 1, "the file ends without a signed head");
}

/** With their ends. What is too long to be a line of a statement comes in parts, of which none is one. */
function* linesOf(all) {
  for (let start = 0, number = 1; start < all.length; number++) {
    const part = all.subarray(start, start + LONGEST_LINE);
    const length = part.indexOf(10) + 1 || part.length;
    yield { number, start, end: start + length, bytes: part.subarray(0, length), text: decoder.decode(part.subarray(0, length)) };
    start += length;
  }
}

function readHeader(line) {
  const found = HEADER.exec(line?.text ?? "");
  if (!found) throw new NotVerified(1, "this is not the first line of a statement");
  const [, account, since, to, sequence, hash] = found;
  if (since === "null" && sequence !== "0") throw new NotVerified(1, "it has no from and does not begin with the first entry of the log");
  return { account, since: JSON.parse(since), to: JSON.parse(to), sequence: BigInt(sequence), hash };
}

/** Hashes are computed side by side, and judged in their order. */
async function follow(lines, header, end) {
  const computed = await Promise.all(lines.map(computedHash));
  for (const [place, line] of lines.entries()) end = followed(line, computed[place], header, end);
  return end;
}

async function computedHash(line) {
  const found = ENTRY.exec(line.text);
  if (!found) return null;
  const [, prefix, sequence, previous] = found;
  const content = await sha256(line.bytes.subarray(prefix.length, -2));
  const covered = new Uint8Array(72);
  covered.set(unhex(previous));
  new DataView(covered.buffer).setBigUint64(32, BigInt(sequence));
  covered.set(content, 40);
  return hex(await sha256(covered));
}

function followed(line, computed, header, end) {
  const found = ENTRY.exec(line.text);
  if (!found) throw new NotVerified(line.number, "this is not an entry");
  const [, prefix, sequence, previous, hash] = found;
  if (BigInt(sequence) !== end.sequence + 1n) throw new NotVerified(line.number, `entry ${end.sequence + 1n} is missing, or entries are not in their order`);
  if (previous !== end.hash) throw new NotVerified(line.number, "the entry does not follow the one before it");
  if (hash !== computed) throw new NotVerified(line.number, "the entry was altered");
  checkContent(line, line.bytes.subarray(prefix.length, -2), header, BigInt(sequence));
  return { sequence: BigInt(sequence), hash };
}

function checkContent(line, bytes, header, sequence) {
  let entry;
  try {
    entry = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    entry = {};
  }
  if (entry.account_id === undefined || entry.created_at === undefined) throw new NotVerified(line.number, "the entry has no account or no moment");
  if (entry.account_id !== header.account) throw new NotVerified(line.number, "the entry is of another account");
  const isFirst = sequence === header.sequence + 1n && sequence > 1n;
  if (header.since && isFirst && entry.created_at >= header.since) throw new NotVerified(line.number, "entries are missing between from and the first one");
}

async function closed(line, all, header, end, keys) {
  const found = CLOSING.exec(line.text);
  if (!found) throw new NotVerified(line.number, "this is not a signed head");
  const [, account, epoch, sequence, hash, signedAt, keyId, signature, covered] = found;
  if (covered !== hex(await sha256(all.subarray(0, line.start)))) throw new NotVerified(line.number, "the lines before the signed head were altered");
  if (end.sequence === header.sequence) throw new NotVerified(line.number, "it holds no entry");
  if (account !== header.account || BigInt(sequence) !== end.sequence || hash !== end.hash) throw new NotVerified(line.number, "the log does not end with what was signed");
  const message = ["tip signed head 1", account, epoch, sequence, hash, `${signedAt}+00:00`].join("\n");
  if (!keys.has(keyId)) throw new NotVerified(line.number, "the head was signed with a key that is not among the given ones");
  if (!await isSigned(keys.get(keyId), unhex(signature), encoder.encode(message))) throw new NotVerified(line.number, "the signature does not hold");
  if (line.end < all.length) throw new NotVerified(line.number + 1, "something follows the signed head");
  const entries = end.sequence - header.sequence;
  return { account, entries, first: header.sequence + 1n, last: end.sequence, epoch, signedAt: `${signedAt}Z`, keyId, since: header.since, to: header.to };
}

async function isSigned(key, signature, message) {
  let imported;
  try {
    imported = await crypto.subtle.importKey("raw", key, { name: "Ed25519" }, false, ["verify"]);
  } catch (error) {
    if (error.name === "NotSupportedError") throw new CannotVerify("This browser knows no Ed25519 signatures.");
    return false;
  }
  return crypto.subtle.verify({ name: "Ed25519" }, imported, signature, message);
}

/** The Ed25519 keys of a JWK set (RFC 8037), by their ids. */
export function publicKeys(set) {
  const known = set.keys.filter((key) => key.kty === "OKP" && key.crv === "Ed25519");
  return new Map(known.map((key) => [key.kid, bytesOf(key.x)]));
}

function bytesOf(base64url) {
  return Uint8Array.from(atob(base64url.replaceAll("-", "+").replaceAll("_", "/")), (character) => character.charCodeAt(0));
}
