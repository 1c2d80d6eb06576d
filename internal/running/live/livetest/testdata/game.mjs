// A game for tests: game.mjs LIBRARY ADDRESS NAME... keeps the resources of these names, and writes a line with all of them whenever a poll did something. It ends with its input.
const [library, address, ...names] = process.argv.slice(2);
const { connect } = await import(library);

process.stdin.on("end", () => process.exit(0)).resume();
const live = await connect(address, { game: "js", notify: (e) => console.error(e.type, e.asset ?? "") });
live.register("", async ({ bytes, needs }) => {
  const content = new TextDecoder().decode(bytes());
  if (content.includes("bad")) throw new Error("the game's loader refused it");
  return content + (needs.length ? `(${needs.map((n) => n.value ?? "-").join(",")})` : "");
});

const handles = new Map();
const tell = () => console.log(names.map((name) => `${name}=${handles.get(name)?.value ?? "?"}`).join(" "));
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
