// live.mjs is the game's side of `kiln serve`: content as it is built, without parcels, replaced while the game runs.
// It is for development: a released game uses only kiln.mjs. docs/formats/live.md describes the protocol, docs/live.md
// the use of this file.
//
//     const library = await connect("http://127.0.0.1:7171", { game: "knights", platform: "web" });
//     library.register("texture", async ({ bytes }) => makeTexture(await bytes()));
//     const tank = await library.load("sprites/tank.png");
//     function frame() {
//       library.poll();            // applies all changes
//       draw(tank.value);
//       requestAnimationFrame(frame);
//     }
//
// Loaders may take time: poll() applies their results, related ones together. If a loader fails, the old value stays,
// and the watcher gets the reason. If the connection breaks, the game continues with what it has, and the library
// reconnects.

import { KilnError, hash, uuidText } from "./kiln.mjs";

const VERSION = 1, PROTOCOL = "kiln.live.v1";
const MAX_RESOURCES = 2 ** 24, MAX_CHAIN = 1000, MAX_LOGS = 1000;
const HASHED = 16 * 2 ** 20; // content up to this size in bytes is compared with its hash: 80 ms
const FIRST_RETRY = 20, LAST_RETRY = 1000, PATIENCE = 60000; // in milliseconds

const hex = (bytes) => Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
const wrong = (what) => new KilnError("live", what);

// within returns the result of a promise, or throws if it takes too long. A later result is passed to late.
function within(milliseconds, promise, what, late) {
  let timer, over = false;
  const ended = new Promise((_, no) => {
    timer = setTimeout(() => {
      over = true;
      no(wrong(`${what} has not come to an end after ${milliseconds / 1000} s`));
    }, milliseconds);
  });
  const watched = Promise.resolve(promise).finally(() => clearTimeout(timer));
  watched.then((value) => over && late?.(value), () => {});
  return Promise.race([watched, ended]);
}

/** Table has resources by all their keys. */
class Table {
  constructor() {
    this.byID = new Map();
    this.byKey = new Map();
    this.byName = new Map();
  }

  put(r) {
    this.remove(r.id);
    this.byID.set(r.id, r);
    this.byKey.set(r.key, r);
    this.byName.set(r.name, r);
  }

  remove(id) {
    const r = this.byID.get(id);
    if (!r) return;
    this.byID.delete(id);
    if (this.byKey.get(r.key) === r) this.byKey.delete(r.key);
    if (this.byName.get(r.name) === r) this.byName.delete(r.name);
  }

  /** apply applies a change to the table. */
  apply(change) {
    if (change.whole) {
      this.byID.clear();
      this.byKey.clear();
      this.byName.clear();
    }
    for (const [id, r] of change.resources) if (!r) this.remove(id);
    for (const r of change.resources.values()) if (r) this.put(r);
  }
}

// A change has new resources by id; null means removed. In a whole change, everything that it does not contain is
// removed.
const newChange = () => ({ seq: 0, whole: false, resources: new Map(), reload: new Set(), reloadAll: false });

// then returns both changes, one after the other.
function then(a, b) {
  if (!a || b.whole) return b;
  return {
    seq: Math.max(a.seq, b.seq), whole: a.whole, resources: new Map([...a.resources, ...b.resources]),
    reload: new Set([...a.reload, ...b.reload]), reloadAll: a.reloadAll || b.reloadAll,
  };
}

// A Value is the result of a loader. It is unloaded when neither an entry nor another value uses it: one that was refused,
// or whose resource was removed, was made with values that may have been replaced meanwhile.
class Value {
  uses = 0;
  constructor(it, of) { this.it = it; this.of = of.filter(Boolean); }

  use() {
    if (this.uses++ === 0) for (const v of this.of) v.use();
    return this;
  }

  end() {
    if (--this.uses > 0) return;
    this.it?.unload?.();
    for (const v of this.of) v.end();
  }
}

/** LiveResource is a resource of the watcher. */
class LiveResource {
  constructor(line) {
    this.id = line.id;
    this.uuid = line.uuid;
    this.sub = line.sub;
    this.key = `${line.uuid}/${line.sub}`;
    this.name = line.name;
    this.asset = line.asset;
    /** type is the product type, such as "texture". */
    this.type = line.kind;
    this.hash = line.hash;
    this.size = line.size;
    this.required = line.needs ?? [];
    this.optional = line.uses ?? [];
  }

