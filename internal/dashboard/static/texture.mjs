// Looking at a picture: the wheel goes nearer, dragging moves it, a double click brings all of it back, and the pixel under the
// pointer is told.

export function viewer(box) {
  const img = box.querySelector("img"), out = document.getElementById("readout");
  const probe = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  let scale = 1, x = 0, y = 0, pixels = null;

  const draw = () => { img.style.transform = scale === 1 && !x && !y ? "" : `translate(${x}px, ${y}px) scale(${scale})`; };
  const fit = () => { // small pictures fill the box by a whole number, so that pixels stay square
    const room = Math.min((box.clientWidth - 32) / img.naturalWidth, (box.clientHeight - 32) / img.naturalHeight);
    const times = room >= 1 ? Math.min(32, Math.floor(room)) : room;
    img.style.width = `${Math.max(1, img.naturalWidth * times)}px`;
    img.style.maxWidth = img.style.maxHeight = "none";
    img.style.imageRendering = times < 1 ? "auto" : "pixelated";
    scale = 1, x = y = 0, pixels = null;
    draw();
  };
  const read = () => {
    probe.canvas.width = img.naturalWidth;
    probe.canvas.height = img.naturalHeight;
    probe.drawImage(img, 0, 0);
    return probe.getImageData(0, 0, img.naturalWidth, img.naturalHeight);
  };

  img.addEventListener("load", fit);
  img.addEventListener("error", async () => { // say why, not only that
    const answer = await fetch(img.src);
    box.textContent = answer.ok ? "The browser cannot show this picture." : await answer.text();
  });
  if (img.complete && img.naturalWidth) fit();
  new ResizeObserver(() => { if (img.naturalWidth && scale === 1) fit(); }).observe(box);

  box.addEventListener("wheel", event => {
    event.preventDefault();
    const r = img.getBoundingClientRect(), was = scale;
    scale = Math.min(64, Math.max(.25, scale * Math.exp(-event.deltaY / 300)));
    x -= (event.clientX - r.left) * (scale / was - 1);
    y -= (event.clientY - r.top) * (scale / was - 1);
    if (scale > 1) img.style.imageRendering = "pixelated";
    draw();
  }, {passive: false});
  box.addEventListener("pointerdown", event => { if (event.button === 0) box.setPointerCapture(event.pointerId); });
  box.addEventListener("pointermove", event => {
    if (event.buttons & 1) { x += event.movementX; y += event.movementY; draw(); }
    const r = img.getBoundingClientRect();
    const px = Math.floor((event.clientX - r.left) / r.width * img.naturalWidth), py = Math.floor((event.clientY - r.top) / r.height * img.naturalHeight);
    if (px < 0 || py < 0 || px >= img.naturalWidth || py >= img.naturalHeight) { out.textContent = ""; return; }
    if (img.naturalWidth * img.naturalHeight > 1 << 24) { out.textContent = `${px}, ${py}`; return; }
    pixels ??= read();
    const at = 4 * (py * pixels.width + px);
    out.textContent = `${px}, ${py}   ${[...pixels.data.subarray(at, at + 4)].join(" ")}`;
  });
  box.addEventListener("pointerleave", () => { out.textContent = ""; });
  box.addEventListener("dblclick", fit);
}
