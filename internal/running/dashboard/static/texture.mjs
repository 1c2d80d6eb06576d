// Looking at a picture: the wheel and the buttons go nearer, dragging moves it, a double click brings all of it back, and how large it is
// shown and the pixel under the pointer are told.

export function viewer(box) {
  const img = box.querySelector("img"), out = document.getElementById("readout");
  const probe = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  let scale = 1, x = 0, y = 0, pixels = null;

  let shown = 1; // screen pixels a pixel of the picture, when all of it is shown
  const draw = () => {
    img.style.transform = scale === 1 && !x && !y ? "" : `translate(${x}px, ${y}px) scale(${scale})`;
    told();
  };
  const told = (more = "") => { out.textContent = `${more}${more && "   "}${Math.round(100 * shown * scale)} %`; };
  const fit = () => { // small pictures fill the box by a whole number, so that pixels stay square
    const room = Math.min((box.clientWidth - 32) / img.naturalWidth, (box.clientHeight - 32) / img.naturalHeight);
    const times = room >= 1 ? Math.min(32, Math.floor(room)) : room;
    img.style.width = `${Math.max(1, img.naturalWidth * times)}px`;
    img.style.maxWidth = img.style.maxHeight = "none";
    img.style.imageRendering = times < 1 ? "auto" : "pixelated";
    scale = 1, x = y = 0, pixels = null, shown = times;
    draw();
  };
  const read = () => {
    probe.canvas.width = img.naturalWidth;
    probe.canvas.height = img.naturalHeight;
    probe.drawImage(img, 0, 0);
    return probe.getImageData(0, 0, img.naturalWidth, img.naturalHeight);
  };

  img.addEventListener("load", fit);
  const broken = async () => { // say why, not only that
    const answer = await fetch(img.src);
    box.textContent = answer.ok ? "The browser cannot show this picture." : `This picture cannot be shown: ${await answer.text()}`;
    box.classList.add("broken");
    box.closest(".viewer").querySelector(".zoom").hidden = true;
    out.textContent = "";
  };
  img.addEventListener("error", broken);
  if (img.complete) img.naturalWidth ? fit() : broken(); // it failed before this script ran
  new ResizeObserver(() => { if (img.naturalWidth && scale === 1) fit(); }).observe(box);

  // nearer keeps what is at a point of the window where it is.
  const nearer = (times, left, top) => {
    const r = img.getBoundingClientRect(), was = scale;
    scale = Math.min(64, Math.max(.25, scale * times));
    x -= (left - r.left) * (scale / was - 1);
    y -= (top - r.top) * (scale / was - 1);
    img.style.imageRendering = shown * scale < 1 ? "auto" : "pixelated";
    draw();
  };
  box.addEventListener("wheel", event => {
    event.preventDefault();
    nearer(Math.exp(-event.deltaY / 300), event.clientX, event.clientY);
  }, {passive: false});
  zooming(box, times => {
    const r = box.getBoundingClientRect();
    times ? nearer(times, r.left + r.width / 2, r.top + r.height / 2) : fit();
  });
  box.addEventListener("pointerdown", event => { if (event.button === 0) box.setPointerCapture(event.pointerId); });
  box.addEventListener("pointermove", event => {
    if (event.buttons & 1) { x += event.movementX; y += event.movementY; draw(); }
    const r = img.getBoundingClientRect();
    const px = Math.floor((event.clientX - r.left) / r.width * img.naturalWidth), py = Math.floor((event.clientY - r.top) / r.height * img.naturalHeight);
    if (px < 0 || py < 0 || px >= img.naturalWidth || py >= img.naturalHeight) { told(); return; }
    if (img.naturalWidth * img.naturalHeight > 1 << 24) { told(`${px}, ${py}`); return; }
    pixels ??= read();
    const at = 4 * (py * pixels.width + px);
    told(`${px}, ${py}   ${[...pixels.data.subarray(at, at + 4)].join(" ")}`);
  });
  box.addEventListener("pointerleave", () => told());
  box.addEventListener("dblclick", fit);
}

// zooming gives the buttons of a viewer what they do: by how much to go nearer, or 0 for all of it.
export function zooming(box, go) {
  const group = box.closest(".viewer").querySelector(".zoom");
  group.hidden = false;
  group.addEventListener("click", event => {
    const which = event.target.closest("button")?.dataset.zoom;
    if (which) go({in: 2, out: .5, fit: 0}[which]);
  });
}
