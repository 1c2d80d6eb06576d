// kiln_sound.mjs decodes the sounds that Kiln makes: QOA, and WAV of 16 bits, floats or IMA ADPCM, with their loops,
// markers and gain. It works in browsers and in node, without dependencies. docs/sounds.md describes its use,
// docs/formats/sound.md the files.
//
//     const sound = new KilnSound(bytes);
//     const buffer = sound.audioBuffer(context);              // short sounds: an AudioBuffer of the whole sound
//     const player = sound.play(); player.loop(true);         // long ones: in pieces, exact to the frame
//     const frames = player.read(new Int16Array(1024 * sound.channels));
//
// Broken or hostile bytes at worst throw a KilnSoundError or give noise.

export class KilnSoundError extends Error {}

export const FORWARD = 0, PING_PONG = 1, BACKWARD = 2;

const QOA = 0, PCM = 1, FLOAT = 2, ADPCM = 3, MAX_CHANNELS = 64;

/**
 * KilnSound is an open file. rate, channels, frames; loops of {begin, end, kind, count}, markers of {frame, length,
 * name}; gain in dB, which audioBuffer and readFloat apply; loudness and truePeak before the gain; stream, momentary,
 * silent.
 */
export class KilnSound {
  constructor(data) {
    const bytes = data instanceof Uint8Array ? data : new Uint8Array(data);
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.loops = [];
    this.markers = [];
    this.gain = this.loudness = this.truePeak = 0;
    this.stream = this.momentary = this.silent = false;
    if (bytes.length >= 16 && this.#is(0, "qoaf")) this.#openQOA();
    else if (bytes.length >= 12 && this.#is(0, "RIFF") && this.#is(8, "WAVE")) this.#openWAV();
    else throw new KilnSoundError("not QOA, and not WAV of 16 bits, floats or IMA ADPCM");
  }

  #is(at, text) {
    for (let i = 0; i < text.length; i++) if (this.view.getUint8(at + i) !== text.charCodeAt(i)) return false;
    return true;
  }

  #openQOA() {
    const v = this.view;
    this.frames = v.getUint32(4);
    this.channels = v.getUint8(8);
    this.rate = v.getUint32(8) & 0xffffff;
    if (this.frames === 0 || this.channels === 0 || this.channels > 8 || this.rate === 0) throw new KilnSoundError("damaged");
    const frame = (n) => 8 + this.channels * (16 + 8 * Math.ceil(n / 20));
    this.coding = QOA;
    this.block = 5120;
    this.blockSize = frame(this.block);
    const rest = this.frames % this.block;
    const end = 8 + Math.floor(this.frames / this.block) * this.blockSize + (rest > 0 ? frame(rest) : 0);
    if (end > v.byteLength) throw new KilnSoundError("damaged");
    this.begin = 8;
    this.size = end - 8;
    this.#notes(end, v.byteLength - end);
  }

