// Reads a .glb (glTF 2.0, 3.6 and chapter 12): what is drawn, where its nodes are, and how they move.

import * as m4 from "./matrix.mjs";

const most = 2e7; // numbers in one accessor
const widths = {SCALAR: 1, VEC2: 2, VEC3: 3, VEC4: 4, MAT4: 16};
const kinds = {5120: [Int8Array, 127], 5121: [Uint8Array, 255], 5122: [Int16Array, 32767], 5123: [Uint16Array, 65535], 5125: [Uint32Array, 4294967295], 5126: [Float32Array, 1]};

// parse takes the file apart: {json, bin}.
export function parse(buffer) {
  const view = new DataView(buffer);
  if (buffer.byteLength < 20 || view.getUint32(0, true) !== 0x46546c67) throw new Error("it is no .glb");
  const length = view.getUint32(12, true);
  if (20 + length > buffer.byteLength) throw new Error("it ends too early");
  const json = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 20, length)));
  const at = 20 + length;
  const bin = at + 8 <= buffer.byteLength ? new Uint8Array(buffer, at + 8, Math.min(view.getUint32(at, true), buffer.byteLength - at - 8)) : new Uint8Array();
  return {json, bin};
}

export class Scene {
  constructor({json, bin}) {
    this.json = json;
    this.bin = bin;
    this.cache = new Map();
    this.images = (json.images ?? []).map(i => ({...i, bytes: i.bufferView === undefined ? null : this.slice(i.bufferView)}));
    this.nodes = (json.nodes ?? []).map(n => ({...n, t: n.translation ?? [0, 0, 0], r: n.rotation ?? [0, 0, 0, 1], s: n.scale ?? [1, 1, 1], world: m4.identity(), parent: null}));
    for (const n of this.nodes) for (const c of n.children ?? []) if (this.nodes[c]) this.nodes[c].parent = n;
    this.draws = [];
    for (const n of this.inScene()) for (const p of json.meshes?.[n.mesh]?.primitives ?? []) this.add(n, p);
    this.tracks = this.animation(json.animations?.[0]);
    this.pose(0);
  }

  // inScene are the nodes of the scene that is shown first, with what hangs on them.
  inScene() {
    const scene = this.json.scenes?.[this.json.scene ?? 0], all = new Set();
    const walk = i => { const n = this.nodes[i]; if (n && !all.has(n)) { all.add(n); (n.children ?? []).forEach(walk); } };
    (scene?.nodes ?? this.nodes.map((n, i) => n.parent ? -1 : i)).forEach(walk);
    return all;
  }

  add(node, p) {
    const a = p.attributes ?? {};
    if (a.POSITION === undefined) return;
    const material = this.json.materials?.[p.material] ?? {}, pbr = material.pbrMetallicRoughness ?? {};
    const texture = this.json.textures?.[pbr.baseColorTexture?.index];
    const position = this.numbers(a.POSITION), indices = p.indices === undefined ? null : Uint32Array.from(this.numbers(p.indices, false));
    let color = a.COLOR_0 === undefined ? null : this.numbers(a.COLOR_0);
    if (color && this.json.accessors[a.COLOR_0].type === "VEC3") color = widen(color);
    const optional = name => a[name] === undefined ? null : this.numbers(a[name], name !== "JOINTS_0");
    this.draws.push({
      node, skin: this.json.skins?.[node.skin], mode: p.mode ?? 4, indices, count: position.length / 3,
      attributes: [position, optional("NORMAL") ?? normals(position, indices), optional(`TEXCOORD_${pbr.baseColorTexture?.texCoord ?? 0}`), color, optional("JOINTS_0"), optional("WEIGHTS_0")],
      base: pbr.baseColorFactor ?? [1, 1, 1, 1], image: this.images[texture?.extensions?.KHR_texture_basisu?.source ?? texture?.source],
      sampler: this.json.samplers?.[texture?.sampler] ?? {},
      blend: material.alphaMode === "BLEND", cutoff: material.alphaMode === "MASK" ? material.alphaCutoff ?? .5 : 0, twoSided: !!material.doubleSided,
    });
  }

  slice(view) {
    const v = this.json.bufferViews?.[view];
    if (!v || v.buffer) throw new Error("a buffer is not in the file");
    const from = v.byteOffset ?? 0;
    if (from + v.byteLength > this.bin.length) throw new Error("a buffer view is longer than the file");
    return this.bin.subarray(from, from + v.byteLength);
  }

  // numbers are those of an accessor, as floats; normalized integers become 0 to 1.
  numbers(i, scaled = true) {
    const key = `${i} ${scaled}`;
    if (this.cache.has(key)) return this.cache.get(key);
    const a = this.json.accessors?.[i], [Kind, whole] = kinds[a?.componentType] ?? [], width = widths[a?.type];
    if (!Kind || !width || !(a.count * width <= most)) throw new Error(`accessor ${i} is none, or too large`);
    const out = scaled ? new Float32Array(a.count * width) : new Float64Array(a.count * width);
    if (a.bufferView !== undefined) {
      const bytes = this.slice(a.bufferView), size = Kind.BYTES_PER_ELEMENT, stride = this.json.bufferViews[a.bufferView].byteStride ?? size * width;
      const from = a.byteOffset ?? 0;
      if (from + stride * (a.count - 1) + size * width > bytes.length) throw new Error(`accessor ${i} is longer than its buffer`);
      const one = new DataView(bytes.buffer, bytes.byteOffset), read = `get${Kind.name.replace("Array", "")}`;
      for (let n = 0; n < a.count; n++) for (let c = 0; c < width; c++) {
        const v = one[read](from + n * stride + c * size, true);
        out[n * width + c] = scaled && a.normalized ? Math.max(-1, v / whole) : v;
      }
    }
    this.cache.set(key, out);
    return out;
  }

