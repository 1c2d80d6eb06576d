// Shows the scene of the parcel that Kiln packed, with constants that Kiln wrote. With ?live it comes from `kiln serve`
// instead, and changes when a file is saved (?live=http://127.0.0.1:7172 is another address). With ?at=SECONDS time
// stands still at that moment.
import { openURL, loadAll, loadOrder } from "../../../../kilnrt/js/kiln.mjs";
import { connect } from "../../../../kilnrt/js/live.mjs";
import { Scene } from "./assets.mjs";
import { draw, makers } from "./scene.mjs";
import { listen } from "./sound.mjs";

const note = document.getElementById("note");
const context = document.getElementById("scene").getContext("2d");

/** fromParcel returns a function that returns the scene. */
async function fromParcel(url) {
  const parcel = await openURL(url);
  const resources = loadOrder(parcel, Scene.DataSceneYaml, { optional: true });
  const contents = await loadAll(resources);
  const made = new Map(); // by id; what a resource needs comes before it
  resources.forEach((r, i) => made.set(r.id, makers[r.type](contents[i], r, parcel, made)));
  return () => made.get(Scene.DataSceneYaml);
}

/** fromWatcher is the same, with changes when a file is saved. */
async function fromWatcher(address) {
  const library = await connect(address, { game: "knights, the page", platform: "web" });
  for (const type of Object.keys(makers)) {
    library.register(type, ({ resource, bytes, needs }) => makers[type](bytes(), resource, library, new Map(needs.map((n) => [n.id, n.value]))));
  }
  const handle = await library.load(Scene.DataSceneYaml);
  return () => {
    library.poll();
    return handle.value;
  };
}

const began = performance.now();
const params = new URLSearchParams(location.search);
const fixed = params.get("at");
try {
  const scene = params.has("live") ? await fromWatcher(params.get("live") || undefined) : await fromParcel("../../build/parcels/web/scene.parcel");
  note.textContent = "";
  (function frame() {
    draw(context, scene(), fixed === null ? (performance.now() - began) / 1000 : Number(fixed));
    requestAnimationFrame(frame);
  })();
  listen(note);
  document.body.dataset.state = "shown";
} catch (error) {
  note.textContent = `${error.message} (${params.has("live") ? "kiln serve -C examples/knights has to run" : "kiln build -C examples/knights makes it"})`;
  document.body.dataset.state = "failed";
}
