// peers.mjs runs npm's qoa-format on a WAV file of 16 bits. It prints the seconds and the signal-to-noise ratio of its
// encoding, and of its decoding of a file by Kiln.
//
//     node peers.mjs FOLDER-WITH-NODE_MODULES a.wav a.qoa
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, wavFile, qoaFile] = process.argv.slice(2);
const qoa = await import(pathToFileURL(createRequire(folder + "/x.js").resolve("qoa-format")));
const { encode, decode } = qoa;

const wav = readFileSync(wavFile), channels = wav.readUInt16LE(22), rate = wav.readUInt32LE(24);
let at = 12;
while (wav.toString("latin1", at, at + 4) !== "data") at += 8 + wav.readUInt32LE(at + 4);
const frames = Math.floor(wav.readUInt32LE(at + 4) / 2 / channels);
const channelData = Array.from({ length: channels }, (_, c) => {
  const out = new Float32Array(frames);
  for (let i = 0; i < frames; i++) out[i] = wav.readInt16LE(at + 8 + 2 * (i * channels + c)) / 32768;
  return out;
});

function ratio(got) {
  let power = 0, noise = 0;
  for (let c = 0; c < channels; c++) for (let i = 0; i < frames; i++) {
    const v = channelData[c][i], d = v - got.channelData[c][i];
    power += v * v;
    noise += d * d;
  }
  return 10 * Math.log10(power / noise);
}

const timed = (f) => { const from = process.cpuUsage(); const out = f(); const t = process.cpuUsage(from); return [out, (t.user + t.system) / 1e6]; };
const [theirs, encoding] = timed(() => encode({ channels, sampleRate: rate, channelData, samples: frames }));
const [back, decoding] = timed(() => decode(theirs));
const ours = decode(new Uint8Array(readFileSync(qoaFile)));
console.log(JSON.stringify({ encoding, decoding, snr: ratio(back), ours: ratio(ours), oursFrames: ours.samples }));
