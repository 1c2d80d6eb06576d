// What makes pages handier: keys, search while one types, and parts that follow builds. Pages work without it.

import {viewer} from "./texture.mjs";
import {sheet} from "./sheet.mjs";

const $ = (what, inside = document) => inside.querySelector(what);
const $$ = (what, inside = document) => [...inside.querySelectorAll(what)];

// ---- Parts of a page that are drawn anew.

// made is what the server sent for a part, before anything here changed it.
const made = new WeakMap();
const remember = part => made.set(part, part.outerHTML);

// stops are where the tab key goes.
const stops = "a[href], button, input, summary, audio, [tabindex='0']";

// redraw has a part drawn anew, in its place or by another one, which draw returns then. The focus stays at the stop where it was.
function redraw(part, draw) {
  const held = part.contains(document.activeElement) ? $$(stops, part).indexOf(document.activeElement) : -1;
  const drawn = draw() ?? part;
  if (held >= 0) $$(stops, drawn)[held]?.focus({preventScroll: true});
}

// fresh gets a page and puts its parts in the place of those here which are not the same. A part is an element with an id
// and the attribute data-live; `which` narrows them down.
let asked = 0;
async function fresh(address = location.href, which = "[data-live]") {
  const mine = ++asked;
  let text;
  try {
    text = await (await fetch(address)).text();
  } catch {
    return; // the server has gone; the stream of events tells when it is back
  }
  if (mine !== asked) return; // something newer was asked for meanwhile
  const next = new DOMParser().parseFromString(text, "text/html");
  if ($$(which, next).some(part => !document.getElementById(part.id))) { // the first problem, the first parcel
    location.reload();
    return;
  }
  const at = rows().findIndex(r => r.classList.contains("at"));
  for (const part of $$(which)) {
    const other = next.getElementById(part.id);
    if (!other || made.get(part) === other.outerHTML) continue;
    redraw(part, () => {
      remember(other);
      part.replaceWith(other);
      alive(other);
      return other;
    });
  }
  if (at >= 0 && !$(".at[data-row]")) select(at, false);
  tick();
}

// alive gives a part what it does.
function alive(part) {
  for (const e of $$("[data-texture]", part)) viewer(e);
  for (const e of $$("[data-sheet]", part)) sheet(e);
  for (const e of $$("[data-model]", part)) import("./model.mjs").then(m => m.show(e));
  for (const e of $$("[data-sound]", part)) import("./sound.mjs").then(m => m.show(e));
  for (const e of $$("[data-font]", part)) font(e);
  for (const e of $$("[data-settings]", part)) origins(e);
}

// origins puts where settings come from in the place of the plain ones.
async function origins(e) {
  const answer = await fetch(e.dataset.settings);
  if (!answer.ok) return;
  const text = await answer.text(); // made by our server's templates
  redraw(e, () => { e.innerHTML = text; });
}

async function font(e) {
  const face = new FontFace("specimen", `url("${e.dataset.font}")`);
  try {
    document.fonts.add(await face.load());
    e.style.fontFamily = "specimen";
  } catch (err) {
    e.textContent = `The browser cannot read this font: ${err.message}`;
  }
}

// ---- Builds as they happen.

// news draws the page anew, one time after the other however much there is.
let drawing = false, more = false;
async function news() {
  more = true;
  if (drawing) return;
  drawing = true;
  while (more) { more = false; await fresh(); }
  drawing = false;
}

// follow listens while the page is seen: a browser has six connections to a server, and seven pages may be open.
let stream;
function follow() {
  stream?.close();
  if (!document.hidden) stream = listen();
}

function listen() {
  const stream = new EventSource(`/events?since=${encodeURIComponent(document.body.dataset.asOf)}`);
  let silence;
  const heard = () => { clearTimeout(silence); silence = setTimeout(() => stream.readyState !== EventSource.CLOSED && gone(), SILENT); };
  const put = id => event => {
    heard();
    const e = document.getElementById(id);
    if (e) redraw(e, () => { e.innerHTML = event.data; tick(); });
  };
  stream.addEventListener("now", put("now"));
  stream.addEventListener("pulse", put("pulse"));
  stream.addEventListener("news", news);
  stream.addEventListener("error", () => {
    clearTimeout(silence);
    gone();
    if (stream.readyState === EventSource.CLOSED) setTimeout(follow, AGAIN); // it was refused: else the browser tries again by itself
  });
  return stream;
}

// A server that lives says something every fifteen seconds. One that was refused is asked again after AGAIN milliseconds.
const SILENT = 40_000, AGAIN = 3000;

// gone says that what stands here is not kept up to date. When the server is there again, its first words take the place of this.
function gone() {
  const pulse = $("#pulse"), now = $("#now");
  if (pulse) redraw(pulse, () => { pulse.innerHTML = `<span class="dot bad"></span>Not connected`; });
  if (now) redraw(now, () => { now.innerHTML = `<section class="now"><header><h1 class="bad">kiln serve does not answer</h1><p>This page is as it was last, and goes on by itself when it answers again.</p></header></section>`; });
}

// tick moves clocks on.
function tick() {
  const now = Date.now();
  for (const e of $$("[data-since]")) {
    const s = Math.max(0, (now - Date.parse(e.dataset.since)) / 1000);
    e.textContent = s < 60 ? `${s.toFixed(1)}\u00a0s` : `${Math.floor(s / 60)}\u00a0min ${String(Math.floor(s % 60)).padStart(2, "0")}\u00a0s`;
  }
  for (const e of $$("time[title]")) {
    const s = (now - Date.parse(e.dateTime)) / 1000;
    e.textContent = s < 5 ? "just now" : s < 60 ? `${Math.floor(s)}\u00a0s ago` : s < 3600 ? `${Math.floor(s / 60)}\u00a0min ago` : s < 48 * 3600 ? `${Math.floor(s / 3600)}\u00a0h ago` : `${Math.floor(s / 86400)}\u00a0days ago`;
  }
}