  /** needs are ids: the required ones first, in load order. */
  get needs() { return [...this.required, ...this.optional]; }
}

/** Handle is a reference to a loaded resource. */
class Handle {
  #library; #entry; #released = false;

  constructor(library, entry) {
    this.#library = library;
    this.#entry = entry;
  }

  /** value is the result of the loader, as of the last poll(). */
  get value() { return this.#entry.value.it; }

  /** resource is the resource that it was loaded from. */
  get resource() { return this.#entry.resource; }

  /** release releases the handle. With the last one the resource is unloaded, and then the resources that only it needed. */
  release() {
    if (this.#released) return;
    this.#released = true;
    this.#library.drop(this.#entry);
  }
}

/**
 * connect connects to a watcher and waits for its list of resources. options: game and parcels are for the dashboard;
 * platform is the platform of the content; token, if the watcher listens beyond this machine; notify is called with
 * {type: "connected" | "disconnected" | "arrived" | "failed" | "mended", ...}; WebSocket and fetch replace the global
 * ones; signal is an AbortSignal that ends the wait; patience is the time in milliseconds that a loader or a fetch may
 * take, 60000 by default: after that it has failed, so that nothing waits for it forever. If nothing comes from the
 * watcher for so long, not even its sign of life, the connection counts as broken.
 */
export async function connect(address = "http://127.0.0.1:7171", options = {}) {
  const library = new LiveLibrary(address, options);
  const given = options.signal && new Promise((_, no) => options.signal.addEventListener("abort", () => no(wrong("no watcher")), { once: true }));
  try {
    await (given ? Promise.race([library.ready, given]) : library.ready);
  } catch (error) {
    library.close();
    throw error;
  }
  return library;
}

/** LiveLibrary is the content of a platform in a watcher, and its loaded resources. */
export class LiveLibrary {
  #address; #options; #socket; #closed = false; #wait = FIRST_RETRY; #late;
  #loaders = new Map(); #table = new Table(); #news = new Table();
  #loaded = new Map(); // by key: {key, resource, value, needs, refs, next}
  #order = []; #known = new Set();
  #incoming = null; #arrived = null; #busy = Promise.resolve(); #staging = false;
  #epoch = ""; #seq = 0; #page = null; // epoch and seq are of #news: the state to resume
  #coming = ""; #level = false; // epoch of the watcher; #news is of its epoch, so numbers mean the same
  #requests = new Map(); #asked = 0; #unsaid = []; #told = []; // calls that wait for the next change
  #begin; #refuse;

  constructor(address, options) {
    this.#address = new URL(address);
    this.#options = options;
    /** failures has the messages of assets that do not build, by asset. */
    this.failures = new Map();
    this.connected = false;
    this.ready = new Promise((yes, no) => { this.#begin = yes; this.#refuse = no; });
    this.ready.catch(() => {});
    this.#connect();
  }

  // ---- looking up ----

  /**
   * register sets the loader of a type of resources: ({resource, bytes, needs, old}) => value, or a promise of it.
   * bytes() returns the content, needs are {id, value}, old is the value to replace. If a value has a method unload(),
   * it is called when the value has no handles. The type "" is for all types without a loader of their own.
   */
  register(type, loader) { this.#loaders.set(type, loader); }

  find(id) { return this.#table.byID.get(id); }
  findName(name) { return this.#table.byName.get(name); }
  findUUID(uuid, sub = 0) {
    return this.#table.byKey.get(`${typeof uuid === "string" ? uuid.toLowerCase() : uuidText(uuid)}/${sub}`);
  }

  get count() { return this.#table.byID.size; }
  [Symbol.iterator]() { return this.#table.byID.values(); }

  // ---- loading ----

  /** load loads a resource by id or name, and before it all that it needs. If there is none, the watcher is asked to build it. */
  async load(which) {
    const look = (table) => (typeof which === "number" ? table.byID : table.byName).get(which);
    if (!look(this.#table) && !look(this.#news)) await this.#ask(typeof which === "number" ? { id: which } : { name: which });
    return this.#oneAtATime(() => this.#loadFound(which, look));
  }

  // oneAtATime prevents loading and staging at the same time.
  #oneAtATime(work) {
    const result = this.#busy.then(work);
    this.#busy = result.catch(() => {});
    return result;
  }

  async #loadFound(which, look) {
    for (;;) {
      let error = wrong(`there is no resource ${which}`);
      const changed = new Promise((done) => this.#told.push(done));
      for (const table of [this.#table, this.#news]) {
        const resource = look(table);
        if (!resource) continue;
        const plan = new Plan(this, table, null);
        try {
          const root = plan.add(resource, 0);
          await plan.make();
          if (root.error) throw plan.undo(root.error);
          const [entry] = this.#enter(plan, root);
          return new Handle(this, entry);
        } catch (e) {
          error = e;
          if (e.code !== "gone") throw e;
        } finally {
          plan.unpin();
        }
      }
      if (error.code !== "gone" || this.#closed) throw error;
      await changed; // its replacement is about to arrive
    }
  }

  // enter adds what was not loaded.
  #enter(plan, root) {
    const entries = plan.commit(true);
    root.entry.refs++;
    plan.dropUnused();
    return [root.entry, entries];
  }

  // ---- used by Plan ----

  entryOf(key) { return this.#loaded.get(key); }
  get patience() { return this.#options.patience ?? PATIENCE; }
  loaderOf(type) { return this.#loaders.get(type) ?? this.#loaders.get(""); }

  born(entry) {
    this.#loaded.set(entry.key, entry);
    if (!this.#known.has(entry.key)) {
      this.#known.add(entry.key);
      this.#order.push(entry.key);
    }
    if (this.#level) this.#say({ type: "used", ids: [entry.resource.id] }); // else sayUsed reports it, with the number that it has then
  }

  /** drop removes a reference to an entry. */
  drop(entry) {
    const gone = [];
    for (const queue = [entry]; queue.length;) {
      const e = queue.shift();
      if (!e || --e.refs > 0) continue;
      this.#loaded.delete(e.key);
      gone.push(e.value, e.next?.value);
      queue.push(...(e.next?.needs ?? []), ...e.needs);
    }
    for (const value of gone) value?.end();
  }

  /** fetchBytes fetches content by its hash. */
  async fetchBytes(resource) {
    const headers = this.#options.token ? { Authorization: `Bearer ${this.#options.token}` } : {};
    const url = new URL(`/live/v1/blob/${resource.hash}`, this.#address);
    const reply = await (this.#options.fetch ?? globalThis.fetch)(url, { headers });
    if (reply.status === 404) throw new KilnError("gone", `the content of ${resource.name} has been replaced`);
    if (reply.status !== 200) throw wrong(`the watcher answers ${reply.status}`);
    const bytes = new Uint8Array(await reply.arrayBuffer());
    if (bytes.length !== resource.size || bytes.length <= HASHED && hex(hash(bytes)) !== resource.hash) throw wrong(`${resource.name} came other than its hash says`);
    return bytes;
  }

  // ---- swapping ----

  /**
   * poll applies the changes that have arrived: call it once a frame. It returns what it changed, in load order:
   * {resource, kept}, where kept is the reason why the old one is kept.
   */
  poll() {
    const arrived = this.#arrived;
    if (!arrived) return [];
    this.#arrived = null;
    this.#table.apply(arrived.change);
    const gone = [], done = [], swapped = [], refused = [];
    for (const { entry, resource, error } of arrived.steps.values()) {
      if (this.#loaded.get(entry.key) !== entry) continue; // released in the meantime
      done.push({ resource, kept: error });
      if (error) refused.push({ id: resource.id, hash: resource.hash, reason: String(error.message ?? error) });
      else swapped.push(resource.id);
    }
    for (const entry of [...this.#loaded.values()]) {
      const next = entry.next;
      if (!next || this.#loaded.get(entry.key) !== entry) continue; // the latter: the one before was the last to need it
      entry.next = undefined;
      gone.push(entry.value);
      const before = entry.needs;
      Object.assign(entry, { resource: next.resource, value: next.value, needs: next.needs });
      for (const need of before) this.drop(need);
    }
    for (const value of gone) value.end();
    if (this.#level) this.#say({ type: "applied", seq: arrived.change.seq, swapped, refused });
    return done;
  }

  // stage prepares what the next poll will apply.
  #stage() {
    if (this.#staging || !this.#incoming) return;
    this.#staging = true;
    this.#oneAtATime(async () => {
      const change = this.#incoming;
      this.#incoming = null;
      const plan = new Plan(this, this.#news, change);
      for (const entry of [...this.#loaded.values()].sort((a, b) => a.resource.id - b.resource.id)) plan.addLoaded(entry);
      try {
        await plan.make();
        plan.commit(false);
        plan.dropUnused();
        const steps = this.#arrived?.steps ?? new Map();
        for (const s of plan.order) {
          if (!s.touched || !s.entry) continue;
          steps.delete(s.entry.key);
          steps.set(s.entry.key, { entry: s.entry, resource: s.resource, error: s.error });
        }
        this.#arrived = { change: then(this.#arrived?.change, change), steps };
        this.#notify({ type: "arrived" });
      } catch (error) { // the content was replaced again, or the connection broke
        plan.undo(error);
        this.#incoming = this.#incoming ? then(change, this.#incoming) : change;
        setTimeout(() => this.#stage(), LAST_RETRY);
        return;
      } finally {
        plan.unpin();
        this.#staging = false;
      }
      this.#stage();
    });
  }

  // ---- the connection ----

  #connect() {
    if (this.#closed) return;
    const url = new URL("/live/v1", this.#address);
    url.protocol = url.protocol.replace("http", "ws");
    if (this.#options.token) url.searchParams.set("token", this.#options.token);
    const socket = this.#socket = new (this.#options.WebSocket ?? globalThis.WebSocket)(url, PROTOCOL);
    let ended = false;
    const end = () => {
      if (ended) return;
      ended = true;
      const was = this.connected;
      this.connected = false;
      this.#page = null;
      clearTimeout(this.#late);
      for (const { no } of this.#requests.values()) no(wrong("the connection broke while the watcher built it"));
      this.#requests.clear();
      if (was) this.#notify({ type: "disconnected" });
      if (this.#closed) return;
      setTimeout(() => this.#connect(), this.#wait);
      this.#wait = Math.min(2 * this.#wait, LAST_RETRY);
    };
    const silent = (most) => { // nothing has come for so long
      clearTimeout(this.#late);
      if (most) this.#late = setTimeout(() => { socket.close(); end(); }, most);
    };
    let most = this.patience; // until the welcome
    silent(most);
    socket.onopen = () => {
      const { game, platform, parcels } = this.#options;
      socket.send(JSON.stringify({ type: "hello", version: VERSION, client: "live.mjs", game, platform, parcels, epoch: this.#epoch, seq: this.#seq, list: true }));
    };
    socket.onmessage = ({ data }) => {
      if (ended) return;
      try {
        const m = JSON.parse(data);
        if (m.type === "welcome") most = m.beat > 0 ? Math.max(this.patience, 2 * m.beat) : 0;
        silent(most);
        this.#heard(m);
      } catch (error) { // not a watcher of Kiln
        socket.close();
        this.#refuse(error);
      }
    };
    socket.onerror = () => end();
    socket.onclose = () => end();
  }

  #heard(m) {
    switch (m.type) {
      case "welcome": return this.#welcomed(m);
      case "list": case "changed": return this.#changed(m);
      case "failed":
        this.failures.set(m.asset, m.messages ?? []);
        return this.#notify({ type: "failed", asset: m.asset, messages: m.messages ?? [] });
      case "mended":
        this.failures.delete(m.asset);
        return this.#notify({ type: "mended", asset: m.asset });
      case "reply": {
        const waiting = this.#requests.get(m.request);
        this.#requests.delete(m.request);
        return m.reason ? waiting?.no(wrong(m.reason)) : waiting?.yes();
      }
      case "reload": {
        const change = newChange();
        change.reloadAll = !m.ids;
        change.reload = new Set(m.ids ?? []);
        return this.#complete(change);
      }
      case "refused":
        this.#closed = true;
        return this.#refuse(wrong(m.reason));
    }
  }

  #welcomed(m) {
    this.connected = true;
    this.#wait = FIRST_RETRY;
    this.#coming = m.epoch;
    this.#level = m.resumed;
    this.#page = null;
    if (m.resumed) this.#sayUsed();
    else this.failures.clear();
    this.#notify({ type: "connected", project: m.project, platform: m.platform, resumed: m.resumed });
    for (const line of this.#unsaid.splice(0)) this.#say(line);
    this.#stage();
  }

  #changed(m) {
    const page = this.#page ??= newChange();
    for (const line of m.resources ?? []) page.resources.set(line.id, new LiveResource(line));
    for (const id of m.removed ?? []) page.resources.set(id, null);
    if (page.resources.size > MAX_RESOURCES) throw wrong(`more than ${MAX_RESOURCES} resources`);
    if (m.more) return;
    this.#page = null;
    page.seq = m.seq;
    page.whole = m.type === "list";
    this.#complete(page);
  }

  // complete handles a change with all its pages. If nothing is loaded, there is nothing to wait for.
  #complete(change) {
    if (change.seq || change.whole) { // only now: half a list cannot be resumed
      this.#epoch = this.#coming;
      this.#seq = change.seq;
      this.#level = true;
    }
    this.#news.apply(change);
    if (!this.#loaded.size && !this.#incoming && !this.#arrived && !this.#staging) {
      this.#table.apply(change);
      this.#say({ type: "applied", seq: change.seq });
    } else this.#incoming = then(this.#incoming, change);
    if (change.whole) {
      this.#sayUsed();
      this.#begin();
    }
    for (const done of this.#told.splice(0)) done();
    this.#stage();
  }

  #sayUsed() {
    const ids = this.#order.map((key) => this.#news.byKey.get(key)?.id).filter((id) => id !== undefined);
    if (ids.length) this.#say({ type: "used", ids });
  }

  #ask(what) {
    if (!this.connected) throw wrong("there is no watcher to ask for it");
    const request = ++this.#asked;
    return new Promise((yes, no) => {
      this.#requests.set(request, { yes, no });
      this.#say({ type: "request", request, ...what });
    });
  }

  #say(message) {
    if (this.connected && this.#socket.readyState === 1) this.#socket.send(JSON.stringify(message));
    else if (message.type === "log" && this.#unsaid.length < MAX_LOGS) this.#unsaid.push(message); // all else is sent again to the next watcher
  }

  #notify(event) { this.#options.notify?.(event); }

  /** log writes a line to the dashboard; level is debug, info, warning or error. */
  log(level, text) { this.#say({ type: "log", level, text }); }

  /** close ends the connection. Loaded resources stay. */
  close() {
    this.#closed = true;
    clearTimeout(this.#late);
    this.#socket?.close();
    for (const done of this.#told.splice(0)) done();
    this.#refuse(wrong("closed"));
  }
}

// A Plan is the work on resources, in load order. The game sees no change until commit.
class Plan {
  constructor(library, table, since) {
    Object.assign(this, { library, table, since, at: new Map(), order: [], bytes: new Map(), pinned: [] });
  }

  // unpin ends the uses of a plan. While it loads, the game may release what it needs.
  unpin() {
    for (const entry of this.pinned.splice(0)) this.library.drop(entry);
  }

  /** addLoaded plans a loaded resource. A removed resource stays unchanged as long as the game holds it. */
  addLoaded(entry) {
    const resource = this.table.byKey.get(entry.key);
    if (!resource) return;
    try {
      this.add(resource, 0);
    } catch (error) {
      const s = { resource, entry, needs: [], touched: true, error, planned: true };
      this.at.set(entry.key, s);
      this.order.push(s);
    }
  }

  add(resource, depth) {
    const known = this.at.get(resource.key);
    if (known?.planned) return known;
    if (known) throw new KilnError("circle", `${resource.name} requires itself`);
    if (depth > MAX_CHAIN) throw new KilnError("circle", `more than ${MAX_CHAIN} resources require each other one after the other`);
    const s = { resource, entry: this.library.entryOf(resource.key), needs: [], planned: false, touched: false, made: false };
    this.at.set(resource.key, s);
    if (s.entry) {
      s.entry.refs++;
      this.pinned.push(s.entry);
    }
    resource.needs.forEach((id, i) => {
      const required = i < resource.required.length, need = this.table.byID.get(id);
      try {
        if (!need && required) throw new KilnError("missing", `${resource.name} needs resource ${id}, which there is none of`);
        s.needs.push(need ? this.add(need, depth + 1) : undefined);
      } catch (error) {
        if (required) {
          this.at.delete(resource.key);
          throw error;
        }
        s.needs.push(undefined);
      }
    });
    this.#judge(s);
    s.planned = true;
    this.order.push(s);
    return s;
  }

  // judge decides whether a resource needs work.
  #judge(s) {
    const e = s.entry;
    if (!e) {
      s.content = s.touched = true;
      return;
    }
    const now = e.next ?? e;
    s.value = now.value;
    if (!this.since) return;
    const { since, resource } = { since: this.since, resource: s.resource };
    const other = now.resource.hash !== resource.hash || now.resource.type !== resource.type;
    const told = since.whole || since.resources.has(resource.id); // otherwise it was refused before, and nothing has changed
    s.content = other && told || since.reloadAll || since.reload.has(resource.id);
    s.otherNeeds = s.needs.length !== now.needs.length || s.needs.some((n, i) => n?.entry !== now.needs[i]);
    s.touched = s.content || s.otherNeeds || s.needs.some((n) => n?.touched);
    s.content ||= s.touched && other;
  }

  /** make fetches and loads. A resource that cannot be loaded gets its error. It throws if a content cannot be fetched. */
  async make() {
    const wanted = this.order.filter((s) => s.touched && !s.error);
    await Promise.all(wanted.map(async ({ resource }) => {
      this.bytes.set(resource.hash, await within(this.library.patience, this.library.fetchBytes(resource), `fetching ${resource.name}`));
    }));
    for (const s of wanted) {
      if (!s.content && !s.otherNeeds && !s.needs.some((n) => n?.touched && !n.error)) s.touched = false; // what it needs did not change after all
      else await this.#load(s);
    }
  }

  async #load(s) {
    try {
      const { resource } = s;
      const needs = resource.needs.map((id, i) => {
        const n = s.needs[i];
        if (n?.error && !n.entry && i < resource.required.length) throw n.error;
        return { id, value: n?.value?.it };
      });
      const loader = this.library.loaderOf(resource.type);
      if (!loader) throw wrong(`no loader for the type ${resource.type}`);
      const made = loader({ resource, bytes: () => this.bytes.get(resource.hash), needs, old: s.value?.it });
      const it = await within(this.library.patience, made, `the loader of ${resource.name}`, (late) => late?.unload?.());
      s.value = new Value(it, s.needs.map((n) => n?.value));
      s.made = true;
    } catch (error) {
      s.error = error;
    }
  }

  /** commit stores the results in the entries: at once if they are new, else for the next poll. */
  commit() {
    this.fresh = [];
    for (const s of this.order) {
      if (s.error) continue;
      const fresh = !s.entry;
      if (fresh) {
        s.entry = { key: s.resource.key, refs: 0, needs: [] };
        this.fresh.push(s.entry);
      } else if (!s.touched) {
        const now = s.entry.next ?? s.entry;
        if (now.resource.hash === s.resource.hash) now.resource = s.resource;
        continue;
      }
      const needs = s.needs.map((n) => n?.entry);
      for (const n of needs) if (n) n.refs++;
      if (fresh) {
        Object.assign(s.entry, { resource: s.resource, value: s.value.use(), needs });
        this.library.born(s.entry);
        continue;
      }
      const before = s.entry.next;
      s.entry.next = { resource: s.resource, value: s.value.use(), needs };
      if (before) {
        before.value.end();
        for (const n of before.needs) this.library.drop(n);
      }
    }
  }

  /** dropUnused removes new entries without references, because what needed them failed. */
  dropUnused() {
    for (const entry of this.fresh.reverse()) {
      if (entry.refs === 0) {
        entry.refs++;
        this.library.drop(entry);
      }
    }
  }

  /** undo removes the results, and returns the error. */
  undo(error) {
    for (const s of this.order.reverse()) if (s.made) s.value.it?.unload?.();
    return error;
  }
}