  #openWAV() {
    const v = this.view;
    let format = false, fact = -1, notes = null;
    for (let at = 12; at + 8 <= v.byteLength; ) {
      const says = v.getUint32(at + 4, true), body = at + 8, size = Math.min(says, v.byteLength - body);
      if (this.#is(at, "fmt ")) {
        format = this.#format(body, size);
        if (!format) throw new KilnSoundError("not QOA, and not WAV of 16 bits, floats or IMA ADPCM");
      } else if (this.#is(at, "fact") && size >= 4) fact = v.getUint32(body, true);
      else if (this.#is(at, "data")) [this.begin, this.size] = [body, size];
      else if (this.#is(at, "kiln")) notes = [body, size];
      at = body + says + (says & 1);
    }
    if (!format || this.begin === undefined) throw new KilnSoundError("damaged");
    if (this.coding === ADPCM) {
      this.frames = Math.floor(this.size / this.blockSize) * this.block;
      if (fact >= 0) this.frames = Math.min(fact, this.frames);
    } else this.frames = Math.floor(this.size / (this.blockSize / this.block));
    if (notes) this.#notes(...notes);
  }

  #format(at, size) {
    const v = this.view;
    if (size < 16) return false;
    let tag = v.getUint16(at, true);
    const ch = v.getUint16(at + 2, true), align = v.getUint16(at + 12, true), bits = v.getUint16(at + 14, true);
    this.channels = ch;
    this.rate = v.getUint32(at + 4, true);
    if (tag === 0xfffe && size >= 26) tag = v.getUint16(at + 24, true);
    if (ch === 0 || ch > MAX_CHANNELS || this.rate === 0) return false;
    this.block = 1024;
    this.blockSize = this.block * align;
    if (tag === 1 && bits === 16 && align === 2 * ch) this.coding = PCM;
    else if (tag === 3 && bits === 32 && align === 4 * ch) this.coding = FLOAT;
    else if (tag === 0x11 && bits === 4 && align >= 8 * ch && align % (4 * ch) === 0) {
      this.coding = ADPCM;
      this.block = (align / ch - 4) * 2 + 1;
      this.blockSize = align;
    } else return false;
    return true;
  }

  // #notes reads the notes as docs/formats/sound.md describes them.
  #notes(at, room) {
    const v = this.view, u32 = (i) => v.getUint32(at + i, true);
    if (room < 32 || !this.#is(at, "KSND") || v.getUint16(at + 8, true) !== 1) return;
    const size = u32(4);
    if (size < 32 || size > room) return;
    const flags = v.getUint16(at + 10, true), number = (i) => { const x = v.getFloat32(at + i, true); return Number.isFinite(x) ? x : 0; };
    this.stream = (flags & 1) !== 0;
    this.momentary = (flags & 2) !== 0;
    this.silent = (flags & 4) !== 0;
    [this.gain, this.loudness, this.truePeak] = [number(12), number(16), number(20)];
    let loops = u32(24), markers = u32(28), i = 32;
    for (; loops > 0 && size - i >= 16; loops--, i += 16) {
      const l = { begin: u32(i), end: u32(i + 4), kind: u32(i + 8), count: u32(i + 12) };
      if (l.begin < l.end && l.end <= this.frames && l.kind <= BACKWARD) this.loops.push(l);
    }
    for (; markers > 0 && size - i >= 12; markers--) {
      const n = u32(i + 8), whole = 12 + Math.ceil(n / 4) * 4;
      if (whole > size - i) return;
      const name = new TextDecoder().decode(new Uint8Array(v.buffer, v.byteOffset + at + i + 12, n));
      this.markers.push({ frame: u32(i), length: u32(i + 4), name });
      i += whole;
    }
  }

  /** play returns a player at the first frame, with looping turned off. */
  play() {
    return new KilnPlayer(this);
  }

  /** audioBuffer decodes the whole sound for Web Audio, with the gain. loopOf sets the loop of a source node that plays it. */
  audioBuffer(context) {
    const out = context.createBuffer(this.channels, this.frames, this.rate), player = this.play();
    const piece = new Float32Array(4096 * this.channels), to = Array.from({ length: this.channels }, (_, c) => out.getChannelData(c));
    for (let at = 0, n; (n = player.readFloat(piece)) > 0; at += n)
      for (let c = 0; c < this.channels; c++) for (let i = 0; i < n; i++) to[c][at + i] = piece[i * this.channels + c];
    return out;
  }

  /** loopOf sets the loop of an AudioBufferSourceNode to the sound's first loop that plays forward. */
  loopOf(node) {
    const l = this.loops.find((l) => l.kind === FORWARD);
    node.loop = l !== undefined;
    if (l) [node.loopStart, node.loopEnd] = [l.begin / this.rate, l.end / this.rate];
    return node;
  }

  // decode decodes a block into ints, or into reals if they are given. Floats are not converted.
  decode(ints, no) {
    const from = this.begin + Math.min(no * this.blockSize, this.size), size = Math.min(this.blockSize, this.begin + this.size - from);
    const n = Math.min(this.block, this.frames - no * this.block), v = this.view;
    if (this.coding === QOA) decodeQOA(ints, v, from, size, this.channels, n);
    else if (this.coding === ADPCM) decodeADPCM(ints, v, from, size, this.channels);
    else if (this.coding === PCM) for (let i = 0; i < size >> 1; i++) ints[i] = v.getInt16(from + 2 * i, true);
    else for (let i = 0; i < size >> 2; i++) ints[i] = v.getFloat32(from + 4 * i, true);
    return n;
  }
}

const SCALES = [1, 7, 21, 45, 84, 138, 211, 304, 421, 562, 731, 928, 1157, 1419, 1715, 2048];
// The values of the 3-bit codes of QOA, by scale: (scale * quarters + 2) / 4 with quarters of 3, 10, 18, 28, and their
// negatives.
const RESIDUALS = SCALES.map((s) => Int32Array.from([3, 10, 18, 28].flatMap((q) => { const r = Math.floor((s * q + 2) / 4); return [r, -r]; })));

const clamp = (v) => (v < -32768 ? -32768 : v > 32767 ? 32767 : v);

function decodeQOA(out, v, at, size, ch, n) {
  if (size < 8 + 16 * ch) return out.fill(0);
  const end = at + size, history = new Int32Array(4 * ch), weights = new Int32Array(4 * ch);
  at += 8;
  for (let c = 0; c < ch; c++, at += 16)
    for (let k = 0; k < 4; k++) [history[4 * c + k], weights[4 * c + k]] = [v.getInt16(at + 2 * k), v.getInt16(at + 8 + 2 * k)];
  for (let first = 0; first < n; first += 20)
    for (let c = 0; c < ch; c++, at += 8) {
      if (end - at < 8) return;
      const high = v.getUint32(at), low = v.getUint32(at + 4), table = RESIDUALS[high >>> 28], b = 4 * c, most = Math.min(20, n - first);
      let h0 = history[b], h1 = history[b + 1], h2 = history[b + 2], h3 = history[b + 3];
      let w0 = weights[b], w1 = weights[b + 1], w2 = weights[b + 2], w3 = weights[b + 3];
      for (let i = 0; i < most; i++) {
        const bit = 57 - 3 * i; // position of the lowest of the three bits
        const code = bit >= 32 ? (high >>> (bit - 32)) & 7 : bit > 29 ? ((high << (32 - bit)) | (low >>> bit)) & 7 : (low >>> bit) & 7;
        const r = table[code], d = r >> 4;
        const sum = (Math.imul(h0, w0) + Math.imul(h1, w1) + Math.imul(h2, w2) + Math.imul(h3, w3)) | 0;
        const x = clamp(((sum >> 13) + r) | 0);
        out[(first + i) * ch + c] = x;
        w0 = (h0 < 0 ? w0 - d : w0 + d) | 0;
        w1 = (h1 < 0 ? w1 - d : w1 + d) | 0;
        w2 = (h2 < 0 ? w2 - d : w2 + d) | 0;
        w3 = (h3 < 0 ? w3 - d : w3 + d) | 0;
        h0 = h1; h1 = h2; h2 = h3; h3 = x;
      }
      history[b] = h0; history[b + 1] = h1; history[b + 2] = h2; history[b + 3] = h3;
      weights[b] = w0; weights[b + 1] = w1; weights[b + 2] = w2; weights[b + 3] = w3;
    }
}

const IMA_INDEX = [-1, -1, -1, -1, 2, 4, 6, 8];
const IMA_STEPS = Int32Array.from([7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 21, 23, 25, 28, 31, 34, 37, 41, 45, 50, 55, 60, 66, 73, 80, 88, 97, 107, 118,
  130, 143, 157, 173, 190, 209, 230, 253, 279, 307, 337, 371, 408, 449, 494, 544, 598, 658, 724, 796, 876, 963, 1060, 1166, 1282, 1411, 1552, 1707,
  1878, 2066, 2272, 2499, 2749, 3024, 3327, 3660, 4026, 4428, 4871, 5358, 5894, 6484, 7132, 7845, 8630, 9493, 10442, 11487, 12635, 13899, 15289,
  16818, 18500, 20350, 22385, 24623, 27086, 29794, 32767]);

function decodeADPCM(out, v, at, size, ch) {
  const end = at + size, last = new Int32Array(ch), index = new Int32Array(ch);
  if (size < 4 * ch) return;
  for (let c = 0; c < ch; c++, at += 4) [last[c], index[c], out[c]] = [v.getInt16(at, true), Math.min(v.getUint8(at + 2), 88), v.getInt16(at, true)];
  for (let first = 1; end - at >= 4 * ch; first += 8)
    for (let c = 0; c < ch; c++, at += 4) {
      let bits = v.getUint32(at, true);
      for (let i = 0; i < 8; i++, bits >>>= 4) {
        const step = IMA_STEPS[index[c]];
        let d = step >> 3;
        if (bits & 4) d += step;
        if (bits & 2) d += step >> 1;
        if (bits & 1) d += step >> 2;
        last[c] = clamp(bits & 8 ? last[c] - d : last[c] + d);
        index[c] = Math.max(0, Math.min(88, index[c] + IMA_INDEX[bits & 7]));
        out[(first + i) * ch + c] = last[c];
      }
    }
}

// Rounds to nearest, halves to even. NaN becomes 0.
function toInt(v) {
  const x = v * 32768;
  if (!(x > -32768)) return Number.isNaN(x) ? 0 : -32768;
  if (x >= 32767) return 32767;
  const low = Math.floor(x), rest = x - low;
  return rest > 0.5 || (rest === 0.5 && low & 1) ? low + 1 : low;
}

/** KilnPlayer reads a sound. frame is the next frame to read. */
export class KilnPlayer {
  #sound; #back = false; #loop = null; #left = -1; #first = -1; #n = 0; #room;