// ---- Search on the server, while one types.

function search() {
  const field = $(".search input");
  let wait;
  field.addEventListener("input", () => {
    clearTimeout(wait);
    wait = setTimeout(() => {
      const address = new URL(document.body.dataset.page === "content" ? location.href : "/content", location.href);
      address.searchParams.delete("page");
      if (field.value.trim()) address.searchParams.set("q", field.value); else address.searchParams.delete("q");
      if (document.body.dataset.page !== "content") return; // elsewhere Enter leads to the list
      history.replaceState(null, "", address);
      fresh(address, "[data-swap]");
    }, 120);
  });
  field.addEventListener("keydown", event => {
    if (event.key === "ArrowDown") { event.preventDefault(); field.blur(); select(0); }
    if (event.key === "Escape") field.blur();
  });
}

// ---- Keys.

// rows are the lines that one can go to: those that are seen.
const rows = () => $$("[data-row]").filter(r => r.offsetParent !== null);

function select(i, scroll = true) {
  const all = rows();
  if (!all.length) return;
  i = Math.max(0, Math.min(all.length - 1, i));
  for (const r of $$(".at[data-row]")) r.classList.remove("at");
  all[i].classList.add("at");
  if (!scroll) return;
  ($("[data-open]", all[i]) ?? $("a, button, summary", all[i]))?.focus({preventScroll: true}); // so that Enter opens it and a screen reader says it
  all[i].scrollIntoView({block: "nearest"});
}

function move(by) {
  const at = rows().findIndex(r => r.classList.contains("at"));
  select(at < 0 ? (by > 0 ? 0 : rows().length - 1) : at + by);
}

// sideways goes to the other column of dependencies, to another mip level, or to another page of the list.
function sideways(by) {
  const columns = $$(".walk .column");
  if (columns.length) {
    const first = columns[by < 0 ? 0 : 1].querySelector("[data-row]");
    if (first) select(rows().indexOf(first));
    return true;
  }
  const steps = $$("[data-steps] a");
  if (steps.length) {
    const at = steps.findIndex(a => a.hasAttribute("aria-current"));
    steps[Math.max(0, Math.min(steps.length - 1, at + by))].click();
    return true;
  }
  const link = $(by < 0 ? "a[rel=prev]" : "a[rel=next]");
  link?.click();
  return !!link;
}

const places = {b: "/", c: "/content", p: "/problems", r: "/parcels", m: "/games"};
const keys = {
  "/": () => { const f = $(".search input"); f.focus(); f.select(); },
  "?": () => $("#help").showModal(),
  j: () => move(1), ArrowDown: () => move(1),
  k: () => move(-1), ArrowUp: () => move(-1),
  h: () => sideways(-1), ArrowLeft: () => sideways(-1),
  l: () => sideways(1), ArrowRight: () => sideways(1),
  Enter: () => { if (document.activeElement === document.body) $(".at [data-open], .at.message .where")?.click(); },
  "+": () => $("[data-zoom=in]")?.click(), "=": () => $("[data-zoom=in]")?.click(),
  "-": () => $("[data-zoom=out]")?.click(),
  0: () => $("[data-zoom=fit]")?.click(),
  o: () => ($(".at [data-edit]") ?? $("[data-edit]"))?.click(),
  d: () => $("[data-deps]")?.click(),
  u: () => $("[data-up]")?.click(),
};

function keyboard() {
  let going = 0; // when g was pressed
  addEventListener("keydown", event => {
    const e = event.target;
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || e.closest?.("input, textarea, select, [contenteditable], dialog, audio")) return;
    if (event.key === "g") { going = event.timeStamp; return; }
    if (event.timeStamp - going < 1500 && places[event.key]) { location.href = places[event.key]; return; }
    going = 0;
    const act = keys[event.key];
    if (!act || event.key === "Enter" && e.closest?.("a, button, summary")) return;
    if (event.key !== "Enter") event.preventDefault();
    act();
  });
}

// A small picture that cannot be had gives way to what stands for others without one.
addEventListener("error", event => {
  const img = event.target;
  if (img.closest?.(".thumb")) img.replaceWith(Object.assign(document.createElement("span"), {className: "glyph"}));
}, true);

// ---- What is pressed.

function pointer() {
  addEventListener("click", event => {
    const copy = event.target.closest("[data-copy]");
    if (copy) navigator.clipboard?.writeText(copy.dataset.copy).then(() => {
      const was = copy.textContent;
      copy.textContent = "copied";
      setTimeout(() => { copy.textContent = was; }, 900);
    });
    if (event.target.closest("[data-help]")) $("#help").showModal();
    const step = event.target.closest("a[data-replace]");
    if (step && event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey) { // mips and channels are no places to go back to
      event.preventDefault();
      history.replaceState(null, "", step.href);
      fresh(step.href, "#stage");
    }
  });
}

$$("[data-live]").forEach(remember);
follow();
document.addEventListener("visibilitychange", follow);
addEventListener("pagehide", () => stream?.close());
addEventListener("pageshow", event => { if (event.persisted) follow(); }); // back from the browser's cache
search();
keyboard();
pointer();
alive(document);
tick();
setInterval(tick, 250);
