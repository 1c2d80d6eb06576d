// A library with a fake watcher, and loaders that throw or never end. Other resources must not wait for them, and what
// they failed to load must load again later.
import { hash } from "../kiln.mjs";
import { connect } from "../live.mjs";

const contents = new Map(), hex = (bytes) => Buffer.from(bytes).toString("hex");
const resources = ["never", "throws", "rejects", "good", "slow", "pin", "user"].map((kind, id) => {
  const bytes = Buffer.from(`content of ${kind}`), sum = hex(hash(bytes));
  contents.set(sum, bytes);
  return { needs: kind === "user" ? [5] : [], id, uuid: `0000000${id}-0000-0000-0000-000000000000`, sub: 0, name: kind, asset: kind, kind, hash: sum, size: bytes.length };
});

class Watcher {
  readyState = 1;
  constructor() { setTimeout(() => this.onopen()); }
  close() { this.onclose?.(); }
  send(text) {
    const say = (m) => setTimeout(() => this.onmessage({ data: JSON.stringify(m) }));
    if (JSON.parse(text).type !== "hello") return;
    say({ type: "welcome", version: 1, project: "p", platform: "pc", epoch: "e", seq: 1, resumed: false, resources: resources.length });
    say({ type: "list", seq: 1, resources });
  }
}

let hang = false;
const fetched = async (url) => {
  if (hang) await new Promise(() => {});
  const bytes = contents.get(url.pathname.split("/").at(-1));
  return { status: 200, arrayBuffer: async () => bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) };
};
const options = { WebSocket: Watcher, fetch: fetched, patience: 30 };
const library = await connect("http://127.0.0.1:1", options);
let finish, unloaded = 0;
library.register("", ({ bytes }) => String(Buffer.from(bytes())));
library.register("never", () => new Promise((done) => { finish = () => done({ unload: () => unloaded++ }); }));
library.register("throws", () => { throw new Error("thrown"); });
library.register("rejects", async () => { throw new Error("rejected"); });
const load = (name) => library.load(name).then((h) => h.value, (error) => error.message);
console.log((await Promise.all(["never", "throws", "rejects", "good"].map(load))).join("; "));
finish(); // much too late
await new Promise((done) => setTimeout(done));
console.log(`unloaded ${unloaded}`);
for (const kind of ["never", "throws", "rejects"]) library.register(kind, ({ resource }) => `${resource.name} now`);
console.log((await Promise.all(["never", "throws", "rejects"].map(load))).join("; "));

// What a loader is given stays loaded until the loader has ended, although the game releases it meanwhile.
let gone = 0, go;
options.patience = 60000;
library.register("pin", () => ({ unload: () => gone++ }));
library.register("user", ({ needs }) => new Promise((done) => { go = () => done({ needs }); }));
const pin = await library.load("pin"), using = library.load("user");
while (!go) await new Promise((done) => setTimeout(done, 1));
pin.release();
console.log(`in use: unloaded ${gone}`);
go();
(await using).release();
console.log(`released: unloaded ${gone}`);
options.patience = 30;
hang = true;
console.log(await load("slow"));
hang = false;
console.log(await load("slow"));
library.close();