  constructor(sound) {
    this.#sound = sound;
    this.frame = 0;
    this.#room = new (sound.coding === FLOAT ? Float32Array : Int16Array)(sound.block * sound.channels);
  }

  /** loop turns the sound's first loop on or off. When it is off, the sound plays to its end. */
  loop(on) {
    this.loopOver(on ? this.#sound.loops[0] : null);
  }

  /** loopOver sets another loop. A loop outside of the sound's frames turns looping off. */
  loopOver(l) {
    this.#back = false;
    this.#loop = l && l.begin >= 0 && l.begin < l.end && l.end <= this.#sound.frames ? { kind: FORWARD, count: 0, ...l } : null;
    this.#left = this.#loop && this.#loop.count > 0 ? this.#loop.count - 1 : -1;
  }

  /** seek moves to a frame. The sound plays forward from there. */
  seek(frame) {
    this.frame = Math.max(0, Math.min(Math.floor(frame), this.#sound.frames));
    this.#back = false;
  }

  #turn() {
    const l = this.#loop;
    if (!l) return;
    const end = !this.#back && this.frame === l.end, begin = this.#back && this.frame < l.begin;
    if (!end && !begin) return;
    if (this.#left === 0) {
      if (begin) this.frame = l.end; // continue from the end of the loop
      this.#loop = null;
      this.#back = false;
      return;
    }
    if (this.#left > 0) this.#left--;
    if (end && l.kind === FORWARD) this.frame = l.begin;
    else if (end) [this.#back, this.frame] = [true, Math.max(l.begin, l.end - (l.kind === PING_PONG ? 2 : 1))];
    else if (l.kind === PING_PONG) [this.#back, this.frame] = [false, Math.min(l.begin + 1, l.end - 1)];
    else this.frame = l.end - 1;
  }

  #run(dst, put) {
    const s = this.#sound, ch = s.channels, room = Math.floor(dst.length / ch);
    let done = 0;
    while (done < room) {
      this.#turn();
      if (this.frame >= s.frames || this.frame < 0) break;
      const no = Math.floor(this.frame / s.block);
      if (no * s.block !== this.#first) [this.#n, this.#first] = [s.decode(this.#room, no), no * s.block];
      const offset = this.frame - this.#first;
      let n = 1;
      if (this.#back) this.frame--;
      else {
        n = Math.min(this.#n - offset, room - done);
        if (this.#loop && this.frame < this.#loop.end) n = Math.min(n, this.#loop.end - this.frame);
        this.frame += n;
      }
      for (let i = 0; i < n * ch; i++) dst[done * ch + i] = put(this.#room[offset * ch + i]);
      done += n;
    }
    return done;
  }

  /**
   * read fills an Int16Array with interleaved frames and returns their number. At the end it returns fewer frames than
   * fit, and then 0.
   */
  read(dst) {
    return this.#run(dst, this.#sound.coding === FLOAT ? toInt : (v) => v);
  }

  /** readFloat fills a Float32Array with samples from -1 to 1. The gain is applied. */
  readFloat(dst) {
    const gain = 10 ** (this.#sound.gain / 20) / (this.#sound.coding === FLOAT ? 1 : 32768);
    return this.#run(dst, (v) => v * gain);
  }
}
