// A .glb, turned in WebGL 2: meshes with their base colours, skins, and the first animation. What of glTF 2.0 is left out: sparse
// accessors, morph targets, lights, cameras, and all of a material but its base colour.

import {parse, Scene} from "./gltf.mjs";
import * as m4 from "./matrix.mjs";
import {zooming} from "./texture.mjs";

const vertex = `#version 300 es
layout(location=0) in vec3 position; layout(location=1) in vec3 normal; layout(location=2) in vec2 uv;
layout(location=3) in vec4 color; layout(location=4) in vec4 joints; layout(location=5) in vec4 weights;
uniform mat4 world, view; uniform bool skinned; uniform highp sampler2D bones;
out vec3 n; out vec2 t; out vec4 c;
mat4 bone(float j) { int y = int(j); return mat4(texelFetch(bones, ivec2(0, y), 0), texelFetch(bones, ivec2(1, y), 0), texelFetch(bones, ivec2(2, y), 0), texelFetch(bones, ivec2(3, y), 0)); }
void main() {
  mat4 w = world;
  if (skinned) w = weights.x * bone(joints.x) + weights.y * bone(joints.y) + weights.z * bone(joints.z) + weights.w * bone(joints.w);
  n = mat3(w) * normal; t = uv; c = color;
  gl_Position = view * (w * vec4(position, 1));
}`;

// Light from above and from the camera's left, so that shapes are told without any lamps of the model's own.
const fragment = `#version 300 es
precision highp float;
in vec3 n; in vec2 t; in vec4 c; out vec4 o;
uniform vec4 base; uniform sampler2D map; uniform bool mapped; uniform float cutoff; uniform vec3 lamp;
void main() {
  vec4 p = base * c * (mapped ? texture(map, t) : vec4(1));
  if (p.a < cutoff) discard;
  vec3 d = normalize(gl_FrontFacing ? n : -n);
  float light = .52 + .36 * max(0., dot(d, lamp)) + .16 * d.y;
  o = vec4(p.rgb * light, 1.) * p.a;
}`;

export async function show(box) {
  const canvas = box.querySelector("canvas"), facts = box.querySelector("[data-facts]"), empty = box.querySelector(".empty");
  const fail = text => { empty.textContent = text; empty.hidden = false; };
  const gl = canvas.getContext("webgl2", {antialias: true, premultipliedAlpha: true});
  if (!gl) return fail("This browser has no WebGL 2.");
  let scene;
  try {
    const answer = await fetch(box.dataset.model);
    if (!answer.ok) throw new Error(await answer.text());
    scene = new Scene(parse(await answer.arrayBuffer()));
  } catch (err) {
    return fail(`The model cannot be shown: ${err.message}`);
  }
  if (!scene.draws.length) return fail("There is no mesh in it.");
  const view = new View(gl, canvas, scene, new URL(box.dataset.model, location.href));
  facts.textContent = scene.facts();
  box.dataset.drawn = "0";
  view.run(box);
}

const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

class View {
  constructor(gl, canvas, scene, address) {
    Object.assign(this, {gl, canvas, scene, address, box: canvas.parentElement, yaw: .6, pitch: .25, zoom: 1, spin: !still()});
    this.program = link(gl);
    this.at = Object.fromEntries(["world", "view", "skinned", "bones", "base", "map", "mapped", "cutoff", "lamp"].map(n => [n, gl.getUniformLocation(this.program, n)]));
    this.textures = new Map();
    for (const d of scene.draws) this.upload(d);
    this.bones = gl.createTexture();
    this.bounds = scene.bounds();
    this.controls();
  }

