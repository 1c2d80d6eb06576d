// Converts and draws resources in the page, in the same way as scene.go and resources.go.

/**
 * makers convert content to what is drawn, by the type of the resource. find is a parcel, or a live library; made is
 * what the resource needs, by id.
 */
export const makers = {
  texture: (bytes) => picture(bytes),
  atlas: (bytes, resource, find, made) => {
    const table = parse(bytes);
    const pages = table.pages.map((page) => made.get(find.findUUID(resource.uuid, page.sub_id).id));
    return { frames: table.frames, animations: table.animations ?? {}, pages };
  },
  data: (bytes, resource, find, made) => makeScene(parse(bytes), (name) => made.get(find.findName(name).id)),
};

const parse = (bytes) => JSON.parse(new TextDecoder().decode(bytes));

/** picture reads level 0 of a KTX 2.0 file with 8 bits a channel and premultiplied colours. */
function picture(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const format = view.getUint32(12, true), [rgba8, rgba8srgb] = [37, 43];
  if (format !== rgba8 && format !== rgba8srgb || view.getUint32(44, true) !== 0) throw new Error(`this page shows RGBA8 alone, not format ${format}`);
  const width = view.getUint32(20, true), height = view.getUint32(24, true) || 1;
  const from = bytes.subarray(Number(view.getBigUint64(80, true)), Number(view.getBigUint64(80, true)) + 4 * width * height);
  const image = new ImageData(width, height); // it needs straight colours
  for (let i = 0; i < from.length; i += 4) {
    const alpha = from[i + 3];
    for (let c = 0; c < 3; c++) image.data[i + c] = alpha ? Math.round(from[i + c] * 255 / alpha) : 0;
    image.data[i + 3] = alpha;
  }
  const canvas = new OffscreenCanvas(width, height);
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

/** makeScene replaces names in the data by their resources. */
function makeScene(data, find) {
  return {
    ...data,
    backdrop: data.backdrop.map(find),
    ground: { ...data.ground, texture: find(data.ground.texture) },
    runners: data.runners.map((r) => ({ begins: 0, ...r, atlas: find(r.atlas) })),
    portraits: data.portraits.map((p) => ({ ...p, texture: find(p.texture) })),
    hud: { ...data.hud, atlas: find(data.hud.atlas) },
  };
}

/** draw draws the scene at a time after its begin. */
export function draw(context, scene, seconds) {
  const [width] = scene.size;
  for (const image of scene.backdrop) context.drawImage(image, 0, 0);
  const { texture, y, speed } = scene.ground;
  for (let x = -Math.floor((seconds * speed) % texture.width); x < width; x += texture.width) context.drawImage(texture, x, y);
  for (const r of scene.runners) {
    const frames = r.atlas.animations[r.animation];
    sprite(context, r.atlas, frames[Math.floor((seconds + r.begins) * r.rate) % frames.length], ...r.at);
  }
  context.imageSmoothingEnabled = false;
  for (const p of scene.portraits) context.drawImage(p.texture, ...p.at, ...p.size);
  scene.hud.hearts.forEach((name, i) => sprite(context, scene.hud.atlas, name, 8 + 34 * i, 8));
  coins(context, scene, width);
}

function sprite(context, atlas, name, x, y) {
  const f = atlas.frames[name];
  context.drawImage(atlas.pages[f.page], f.x, f.y, f.w, f.h, x + f.offset_x, y + f.offset_y, f.w, f.h);
}

const digitWidth = 12; // of each of the ten in the picture "digits"

function coins(context, { hud }, width) {
  const text = String(hud.coins), digits = hud.atlas.frames.digits;
  let x = width - 8 - digitWidth * text.length;
  sprite(context, hud.atlas, "coin", x - 30, 8);
  for (const c of text) {
    // The trimmed left edge of the picture is not on the page: the first digit is cut there.
    const left = Number(c) * digitWidth - digits.offset_x, skip = Math.max(0, -left), w = Math.min(digitWidth - skip, digits.w - left - skip);
    context.drawImage(hud.atlas.pages[digits.page], digits.x + left + skip, digits.y, w, digits.h, x + skip, 11 + digits.offset_y, w, digits.h);
    x += digitWidth;
  }
}
