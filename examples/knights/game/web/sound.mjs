// Plays the sounds of the page: a click or M starts and stops the theme, which loops as its file says; H is the horn, S
// a step, another one each time. The gains are those noted by Kiln, so all sounds are equally loud.
import { openURL, loadAll, loadOrder } from "../../../../kilnrt/js/kiln.mjs";
import { KilnSound } from "../../../../kilnrt/js/kiln_sound.mjs";
import { Sounds } from "./assets.mjs";

const address = "../../build/parcels/web/sounds.parcel";
let context = null, parcel = null, theme = null, last = -1;
const buffers = new Map(); // by id

/** load returns a resource's sound and its buffer for Web Audio, decoded once. */
async function load(id) {
  if (!buffers.has(id)) {
    const [bytes] = await loadAll([parcel.find(id)]);
    const sound = new KilnSound(bytes);
    buffers.set(id, { sound, buffer: sound.audioBuffer(context) });
  }
  return buffers.get(id);
}

async function start(id, loop) {
  const { sound, buffer } = await load(id);
  const node = new AudioBufferSourceNode(context, { buffer });
  if (loop) sound.loopOf(node);
  node.connect(context.destination);
  node.start();
  return node;
}

async function step() {
  const [bytes] = await loadAll([parcel.find(Sounds.SoundsStep01WavVariations)]);
  const { variations } = JSON.parse(new TextDecoder().decode(bytes));
  const others = variations.map((_, i) => i).filter((i) => i !== last);
  last = others[Math.floor(Math.random() * others.length)];
  await start(parcel.findUUID(variations[last].uuid, 0).id, false);
}

/** listen waits for keys and clicks: browsers require one before they play sound. */
export function listen(note) {
  const on = async (what) => {
    try {
      context ??= new AudioContext();
      parcel ??= await openURL(address);
      if (what === "h") await start(Sounds.SoundsHornWav, false);
      else if (what === "s") await step();
      else if (theme) theme = void theme.stop();
      else theme = await start(Sounds.SoundsThemeWav, true);
    } catch (error) {
      note.textContent = `${error.message} (kiln build -C examples/knights makes the sounds)`;
    }
  };
  addEventListener("keydown", (e) => ["m", "h", "s"].includes(e.key) && !e.repeat && on(e.key));
  document.getElementById("scene").addEventListener("click", () => on("m"));
}
