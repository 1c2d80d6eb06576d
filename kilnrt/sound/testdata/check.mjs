// check.mjs executes the commands in its arguments on a sound, and prints what it reads.
import { readFileSync } from "node:fs";
import { KilnSound, KilnSoundError } from "../../js/kiln_sound.mjs";

const [file, ...words] = process.argv.slice(2);
let sound;
try {
  sound = new KilnSound(readFileSync(file));
} catch (e) {
  if (!(e instanceof KilnSoundError)) throw e;
  console.log("error");
  process.exit(0);
}
console.log(sound.rate, sound.channels, sound.frames, sound.loops.length, sound.markers.length, Math.floor(sound.gain * 100 + 0.5));
for (const l of sound.loops) console.log("loop", l.begin, l.end, l.kind, l.count);
for (const m of sound.markers) console.log("marker", m.frame, m.length, m.name);
const player = sound.play();
for (let i = 0; i + 1 < words.length; i += 2) {
  const n = Number(words[i + 1]);
  if (words[i] === "s") player.seek(n);
  if (words[i] === "l") player.loop(n === 1);
  if (words[i] === "r") {
    const buf = new Int16Array(n * sound.channels), got = player.read(buf);
    let hash = 2166136261;
    for (const v of buf.subarray(0, got * sound.channels)) for (const c of [v & 255, (v >> 8) & 255]) hash = Math.imul(hash ^ c, 16777619) >>> 0;
    console.log(`read ${got} at ${player.frame}: ${hash.toString(16).padStart(8, "0")}`);
  }
}