  upload(d) {
    const gl = this.gl;
    d.vao = gl.createVertexArray();
    gl.bindVertexArray(d.vao);
    const widths = [3, 3, 2, 4, 4, 4], rest = [[0, 0, 0], [0, 1, 0], [0, 0], [1, 1, 1, 1], [0, 0, 0, 0], [1, 0, 0, 0]];
    d.attributes.forEach((data, i) => {
      if (!data) { gl.vertexAttrib4f(i, ...[...rest[i], 0, 0, 1].slice(0, 4)); return; }
      gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
      gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
      gl.enableVertexAttribArray(i);
      gl.vertexAttribPointer(i, widths[i], gl.FLOAT, false, 0, 0);
    });
    if (d.indices) {
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
      gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, d.indices, gl.STATIC_DRAW);
    }
    gl.bindVertexArray(null);
    d.sampling = gl.createSampler(); // glTF's numbers are those of WebGL
    const s = d.sampler, how = {TEXTURE_WRAP_S: s.wrapS ?? gl.REPEAT, TEXTURE_WRAP_T: s.wrapT ?? gl.REPEAT, TEXTURE_MAG_FILTER: s.magFilter ?? gl.LINEAR, TEXTURE_MIN_FILTER: s.minFilter ?? gl.LINEAR_MIPMAP_LINEAR};
    for (const name in how) gl.samplerParameteri(d.sampling, gl[name], how[name]);
    if (d.image && !this.textures.has(d.image)) this.texture(d.image);
  }

  // texture loads a picture: from inside the model, or a product beside it, which our server decodes.
  async texture(image) {
    const gl = this.gl;
    this.textures.set(image, null);
    let blob = image.bytes && new Blob([image.bytes], {type: image.mimeType});
    try {
      if (image.uri) {
        const at = new URL(image.uri, this.address);
        at.search = "";
        at.pathname = at.pathname.replace(/^\/product\//, "/picture/");
        const answer = await fetch(at);
        if (!answer.ok) return;
        blob = await answer.blob();
      }
      const bitmap = await createImageBitmap(blob, {premultiplyAlpha: "none"});
      const t = gl.createTexture();
      gl.bindTexture(gl.TEXTURE_2D, t);
      gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, gl.RGBA, gl.UNSIGNED_BYTE, bitmap);
      gl.generateMipmap(gl.TEXTURE_2D);
      this.textures.set(image, t);
      this.box.dataset.textures = String(+(this.box.dataset.textures ?? 0) + 1);
    } catch { /* it stays without: the shape is there, and the picture's own page says what is wrong with it */ }
  }

  controls() {
    const c = this.canvas;
    c.addEventListener("pointerdown", e => { c.setPointerCapture(e.pointerId); this.spin = false; });
    c.addEventListener("pointermove", e => {
      if (!(e.buttons & 1)) return;
      this.yaw -= e.movementX / 120;
      this.pitch = Math.max(-1.5, Math.min(1.5, this.pitch + e.movementY / 120));
    });
    const nearer = times => { this.zoom = Math.max(.2, Math.min(8, this.zoom * times)); };
    const all = () => { this.yaw = .6, this.pitch = .25, this.zoom = 1, this.spin = !still(); };
    c.addEventListener("wheel", e => { e.preventDefault(); nearer(Math.exp(-e.deltaY / 500)); }, {passive: false});
    c.addEventListener("dblclick", all);
    zooming(this.box, times => times ? nearer(Math.sqrt(times)) : all());
    c.addEventListener("keydown", e => {
      const turn = {ArrowLeft: [-.1, 0], ArrowRight: [.1, 0], ArrowUp: [0, .1], ArrowDown: [0, -.1]}[e.key];
      if (turn) { e.preventDefault(); this.spin = false; this.yaw += turn[0]; this.pitch += turn[1]; }
    });
  }

  run(box) {
    let was = 0;
    const frame = now => {
      if (!box.isConnected) { this.gl.getExtension("WEBGL_lose_context")?.loseContext(); return; }
      if (this.spin) this.yaw += Math.min(.05, (now - was) / 3000);
      was = now;
      this.draw(now / 1000);
      box.dataset.drawn = String(+box.dataset.drawn + 1);
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  draw(seconds) {
    const {gl, canvas, scene, at} = this;
    const w = canvas.clientWidth * devicePixelRatio | 0, h = canvas.clientHeight * devicePixelRatio | 0;
    if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
    gl.viewport(0, 0, w, h);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.useProgram(this.program);
    const {center, radius} = this.bounds, far = radius * 3.1 / this.zoom;
    const eye = [center[0] + far * Math.sin(this.yaw) * Math.cos(this.pitch), center[1] + far * Math.sin(this.pitch), center[2] + far * Math.cos(this.yaw) * Math.cos(this.pitch)];
    const aspect = w / Math.max(1, h), angle = aspect < 1 ? 2 * Math.atan(.364 / aspect) : .7;
    gl.uniformMatrix4fv(at.view, false, m4.multiply(m4.perspective(angle, aspect, far / 100, far + radius * 4), m4.lookAt(eye, center)));
    gl.uniform3fv(at.lamp, m4.normalize([Math.sin(this.yaw - .7), .9, Math.cos(this.yaw - .7)]));
    gl.enable(gl.DEPTH_TEST);
    gl.uniform1i(at.map, 0);
    gl.uniform1i(at.bones, 1);
    scene.pose(seconds);
    for (const blend of [false, true]) {
      gl[blend ? "enable" : "disable"](gl.BLEND);
      gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
      for (const d of scene.draws) if (d.blend === blend) this.drawOne(d);
    }
  }

  drawOne(d) {
    const {gl, at} = this;
    gl.uniformMatrix4fv(at.world, false, d.node.world);
    gl.uniform1i(at.skinned, d.skin ? 1 : 0);
    gl.activeTexture(gl.TEXTURE1);
    gl.bindTexture(gl.TEXTURE_2D, this.bones);
    if (d.skin) {
      const data = this.scene.bones(d.skin);
      gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA32F, 4, data.length / 16, 0, gl.RGBA, gl.FLOAT, data);
      gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
      gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
    }
    const map = d.image && this.textures.get(d.image);
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D, map ?? null);
    gl.bindSampler(0, d.sampling);
    gl.uniform1i(at.mapped, map ? 1 : 0);
    gl.uniform4fv(at.base, d.base);
    gl.uniform1f(at.cutoff, d.cutoff);
    gl[d.twoSided ? "disable" : "enable"](gl.CULL_FACE);
    gl.frontFace(m4.determinant(d.node.world) < 0 && !d.skin ? gl.CW : gl.CCW);
    gl.bindVertexArray(d.vao);
    if (d.indices) gl.drawElements(d.mode, d.indices.length, gl.UNSIGNED_INT, 0); else gl.drawArrays(d.mode, 0, d.count);
  }
}

function link(gl) {
  const p = gl.createProgram();
  for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const s = gl.createShader(kind);
    gl.shaderSource(s, text);
    gl.compileShader(s);
    gl.attachShader(p, s);
  }
  gl.linkProgram(p);
  if (!gl.getProgramParameter(p, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(p));
  return p;
}