  animation(a) {
    return (a?.channels ?? []).filter(c => this.nodes[c.target.node] && ["translation", "rotation", "scale"].includes(c.target.path)).map(c => {
      const s = a.samplers[c.sampler], times = this.numbers(s.input);
      return {node: this.nodes[c.target.node], to: c.target.path[0], times, values: this.numbers(s.output), how: s.interpolation ?? "LINEAR"};
    }).filter(t => t.times.length);
  }

  // pose moves nodes to where they are at a time.
  pose(seconds) {
    const length = Math.max(0, ...this.tracks.map(t => t.times.at(-1)));
    for (const t of this.tracks) t.node[t.to] = sample(t, length ? seconds % length : 0);
    const done = new Set();
    const place = n => {
      if (done.has(n)) return;
      done.add(n);
      const local = n.matrix ? new Float32Array(n.matrix) : m4.compose(n.t, n.r, n.s);
      if (n.parent) place(n.parent);
      n.world = n.parent ? m4.multiply(n.parent.world, local) : local;
    };
    this.nodes.forEach(place);
  }

  // bones are the matrices of a skin's joints, one after the other.
  bones(skin) {
    const out = new Float32Array(16 * skin.joints.length), inverse = skin.inverseBindMatrices === undefined ? null : this.numbers(skin.inverseBindMatrices);
    skin.joints.forEach((j, i) => out.set(inverse ? m4.multiply(this.nodes[j].world, inverse.subarray(16 * i, 16 * i + 16)) : this.nodes[j].world, 16 * i));
    return out;
  }

  // bounds is a ball around all that is drawn.
  bounds() {
    const low = [Infinity, Infinity, Infinity], high = [-Infinity, -Infinity, -Infinity];
    for (const d of this.draws) {
      const p = d.attributes[0], step = 3 * Math.max(1, Math.floor(p.length / 3 / 5000)), bone = d.skin && this.bones(d.skin).subarray(0, 16);
      for (let i = 0; i + 2 < p.length; i += step) m4.apply(bone ?? d.node.world, [p[i], p[i + 1], p[i + 2]]).forEach((v, k) => { low[k] = Math.min(low[k], v); high[k] = Math.max(high[k], v); });
    }
    return {center: low.map((v, k) => (v + high[k]) / 2), radius: Math.max(1e-6, Math.hypot(...low.map((v, k) => high[k] - v)) / 2)};
  }

  facts() {
    const n = (count, one, many = `${one}s`) => `${count.toLocaleString("en").replaceAll(",", "\u202f")} ${count === 1 ? one : many}`;
    const triangles = this.draws.reduce((sum, d) => sum + (d.mode === 4 ? Math.floor((d.indices?.length ?? d.count) / 3) : 0), 0);
    const parts = [n(triangles, "triangle"), n(this.draws.length, "draw"), n(this.nodes.length, "node")];
    if (this.json.materials?.length) parts.push(n(this.json.materials.length, "material"));
    if (this.json.skins?.length) parts.push(n(this.json.skins.length, "skin"));
    if (this.json.animations?.length) parts.push(n(this.json.animations.length, "animation"));
    return parts.join(" · ");
  }
}

function widen(rgb) {
  const out = new Float32Array(rgb.length / 3 * 4).fill(1);
  for (let i = 0; i < rgb.length / 3; i++) out.set(rgb.subarray(3 * i, 3 * i + 3), 4 * i);
  return out;
}

// sample is a track's value at a time. Turns are blended and brought to length 1: between close keys that is as good as slerp.
function sample({times, values, how, to}, t) {
  const width = to === "r" ? 4 : 3, cubic = how === "CUBICSPLINE";
  let k = 0;
  while (k < times.length - 1 && times[k + 1] <= t) k++;
  const value = i => values.subarray((cubic ? 3 * i + 1 : i) * width, (cubic ? 3 * i + 1 : i) * width + width);
  const a = [...value(k)];
  if (how === "STEP" || k + 1 >= times.length || t <= times[k]) return a;
  const b = value(k + 1), f = (t - times[k]) / (times[k + 1] - times[k]);
  const sign = to === "r" && a.reduce((sum, v, i) => sum + v * b[i], 0) < 0 ? -1 : 1;
  const mix = a.map((v, i) => v + f * (sign * b[i] - v));
  return to === "r" ? m4.normalize(mix) : mix;
}

// normals are those of the faces, where a model has none.
function normals(p, indices) {
  const out = new Float32Array(p.length), n = indices ?? Uint32Array.from({length: p.length / 3}, (_, i) => i);
  for (let i = 0; i + 2 < n.length; i += 3) {
    const [a, b, c] = [n[i] * 3, n[i + 1] * 3, n[i + 2] * 3], u = [0, 1, 2].map(k => p[b + k] - p[a + k]), v = [0, 1, 2].map(k => p[c + k] - p[a + k]);
    const f = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
    for (const at of [a, b, c]) for (let k = 0; k < 3; k++) out[at + k] += f[k];
  }
  return out;
}
