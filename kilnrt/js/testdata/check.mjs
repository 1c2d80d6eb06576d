// Prints the judgement of kiln.mjs on parcels, in the form of the conformance set.
//
//     node check.mjs hash FILE...                BLAKE3 of each file
//     node check.mjs judge PARCEL QUERIES...     the judgements, a line "== PARCEL" before each; QUERIES is a file with the lines "find ..." and "load ..." to answer
//     node check.mjs order PARCEL... -- ID...    load order, each parcel over the one before; "?" before an id includes optional needs
//     node check.mjs trust PARCEL KEY            whether it is signed by the key, and which resources can be read then
//     node check.mjs blake2b FILE...             BLAKE2b of each file of at most 128 bytes
//     node check.mjs fuzz N FILE...              damages each file randomly, N times, and calls all functions on it
//     node check.mjs url URL                     opens over HTTP and loads everything: the number of resources and requests
import { readFileSync } from "node:fs";
import { blake2b, trust } from "../signed.mjs";
import { KilnError, crc32, hash, loadAll, loadOrder, open, openURL } from "../kiln.mjs";

const hex = (n) => n.toString(16).padStart(8, "0");

// attempt returns the result of f, or undefined if f throws a KilnError. Any other exception is a bug in the reader.
function attempt(f) {
  try {
    return f();
  } catch (error) {
    if (error instanceof KilnError) return undefined;
    throw error;
  }
}

// nameOf returns the name for a judgement: "?" if it is not valid text.
function nameOf(r) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(r.nameBytes);
  } catch {
    return "?";
  }
}

function resource(parcel, i) {
  const r = attempt(() => parcel.at(i));
  const bytes = r && attempt(() => r.bytes());
  if (!bytes) return `${i} error`;
  const needs = r.required.length + r.optional.length ? ` needs=${r.required};${r.optional}` : "";
  return `${i} id=${r.id} sub=${r.sub} type=${r.type} name="${nameOf(r)}" size=${r.size} content=${hex(crc32(bytes))}${r.codec ? " zstd" : ""}${needs}`;
}

function answer(parcel, query) {
  const load = /^load id=(\d+)$/.exec(query);
  if (!load) return find(parcel, query);
  const order = attempt(() => loadOrder(parcel, Number(load[1]), { optional: true }));
  return `${query} ${order ? order.map((r) => r.id) : "error"}`;
}

function find(parcel, query) {
  const [, key, value, sub] = /^find (id|uuid|name)=(\S+|".*?")(?: sub=(\d+))?$/.exec(query);
  const look = { id: () => parcel.find(Number(value)), uuid: () => parcel.findUUID(value, Number(sub)), name: () => parcel.findName(JSON.parse(value)) };
  const found = attempt(() => ({ r: look[key]() }));
  return `${query} ${found ? found.r?.index ?? "none" : "error"}`;
}

function judge(file, queries) {
  const parcel = attempt(() => open(readFileSync(file)));
  if (!parcel) return ["open error"];
  const lines = ["open ok", attempt(() => (parcel.check(), true)) ? "check ok" : "check error", `count ${parcel.count}`];
  for (let i = 0; i < parcel.count; i++) lines.push(resource(parcel, i));
  return [...lines, ...queries.map((q) => answer(parcel, q))];
}

function order(args) {
  const cut = args.indexOf("--");
  let top = null;
  const layers = args.slice(0, cut).map((file) => (top = open(readFileSync(file), { under: top })));
  const known = new Set();
  return args.slice(cut + 1).map((arg) => {
    try {
      const list = loadOrder(top, Number(arg.replace("?", "")), { known, optional: arg.startsWith("?") });
      return list.map((r) => ` ${r.id}@${layers.indexOf(r.parcel)}`).join("");
    } catch (error) {
      if (!(error instanceof KilnError)) throw error;
      return ` error ${error.code}`;
    }
  });
}

// chance returns a random number below n, the same in each run: 32-bit xorshift (Marsaglia 2003).
let state = 2463534242;
function chance(n) {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  return (state >>> 0) % n;
}

