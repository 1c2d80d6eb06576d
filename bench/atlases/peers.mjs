// Lays out the task from standard input with each peer, and prints the results. See main.go.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
const task = JSON.parse(readFileSync(0, "utf8"));
const { MaxRectsPacker } = await import(process.cwd() + "/node_modules/maxrects-packer/dist/maxrects-packer.mjs");
const Bin = createRequire(process.cwd() + "/x.js")("free-tex-packer-core/packers/MaxRectsBin.js");
const answers = [];

function timed(packer, pack) {
  const start = process.hrtime.bigint();
  const made = pack();
  if (made) answers.push({ packer, seconds: Number(process.hrtime.bigint() - start) / 1e9, ...made });
}

// The better result of its two rules, with all options on. It takes minutes for 5,000 on a page of any size.
timed("maxrects-packer", () => {
  if (!task.pot && task.sizes.length > 2000) return null;
  let best = null;
  for (const logic of [0, 1]) {
    const p = new MaxRectsPacker(task.max, task.max, task.padding, { smart: true, pot: task.pot, square: false, allowRotation: task.rotate, logic });
    p.addArray(task.sizes.map((s, i) => ({ width: s.W, height: s.H, data: i })));
    const pages = p.bins.map((b) => ({ W: b.width, H: b.height }));
    const area = pages.reduce((a, b) => a + b.W * b.H, 0);
    if (best && best.area <= area) continue;
    const places = [];
    p.bins.forEach((b, page) => b.rects.forEach((r) => (places[r.data] = { Page: page, X: r.x, Y: r.y, Turned: !!r.rot })));
    best = { area, pages, places };
  }
  return best;
});

// The search of libGDX's TexturePacker: all five rules, where each step places the best of all remaining rectangles, on
// growing pages. It takes the smallest page that holds all, or the fullest page of the largest size, and continues with
// the rest. The work is at least n², so it is left out for many images.
timed("MaxRects as libGDX has it", () => {
  if (task.sizes.length > (task.pot ? 500 : 200)) return null;
  const pad = task.padding;
  const fill = (rects, w, h) => {
    let best = null;
    for (const method of Object.values(Bin.methods)) {
      const bin = new Bin(w + pad, h + pad, task.rotate);
      const placed = bin.pack(rects.map((r) => ({ frame: { w: r.w + pad, h: r.h + pad }, i: r.i })), method);
      const area = placed.reduce((a, r) => a + r.frame.w * r.frame.h, 0);
      if (!best || placed.length > best.placed.length || (placed.length === best.placed.length && area > best.area)) best = { placed, area };
    }
    return best.placed;
  };
  const sizesFor = (rects) => {
    const list = [];
    if (task.pot) for (let w = 1; w <= task.max; w *= 2) for (let h = 1; h <= task.max; h *= 2) list.push([w, h]);
    else {
      const area = rects.reduce((a, r) => a + (r.w + pad) * (r.h + pad), 0);
      for (let a = area; ; a *= 1.02) {
        const side = Math.min(Math.ceil(Math.sqrt(a)), task.max);
        list.push([side, side]);
        if (side === task.max) break;
      }
    }
    const least = rects.reduce((a, r) => a + r.w * r.h, 0);
    return list.filter(([w, h]) => w * h >= least).sort((a, b) => a[0] * a[1] - b[0] * b[1] || Math.max(...a) - Math.max(...b));
  };
  let rest = task.sizes.map((s, i) => ({ w: s.W, h: s.H, i }));
  const pages = [], places = [];
  while (rest.length) {
    let page = null;
    for (const [w, h] of sizesFor(rest)) {
      const placed = fill(rest, w, h);
      if (placed.length === rest.length) { page = { w, h, placed }; break; }
    }
    page ??= { w: task.max, h: task.max, placed: fill(rest, task.max, task.max) };
    const done = new Set();
    let right = 0, bottom = 0;
    for (const r of page.placed) {
      const s = task.sizes[r.i], [w, h] = r.rotated ? [s.H, s.W] : [s.W, s.H];
      places[r.i] = { Page: pages.length, X: r.frame.x, Y: r.frame.y, Turned: !!r.rotated };
      right = Math.max(right, r.frame.x + w);
      bottom = Math.max(bottom, r.frame.y + h);
      done.add(r.i);
    }
    pages.push(task.pot ? { W: page.w, H: page.h } : { W: right, H: bottom });
    rest = rest.filter((r) => !done.has(r.i));
  }
  return { pages, places };
});

console.log(JSON.stringify(answers));
