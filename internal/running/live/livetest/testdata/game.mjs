// A game for tests: game.mjs LIBRARY ADDRESS NAME... keeps the resources of these names. livetest.go has what it writes, and what its input
// may say. It ends with its input.
import { createInterface } from "node:readline";
const [library, address, ...names] = process.argv.slice(2);
const { connect } = await import(library);

const things = new Set(); // what is loaded

// A Thing is a loaded resource. It uses what it was made of until it is unloaded.
class Thing {
  constructor(name, content, needs) {
    this.name = name;
    this.needs = needs;
    this.text = content + (needs.length ? `(${needs.map((n) => n?.text ?? "-").join(",")})` : "");
    things.add(this);
  }

  unload() {
    if (!things.delete(this)) console.log(`!wrong ${this.name} was unloaded twice`);
    for (const t of things) if (t.needs.includes(this)) console.log(`!wrong ${this.name} was unloaded, which ${t.name} uses`);
    tellLoaded();
  }
}

const tellLoaded = () => console.log(["!loaded", ...[...things].map((t) => t.name).sort()].join(" "));
const tellFailing = () => console.log(["!failing", ...[...live.failures].map(([asset, messages]) => `${asset}:${messages.map((m) => ` ${m.code} ${m.text}`).join("")};`).sort()].join(" "));

let live;
const notify = (e) => {
  console.error(e.type, e.asset ?? "");
  if (live) tellFailing();
};
live = await connect(address, { game: "js", notify, patience: Number(process.env.KILN_TEST_PATIENCE) || undefined });
live.register("", async ({ resource, bytes, needs }) => {
  const content = new TextDecoder().decode(bytes());
  if (content.includes("bad")) throw new Error("the game's loader refused it");
  return new Thing(resource.name, content, needs.map((n) => n.value));
});
tellFailing();

const handles = new Map();
const tell = () => {
  tellLoaded();
  console.log(names.map((name) => `${name}=${handles.get(name)?.value?.text ?? "?"}`).join(" "));
};
async function hold(name) {
  for (;;) {
    try {
      handles.set(name, await live.load(name));
      return tell();
    } catch (error) { // it comes to be there
      console.error(error.message);
      await new Promise((done) => setTimeout(done, 100));
    }
  }
}
for (const name of names) hold(name);
setInterval(() => { if (live.poll().length) tell(); }, 5);

// idle tells how much of the processor so many milliseconds take.
function idle(milliseconds) {
  const begin = performance.now(), before = process.cpuUsage();
  setTimeout(() => {
    const { user, system } = process.cpuUsage(before);
    console.log(`!idle ${Math.round(performance.now() - begin)} ${Math.round((user + system) / 1000)} 1`);
  }, milliseconds);
}

const input = createInterface({ input: process.stdin });
input.on("line", (line) => {
  const [verb, what] = line.split(" ");
  if (verb === "idle") idle(Number(what));
  if (verb === "release") {
    handles.get(what)?.release();
    handles.delete(what);
  }
});
input.on("close", () => process.exit(0));