// damaged returns a copy with changed bytes, or truncated; most copies have headers with correct checksums.
function damaged(file) {
  const b = chance(50) === 0 ? file.slice(0, chance(file.length + 1)) : file.slice();
  for (let n = 1 + chance(4); n > 0 && b.length > 0; n--) {
    const at = chance(3) === 0 ? chance(312) : chance(3) === 0 ? 8192 + chance(Math.max(1, b.length - 8192)) : chance(b.length);
    if (at < b.length) b[at] = [0, 1, 0x7f, 0x80, 0xff, b[at] ^ 1 << chance(8), chance(256)][chance(7)];
  }
  for (const slot of [0, 4096]) {
    if (slot + 512 <= b.length && chance(10)) new DataView(b.buffer).setUint32(slot + 508, crc32(b.subarray(slot, slot + 508)), true);
  }
  return b;
}

// everything calls all functions. An exception other than KilnError is a bug in the reader.
function everything(bytes) {
  const parcel = attempt(() => open(bytes));
  if (!parcel) return false;
  attempt(() => parcel.check());
  attempt(() => parcel.digest());
  const known = new Set();
  for (let i = 0; i < Math.min(parcel.count, 100); i++) {
    const r = attempt(() => parcel.at(i));
    if (!r) continue;
    attempt(() => r.bytes());
    attempt(() => [r.name, r.type, r.uuid, r.hash, r.required, r.optional]);
    for (const look of [() => parcel.find(r.id), () => parcel.find(r.id + 1), () => parcel.findUUID(r.uuid, r.sub), () => parcel.findName(r.name)]) attempt(look);
    attempt(() => loadOrder(parcel, r.id, { known, optional: i % 2 === 1 }));
  }
  return true;
}

function fuzz(times, files) {
  const good = files.map((file) => new Uint8Array(readFileSync(file)));
  let opened = 0;
  for (let i = 0; i < times; i++) if (everything(damaged(good[i % good.length]))) opened++;
  return `${opened > times / 10 ? "many" : "few"} of them could be opened`;
}

async function trusted(file, key) {
  const parcel = open(readFileSync(file));
  try {
    await trust(parcel, key);
  } catch (error) {
    if (!(error instanceof KilnError)) throw error;
    return error.code;
  }
  const loaded = await Promise.allSettled([...parcel].map((r) => r.load()));
  return `trusted, ${loaded.map((l) => l.status === "fulfilled" ? "good" : l.reason.code)}`;
}

async function overHTTP(url) {
  let requests = 0;
  const parcel = await openURL(url, { fetch: (...args) => (requests++, fetch(...args)) });
  const opening = requests;
  parcel.check();
  const all = [...parcel];
  const contents = await loadAll(all);
  all.forEach((r, i) => r.verify(contents[i]));
  const again = await all.at(-1).load();
  return [`${all.length} resources, ${opening} requests to open, ${requests - opening - 1} to load; digest ${Buffer.from(parcel.digest()).equals(parcel.storedDigest)}; ${again.length}`];
}

const [mode, ...args] = process.argv.slice(2);
if (mode === "hash") for (const file of args) console.log(Buffer.from(hash(readFileSync(file))).toString("hex"));
if (mode === "blake2b") for (const file of args) console.log(Buffer.from(blake2b(readFileSync(file))).toString("hex"));
if (mode === "fuzz") console.log(fuzz(Number(args[0]), args.slice(1)));
if (mode === "trust") console.log(await trusted(args[0], args[1]));
if (mode === "same") {
  const all = [...open(readFileSync(args[0]))], byContent = new Map(all.map((r) => [r.sharedKey, r.id]).reverse());
  for (const r of all) if (byContent.get(r.sharedKey) !== r.id) console.log(`${byContent.get(r.sharedKey)} ${r.id}`);
}
if (mode === "order") console.log(order(args).join("\n"));
if (mode === "url") console.log((await overHTTP(args[0])).join("\n"));
if (mode === "judge") {
  for (let i = 0; i < args.length; i += 2) {
    console.log(`== ${args[i]}`);
    console.log(judge(args[i], readFileSync(args[i + 1], "utf8").split("\n").filter(Boolean)).join("\n"));
  }
}
