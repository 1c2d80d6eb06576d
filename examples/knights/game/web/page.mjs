// Shows the scene of the parcel that Kiln packed, through constants that Kiln wrote. With ?at=SECONDS time stands still there.
import { openURL, loadAll, loadOrder } from "../../../../kilnrt/js/kiln.mjs";
import { Scene } from "./assets.mjs";
import { draw, makeScene, makers } from "./scene.mjs";

const note = document.getElementById("note");
const context = document.getElementById("scene").getContext("2d");

export async function load(url) {
  const parcel = await openURL(url);
  const resources = loadOrder(parcel, Scene.DataSceneYaml, { optional: true });
  const contents = await loadAll(resources);
  const made = new Map(); // by id; what a resource needs comes before it
  resources.forEach((r, i) => made.set(r.id, makers[r.type]?.(contents[i], r, parcel, made)));
  return makeScene(made.get(Scene.DataSceneYaml), (name) => made.get(parcel.findName(name).id));
}

const began = performance.now();
const fixed = new URLSearchParams(location.search).get("at");
try {
  const scene = await load("../../build/parcels/web/scene.parcel");
  note.textContent = "";
  (function frame() {
    draw(context, scene, fixed === null ? (performance.now() - began) / 1000 : Number(fixed));
    if (fixed === null) requestAnimationFrame(frame);
  })();
  document.body.dataset.state = "shown";
} catch (error) {
  note.textContent = `${error.message} (kiln build -C examples/knights makes it)`;
  document.body.dataset.state = "failed";
}
