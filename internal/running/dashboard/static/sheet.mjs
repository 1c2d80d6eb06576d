// The page of an atlas, with what there is to tell of the frame under the pointer.

export function sheet(paper) {
  const img = paper.querySelector("img");
  if (img) { // small pages are shown larger, by a whole number
    const times = Math.max(1, Math.min(8, Math.floor(Math.min(paper.parentElement.clientWidth / img.width, .74 * innerHeight / img.height))));
    img.style.width = `${img.width * times}px`;
  }
  const out = paper.closest("figure").querySelector("output");
  paper.addEventListener("pointermove", event => {
    const f = event.target.closest("rect")?.dataset;
    out.textContent = f ? [f.name, f.size, f.trim, f.patch, f.turn].filter(Boolean).join("   ") : "";
  });
  paper.addEventListener("pointerleave", () => { out.textContent = ""; });

  // A line of the list lights its frame, and the frame is told of as if it were pointed at.
  paper.closest("figure").addEventListener("pointerover", event => {
    const name = event.target.closest("[data-frame]")?.dataset.frame;
    for (const rect of paper.querySelectorAll("rect")) rect.classList.toggle("at", rect.dataset.name === name);
  });
}
