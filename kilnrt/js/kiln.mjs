// kiln.mjs reads parcels, the files in which Kiln packs the content of a game. It works in browsers and in node,
// without dependencies. A parcel is an ArrayBuffer or a Uint8Array, or is behind a URL and is fetched in ranges.
// Uncompressed content is a view of it and is never copied. docs/formats/parcel.md describes the format,
// docs/runtime-js.md the use of this file.
//
//     const parcel = await openURL("level1.parcel");
//     const knight = parcel.findName("characters/knight.glb");
//     for (const resource of loadOrder(parcel, knight.id)) show(resource.type, await resource.load());
//
// A broken or hostile parcel gives at worst a KilnError: every offset is checked before it is used.

/** KilnError is the error of this module. Its code is one of the words below; its message is for users. */
export class KilnError extends Error {
  constructor(code, message) {
    super(message);
    this.name = "KilnError";
    /**
     * "not-parcel": the file is not a parcel, or both of its headers are broken. "version": made for a newer reader.
     * "damaged": two parts contradict each other, or a checksum is wrong. "unpacking": decompression failed. "missing":
     * a required resource is in no mounted parcel. "circle": resources require each other in a circle or in a chain
     * longer than 1000, or there are more than a million needs. "fetch": the server did not answer as required.
     * "signature": from trust() of signed.mjs. "away": the bytes are not in memory, await load().
     */
    this.code = code;
  }
}

const damaged = (what) => new KilnError("damaged", `the parcel is damaged: ${what}`);

const MAGIC = [0x89, 0x4b, 0x50, 0x52, 0x43, 0x0d, 0x0a, 0x1a];
const SLOT = 512, PITCH = 4096, START = 8192, RECORD = 128, PAGE = 64, CHAIN = 1000, MAX_LOOKED = 2 ** 20;
const MAX_COUNT = 2 ** 24, MAX_TYPES = 2 ** 16, MAX_NEEDS = 2 ** 16, MAX_COMPRESSED = 2 ** 28, MAX_NAME = 4096;
const DIRECTORY = 0, IDS = 1, UUIDS = 2, NAMES_TABLE = 3, TYPES = 4, NAMES = 5, NEEDS = 6, DICTIONARY = 7, SIGNATURE = 8, SECTIONS = 9;
const MOST = { [DICTIONARY]: 2 ** 20, [SIGNATURE]: 4096 };

// ---- bytes ----

const viewOf = (b) => new DataView(b.buffer, b.byteOffset, b.byteLength);

// u64 is exact up to 2^53. A larger number exceeds every file, so the comparison with a size refuses it.
const u64 = (view, at) => view.getUint32(at, true) + view.getUint32(at + 4, true) * 2 ** 32;

function bytesOf(data) {
  if (data instanceof Uint8Array) return data;
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return new Uint8Array(data);
}

function equal(a, b) {
  return a.length === b.length && compare(a, b) === 0;
}

function compare(a, b) {
  for (let i = 0; i < a.length && i < b.length; i++) if (a[i] !== b[i]) return a[i] - b[i];
  return a.length - b.length;
}

let crcTables; // four tables of 256 words: four independent look-ups for four bytes

function makeCRCTables() {
  const t = [0, 1, 2, 3].map(() => new Int32Array(256));
  for (let i = 0; i < 256; i++) {
    let c = i;
    for (let k = 0; k < 8; k++) c = c & 1 ? c >>> 1 ^ 0xedb88320 : c >>> 1;
    t[0][i] = c;
  }
  for (let k = 1; k < 4; k++) for (let i = 0; i < 256; i++) t[k][i] = t[k - 1][i] >>> 8 ^ t[0][t[k - 1][i] & 255];
  return t;
}

/** crc32 is the CRC-32 of zlib and PNG. */
export function crc32(bytes) {
  crcTables ??= makeCRCTables();
  const [t0, t1, t2, t3] = crcTables, n = bytes.length;
  let c = -1, i = 0;
  for (; i + 4 <= n; i += 4) {
    c ^= bytes[i] | bytes[i + 1] << 8 | bytes[i + 2] << 16 | bytes[i + 3] << 24;
    c = t3[c & 255] ^ t2[c >>> 8 & 255] ^ t1[c >>> 16 & 255] ^ t0[c >>> 24];
  }
  for (; i < n; i++) c = c >>> 8 ^ t0[(c ^ bytes[i]) & 255];
  return ~c >>> 0;
}

// murmur is MurmurHash3_x86_32 with seed 0, by Austin Appleby.
function murmur(b) {
  const left = (x, n) => x << n | x >>> 32 - n;
  const mix = (k) => Math.imul(left(Math.imul(k, 0xcc9e2d51), 15), 0x1b873593);
  let h = 0, i = 0;
  for (; i + 4 <= b.length; i += 4) {
    h = Math.imul(left(h ^ mix(b[i] | b[i + 1] << 8 | b[i + 2] << 16 | b[i + 3] << 24), 13), 5) + 0xe6546b64 | 0;
  }
  if (i < b.length) {
    let k = 0;
    for (let j = b.length - 1; j >= i; j--) k = k << 8 | b[j];
    h ^= mix(k);
  }
  h ^= b.length;
  h = Math.imul(h ^ h >>> 16, 0x85ebca6b);
  h = Math.imul(h ^ h >>> 13, 0xc2b2ae35);
  return (h ^ h >>> 16) >>> 0;
}

/** uuidText returns the usual text of 16 bytes. */
export function uuidText(b) {
  return Array.from(b, (x) => x.toString(16).padStart(2, "0")).join("").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

function uuidBytes(uuid) {
  if (typeof uuid !== "string") return uuid;
  const digits = uuid.replaceAll("-", "");
  if (!/^[0-9a-f]{32}$/i.test(digits)) throw new TypeError(`${uuid} is no UUID`);
  return Uint8Array.from(digits.match(/../g), (two) => parseInt(two, 16));
}

// ---- storage: pieces of a file, one for a file in memory, several for one that is fetched ----

const GAP = 64 * 1024; // fetching these bytes without need takes less time than another request

class Pieces {
  constructor(size, fetchRange) {
    this.size = size;
    this.fetchRange = fetchRange; // (offset, size) => Promise<Uint8Array>; missing if everything is in memory
    this.pieces = [];
  }

  /** here returns bytes that are in memory, as a view. */
  here(offset, size) {
    if (size === 0) return new Uint8Array(0);
    const piece = this.pieces.find((p) => p.offset <= offset && offset + size <= p.offset + p.bytes.length);
    if (!piece) throw new KilnError("away", "the bytes are not here yet: await load()");
    return piece.bytes.subarray(offset - piece.offset, offset - piece.offset + size);
  }

  /** fetchAll returns the bytes of ranges {offset, size}. It combines ranges that are close together into one request. */
  async fetchAll(ranges) {
    const sorted = ranges.filter((r) => r.size > 0).sort((a, b) => a.offset - b.offset);
    const runs = [];
    for (const r of sorted) {
      const run = runs.at(-1);
      if (run && r.offset <= run.end + GAP) run.end = Math.max(run.end, r.offset + r.size);
      else runs.push({ offset: r.offset, end: r.offset + r.size });
    }
    return Promise.all(runs.map(async (run) => ({ offset: run.offset, bytes: await this.fetchRange(run.offset, run.end - run.offset) })));
  }

  /** keep fetches ranges and keeps them. */
  async keep(ranges) {
    this.pieces.push(...await this.fetchAll(ranges));
  }
}

// ---- opening ----

// pickSlot returns the current slot, from the first 8192 bytes of a file.
function pickSlot(start) {
  let best;
  for (const at of [0, PITCH]) {
    const slot = start.subarray(at, at + SLOT), view = viewOf(slot);
    if (!MAGIC.every((b, i) => slot[i] === b) || crc32(slot.subarray(0, SLOT - 4)) !== view.getUint32(SLOT - 4, true)) continue;
    if (!best || view.getBigUint64(16, true) > best.getBigUint64(16, true)) best = view;
  }
  if (!best) throw new KilnError("not-parcel", "the file is not a parcel, or both its headers are broken");
  return best;
}

// readHeader reads the current slot and checks it against the size of the file.
function readHeader(start, fileSize) {
  if (fileSize < START || start.length < START) throw new KilnError("not-parcel", `${fileSize} bytes are no parcel`);
  const view = pickSlot(start);
  const version = view.getUint32(8, true), flags = view.getUint16(12, true);
  if (version !== 1 || flags !== 0) throw new KilnError("version", `the parcel needs a newer reader: version ${version}, flags ${flags}`);
  const h = {
    generation: view.getBigUint64(16, true), end: u64(view, 24), count: view.getUint32(40, true), bits: view.getUint32(44, true),
    types: view.getUint32(48, true), sections: [], storedDigest: new Uint8Array(view.buffer, view.byteOffset + 280, 32).slice(),
  };
  if (h.end < START || h.end > fileSize) throw damaged(`it should have ${h.end} bytes and has ${fileSize}`);
  if (h.count > MAX_COUNT || h.count * RECORD > h.end) throw damaged(`${h.count} resources cannot be in ${h.end} bytes`);
  if (h.bits < 1 || h.bits > 26 || 2 ** h.bits < h.count + 1) throw damaged(`tables of 2^${h.bits} entries for ${h.count} resources`);
  if (h.types > MAX_TYPES) throw damaged(`${h.types} types are too many`);
  for (let i = 0; i < SECTIONS; i++) h.sections.push(readSection(h, i, view, 64 + 24 * i));
  return h;
}

function readSection(h, i, view, at) {
  const s = { offset: u64(view, at), size: u64(view, at + 8), crc: view.getUint32(at + 16, true) };
  const exact = i === DIRECTORY ? 16 * Math.ceil(h.count / PAGE) : 8 * 2 ** h.bits;
  const fits = i <= NAMES_TABLE ? s.size === exact : s.size <= (MOST[i] ?? 2 ** 32 - 1);
  if (!fits || i === NEEDS && s.size % 4) throw damaged(`section ${i} cannot have ${s.size} bytes`);
  const lies = s.size === 0 ? s.offset === 0 && s.crc === 0 : s.offset >= START && s.offset + s.size <= h.end && s.offset % 16 === 0;
  if (!lies) throw damaged(`section ${i} cannot lie at ${s.offset}`);
  return s;
}

function readTypes(section, count) {
  const types = [], view = viewOf(section);
  let at = 0;
  for (let i = 0; i < count; i++) {
    const n = at + 2 <= section.length ? view.getUint16(at, true) : 0;
    if (n < 1 || n > 255 || at + 2 + n > section.length) throw damaged("its types");
    types.push(section.subarray(at + 2, at + 2 + n));
    at += 2 + n;
  }
  if (at !== section.length) throw damaged("something follows its types");
  return types;
}

/**
 * open opens a parcel in memory. It takes the same time for any parcel: all else is checked when it is used, or by
 * check().
 *
 * options.zstd replaces the decompressor of this file: (stored: Uint8Array, size: number, dictionary?: Uint8Array) =>
 * Uint8Array or a promise of it. The result must have exactly size bytes. size may be false: do not allocate much
 * memory for few bytes before there is content for it.
 */
export function open(data, options = {}) {
  const bytes = bytesOf(data);
  const file = new Pieces(bytes.length);
  file.pieces.push({ offset: 0, bytes });
  return new Parcel(file, readHeader(bytes.subarray(0, START), bytes.length), options);
}

/**
 * openURL opens a parcel on a server, which must support ranges and return the size in Content-Range. It fetches the
 * index in three rounds; load() fetches contents. If the server answers with the whole file, the file is opened in
 * memory. options.fetch replaces the global fetch; options.init is passed to each request.
 */
export async function openURL(url, options = {}) {
  const get = (first, last) => (options.fetch ?? globalThis.fetch)(url, { ...options.init, headers: { ...options.init?.headers, Range: `bytes=${first}-${last}` } });
  const wrong = (what) => new KilnError("fetch", `${url}: ${what}`);
  const reply = await get(0, START - 1);
  if (reply.status === 200) return open(await reply.arrayBuffer(), options);
  if (reply.status !== 206) throw wrong(`the server says ${reply.status}`);
  const size = Number(/\/(\d+)$/.exec(reply.headers.get("Content-Range") ?? "")?.[1]);
  if (!Number.isSafeInteger(size)) throw wrong("the server does not tell the size of the file");
  const tag = reply.headers.get("ETag");
  const start = new Uint8Array(await reply.arrayBuffer());
  const file = new Pieces(size, async (offset, n) => {
    const part = await get(offset, offset + n - 1);
    if (part.status !== 206) throw wrong(`the server says ${part.status} to a range`);
    if (part.headers.get("ETag") !== tag) throw wrong("the file has been replaced since it was opened");
    const bytes = new Uint8Array(await part.arrayBuffer());
    if (bytes.length !== n) throw wrong(`${bytes.length} bytes came instead of ${n}`);
    return bytes;
  });
  const header = readHeader(start, size);
  await file.keep(header.sections);
  const parcel = new Parcel(file, header, options);
  await file.keep(parcel.pageRanges());
  return parcel;
}

// ---- parcels ----

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });
const strictUTF8 = new TextDecoder("utf-8", { ignoreBOM: true, fatal: true });
const encoder = new TextEncoder();

/** Parcel is an open parcel. Resources are sorted by id; iterating returns all of them. */
export class Parcel {
  #header; #sections; #directory; #tables; #needs; #pages = []; #typeBytes;

  constructor(file, header, options) {
    this.#header = header;
    this.file = file;
    this.zstd = options.zstd ?? zstd;
    this.#sections = header.sections.map((s) => file.here(s.offset, s.size));
    this.#directory = viewOf(this.#sections[DIRECTORY]);
    this.#tables = [null, IDS, UUIDS, NAMES_TABLE].map((i) => i && viewOf(this.#sections[i]));
    this.#needs = viewOf(this.#sections[NEEDS]);
    this.#typeBytes = readTypes(this.#sections[TYPES], header.types);
    /** types are the types of the resources, such as "texture". */
    this.types = this.#typeBytes.map((b) => utf8.decode(b));
    /**
     * under is the parcel where look-ups continue if this parcel has no such resource: set it to lay a patch or a mod
     * over the base.
     */
    this.under = options.under ?? null;
    /** trusted is set by trust() of signed.mjs: each content is then compared with its hash. */
    this.trusted = false;
  }

  /** count is the number of resources. */
  get count() { return this.#header.count; }

  /** generation increases with each change of the file; a BigInt. */
  get generation() { return this.#header.generation; }

  /** storedDigest is the digest in the file: compare it with digest(). */
  get storedDigest() { return this.#header.storedDigest; }

  /** signature is the text of a minisign signature of the digest, or empty. trust() of signed.mjs verifies it. */
  get signature() { return this.#sections[SIGNATURE]; }

  /** dictionary is the dictionary for Zstandard, or empty. */
  get dictionary() { return this.#sections[DICTIONARY]; }

  // range of the k-th page of records; undefined if it is not valid
  #pageRange(k) {
    const offset = u64(this.#directory, 16 * k), size = RECORD * Math.min(PAGE, this.count - PAGE * k);
    return offset >= START && offset + size <= this.#header.end && offset % 16 === 0 ? { offset, size } : undefined;
  }

  /** pageRanges returns the ranges of the records in the file. */
  pageRanges() {
    return Array.from({ length: Math.ceil(this.count / PAGE) }, (_, k) => this.#pageRange(k)).filter(Boolean);
  }

  #page(k) {
    if (!this.#pages[k]) {
      const range = this.#pageRange(k);
      if (!range) throw damaged(`page ${k} of records`);
      this.#pages[k] = viewOf(this.file.here(range.offset, range.size));
    }
    return this.#pages[k];
  }

  /** at returns the resource at an index, 0 to count - 1, of this parcel only; undefined if there is none. */
  at(index) {
    if (!(Number.isInteger(index) && index >= 0 && index < this.count)) return undefined;
    const r = new Resource(this, index, this.#page(Math.floor(index / PAGE)), RECORD * (index % PAGE));
    const wrong = r.wrong(this.#header, this.#sections);
    if (wrong) throw damaged(`record ${index}: ${wrong}`);
    return r;
  }

  *[Symbol.iterator]() {
    for (let i = 0; i < this.count; i++) yield this.at(i);
  }

  // search searches one parcel: Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4), then linear probing.
  #search(section, key, matches) {
    const table = this.#tables[section], size = 2 ** this.#header.bits;
    let at = Math.imul(key, 2654435769) >>> 32 - this.#header.bits;
    for (let left = size; left > 0; left--, at = at + 1 & size - 1) {
      const index1 = table.getUint32(8 * at + 4, true);
      if (index1 === 0) return undefined;
      if (table.getUint32(8 * at, true) !== key) continue;
      if (index1 > this.count) throw damaged(`a table leads to record ${index1 - 1} of ${this.count}`);
      const r = this.at(index1 - 1);
      if (matches(r)) return r;
    }
    return undefined;
  }

  #byID(id) { return this.#search(IDS, id >>> 0, (r) => r.id === id); }

  #byUUID(bytes, sub) {
    const key = new Uint8Array(20);
    key.set(bytes);
    viewOf(key).setUint32(16, sub, true);
    return this.#search(UUIDS, murmur(key), (r) => r.sub === sub && equal(r.uuidBytes, bytes));
  }

  #byName(bytes) {
    return bytes.length === 0 ? undefined : this.#search(NAMES_TABLE, murmur(bytes), (r) => equal(r.nameBytes, bytes));
  }

  // mounted searches this parcel and those under it. A parcel that is damaged at the place in question throws, because
  // a parcel under it would have the wrong content.
  #mounted(search) {
    for (let p = this; p; p = p.under) {
      const r = search(p);
      if (r) return r;
    }
    return undefined;
  }

  /** find looks a resource up by its id, in this parcel and then in those under it; undefined if none has it. */
  find(id) { return this.#mounted((p) => p.#byID(id)); }

  /** findUUID looks up by the UUID of the asset, as text or 16 bytes, and the sub id of the product. */
  findUUID(uuid, sub = 0) {
    const bytes = uuidBytes(uuid);
    return this.#mounted((p) => p.#byUUID(bytes, sub));
  }

  /** findName looks up by name. No resource has an empty name. */
  findName(name) {
    const bytes = encoder.encode(name);
    return this.#mounted((p) => p.#byName(bytes));
  }

  /** need returns a number of the section of needs; for Resource. */
  need(i) { return this.#needs.getUint32(4 * i, true); }

  /** nameBytes returns a part of the section of names; for Resource. */
  nameBytes(offset, size) { return this.#sections[NAMES].subarray(offset, offset + size); }

  /**
   * check checks the whole index against the specification, and throws at the first error. It does not check contents;
   * reading checks each of them.
   */
  check() {
    this.#sections.forEach((b, i) => {
      if (crc32(b) !== this.#header.sections[i].crc) throw damaged(`section ${i} is not what it was`);
    });
    this.#typeBytes.forEach((b, i) => {
      if (i > 0 && compare(this.#typeBytes[i - 1], b) >= 0) throw damaged(`type ${i} is out of order`);
    });
    for (let k = 0; k * PAGE < this.count; k++) {
      const page = this.#page(k), crc = crc32(new Uint8Array(page.buffer, page.byteOffset, page.byteLength));
      if (crc !== this.#directory.getUint32(16 * k + 8, true) || this.#directory.getUint32(16 * k + 12, true) !== 0) throw damaged(`page ${k} of records`);
    }
    let before = -1;
    for (const r of this) {
      if (r.id <= before) throw damaged(`record ${r.index} is out of order`);
      before = r.id;
      this.#checkRecord(r);
    }
  }

  #checkRecord(r) {
    if (!r.hasZeros()) throw damaged(`record ${r.index} has something where zeros should be`);
    try {
      strictUTF8.decode(r.nameBytes);
    } catch {
      throw damaged(`the name of record ${r.index} is no UTF-8`);
    }
    if (r.nameBytes.includes(0)) throw damaged(`the name of record ${r.index} has a zero byte`);
    const found = [this.#byID(r.id), this.#byUUID(r.uuidBytes, r.sub), r.nameBytes.length ? this.#byName(r.nameBytes) : r];
    if (found.some((f) => f?.index !== r.index)) throw damaged(`record ${r.index} is not found`);
  }

  /** digest computes the digest of the whole content: the 32 bytes that are signed. */
  digest() {
    const h = new Hasher();
    for (const r of this) {
      const type = this.#typeBytes[r.typeIndex];
      h.add(r.recordBytes(0, 24)).add(r.recordBytes(48, 8)).add(r.hash); // id, sub and UUID; size; hash
      h.add(Uint8Array.of(type.length, 0)).add(type);
      h.add(Uint8Array.of(r.nameBytes.length & 255, r.nameBytes.length >> 8)).add(r.nameBytes);
      h.add(r.recordBytes(100, 8)).add(this.#sections[NEEDS].subarray(4 * r.needs, 4 * (r.needs + r.requiredCount + r.optionalCount)));
    }
    return h.end();
  }
}

/** Resource is a resource, as described by its record. */
export class Resource {
  #view; #at;

  constructor(parcel, index, view, at) {
    const u32 = (offset) => view.getUint32(at + offset, true);
    this.#view = view;
    this.#at = at;
    /** parcel is the parcel that contains it, index its index there. */
    this.parcel = parcel;
    this.index = index;
    this.id = u32(0);
    /** sub is the id of the product within its asset; 0 for the main one. */
    this.sub = u32(4);
    this.typeIndex = view.getUint16(at + 24, true);
    /** codec: 0 not compressed, 1 Zstandard, 2 Zstandard with the parcel's dictionary. */
    this.codec = view.getUint8(at + 26);
    this.align = view.getUint8(at + 27);
    /** crc is the CRC-32 of the stored bytes, which begin at offset. */
    this.crc = u32(28);
    this.offset = u64(view, at + 32);
    this.stored = u64(view, at + 40);
    /** size of the content in bytes. */
    this.size = u64(view, at + 48);
    this.needs = u32(96);
    this.requiredCount = u32(100);
    this.optionalCount = u32(104);
  }

  /** wrong returns the reason why the record is not valid, or "". */
  wrong(header, sections) {
    const nameOffset = this.#view.getUint32(this.#at + 56, true), nameSize = this.#view.getUint32(this.#at + 60, true);
    const needs = this.requiredCount + this.optionalCount, { stored, offset, size, codec, align } = this;
    if (this.id === 2 ** 32 - 1) return "its id";
    if (this.typeIndex >= header.types) return "its type";
    if (codec > 2 || codec === 2 && sections[DICTIONARY].length === 0) return "its codec";
    if (align < 4 || align > 12) return "its alignment";
    const lies = stored > 0 ? offset >= START && offset + stored <= header.end && offset % 2 ** align === 0 : offset === 0 && size === 0 && this.crc === 0 && codec === 0;
    if (!lies) return "where it lies";
    if (codec === 0 ? stored !== size : size > MAX_COMPRESSED) return "its size";
    if (nameSize > MAX_NAME || nameOffset + nameSize > sections[NAMES].length) return "its name";
    if (needs > MAX_NEEDS || this.needs + needs > sections[NEEDS].length / 4) return "what it needs";
    return "";
  }

  /** recordBytes returns a part of the record. */
  recordBytes(offset, size) { return new Uint8Array(this.#view.buffer, this.#view.byteOffset + this.#at + offset, size); }

  hasZeros() { return this.recordBytes(108, 20).every((b) => b === 0); }

  /** type is the product type, such as "texture". */
  get type() { return this.parcel.types[this.typeIndex]; }

  /**
   * sharedKey is a text that is equal for resources of one parcel that can share one loaded value: they have the same
   * type and place, and need nothing. A texture that a hundred models share is then one texture on the graphics card:
   * keep loaded values in a Map by this key.
   */
  get sharedKey() {
    const shared = this.stored > 0 && this.requiredCount + this.optionalCount === 0;
    return shared ? [this.typeIndex, this.offset, this.stored, this.size, this.codec, this.crc].join() : `#${this.index}`;
  }

  get nameBytes() { return this.parcel.nameBytes(this.#view.getUint32(this.#at + 56, true), this.#view.getUint32(this.#at + 60, true)); }

  /** name is its name, or "" if it has none. */
  get name() { return utf8.decode(this.nameBytes); }

  get uuidBytes() { return this.recordBytes(8, 16); }

  /** uuid is the UUID of the asset, as text. */
  get uuid() { return uuidText(this.uuidBytes); }

  /** hash is the BLAKE3 hash of the content: 32 bytes. */
  get hash() { return this.recordBytes(64, 32); }

  /** required is the ids of the resources that it requires, in load order. */
  get required() { return Array.from({ length: this.requiredCount }, (_, i) => this.parcel.need(this.needs + i)); }

  /** optional is the ids of further resources that it would use. */
  get optional() { return Array.from({ length: this.optionalCount }, (_, i) => this.parcel.need(this.needs + this.requiredCount + i)); }

  // whole compares the stored bytes with their CRC.
  #whole(stored) {
    if (crc32(stored) !== this.crc) throw damaged(`the content of resource ${this.id} is not what it was`);
    return stored;
  }

  #unpack(stored) {
    const { zstd: unpack, dictionary } = this.parcel;
    return this.codec === 2 ? unpack(stored, this.size, dictionary) : unpack(stored, this.size);
  }

  #unpacked(content) {
    if (!(content instanceof Uint8Array) || content.length !== this.size) {
      throw new KilnError("unpacking", `resource ${this.id} did not become ${this.size} bytes`);
    }
    return this.#authentic(content);
  }

  #authentic(content) {
    if (this.parcel.trusted) this.verify(content);
    return content;
  }

  #failed(error) {
    if (error instanceof KilnError) throw error;
    throw new KilnError("unpacking", `resource ${this.id} cannot be decompressed: ${error?.message ?? error}`);
  }

  /**
   * bytes returns the content of a resource whose parcel is in memory. Uncompressed content is a view; do not write to
   * it. If options.zstd returns promises, use load().
   */
  bytes() {
    const stored = this.#whole(this.parcel.file.here(this.offset, this.stored));
    if (this.codec === 0) return this.#authentic(stored);
    try {
      return this.#unpacked(this.#unpack(stored));
    } catch (error) {
      return this.#failed(error);
    }
  }

  /** load returns the content, and fetches it if necessary. */
  async load() { return (await loadAll([this]))[0]; }

  /** content converts the stored bytes to the content; for loadAll. */
  async content(stored) {
    this.#whole(stored);
    if (this.codec === 0) return this.#authentic(stored);
    try {
      return this.#unpacked(await this.#unpack(stored));
    } catch (error) {
      return this.#failed(error);
    }
  }

  /**
   * verify compares content with the hash, and throws if they differ. It is for patches; the CRC already finds
   * accidental damage.
   */
  verify(content) {
    if (!equal(hash(content), this.hash)) throw damaged(`resource ${this.id} has another hash`);
  }
}

/**
 * loadAll returns the contents of resources, in their order. Contents that are close together in a parcel are fetched
 * in one request. In a parcel packed by Kiln, a resource and all that it requires are close together.
 */
export async function loadAll(resources) {
  const files = new Map();
  for (const r of resources) {
    const file = r.parcel.file;
    if (file.fetchRange) files.set(file, [...files.get(file) ?? [], { offset: r.offset, size: r.stored }]);
  }
  const fetched = new Map();
  await Promise.all(Array.from(files, async ([file, ranges]) => {
    const pieces = new Pieces(file.size);
    pieces.pieces = await file.fetchAll(ranges);
    fetched.set(file, pieces);
  }));
  return Promise.all(resources.map((r) => r.content((fetched.get(r.parcel.file) ?? r.parcel.file).here(r.offset, r.stored))));
}

/**
 * loadOrder returns a resource after all that it requires, except those whose ids are in options.known, a Set to which
 * it adds the returned ones. With options.optional it also returns optional needs that are mounted and can be loaded:
 * "Load order" in docs/formats/parcel.md. If it throws, the set does not change.
 */
export function loadOrder(parcel, id, { known = new Set(), optional = false } = {}) {
  const order = [], ids = new Set(), underWay = new Set();
  let looked = 0;
  // visit returns an error as [code, message]. It does not throw, because a failed attempt is common, and throwing
  // takes ten times as long.
  const visit = (at) => {
    if (known.has(at) || ids.has(at)) return undefined;
    const r = parcel.find(at);
    if (!r) return ["missing", `resource ${at} is in no mounted parcel`];
    if (underWay.has(at)) return ["circle", `resource ${at} is in a circle of needs`];
    if (underWay.size > CHAIN) return ["circle", `resource ${at} is at the end of too long a chain of needs`];
    looked += r.requiredCount + (optional ? r.optionalCount : 0);
    if (looked > MAX_LOOKED) return ["circle", `resource ${at} is one of more than a million needs`];
    underWay.add(at);
    const wrong = visitNeeds(r);
    underWay.delete(at);
    if (wrong) return wrong;
    order.push(r);
    ids.add(at);
    return undefined;
  };
  const visitNeeds = (r) => {
    for (const need of r.required) {
      const wrong = visit(need);
      if (wrong) return wrong;
    }
    for (const need of optional ? r.optional : []) {
      const before = order.length, wrong = attempt(need);
      if (wrong && looked > MAX_LOOKED) return wrong;
      if (wrong) for (const taken of order.splice(before)) ids.delete(taken.id);
    }
    return undefined;
  };
  const attempt = (need) => {
    const depth = underWay.size;
    try {
      return visit(need);
    } catch (error) {
      if (!(error instanceof KilnError)) throw error;
      for (const at of Array.from(underWay).slice(depth)) underWay.delete(at);
      return [error.code, error.message];
    }
  };
  const wrong = visit(id);
  if (wrong) throw new KilnError(...wrong);
  for (const at of ids) known.add(at);
  return order;
}

// ---- Zstandard (RFC 8878): the part that docs/formats/parcel.md allows. All state except the content is in a few
// arrays that are allocated once. ----

const BLOCK = 2 ** 17, WINDOW = 2 ** 23, LETTER_BITS = 11, STATE_BITS = 9, LITERAL = 0, OFFSET = 1, MATCH = 2, WEIGHT = 3;

// Number of extra bits of each length code. The base values follow from it.
const EXTRA = {
  [LITERAL]: Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16),
  [OFFSET]: Uint8Array.from({ length: 32 }, (_, i) => i),
  [MATCH]: Uint8Array.of(...new Array(32).fill(0), 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16),
};
const BASES = { [LITERAL]: basesOf(EXTRA[LITERAL], 0), [OFFSET]: basesOf(EXTRA[OFFSET], 1), [MATCH]: basesOf(EXTRA[MATCH], 3) };

function basesOf(extra, first) {
  const bases = new Uint32Array(extra.length);
  extra.forEach((bits, i) => (bases[i] = first, first += 2 ** bits));
  return bases;
}

// The probabilities for a block without its own, as in RFC 8878, 3.1.1.3.2.2; -1 is "less than 1".
const USUAL = {
  [LITERAL]: { log: 6, chances: Int16Array.of(4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1) },
  [OFFSET]: { log: 5, chances: Int16Array.of(1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1) },
  [MATCH]: { log: 6, chances: Int16Array.of(1, 4, 3, 2, 2, 2, 2, 2, 2, ...new Array(37).fill(1), -1, -1, -1, -1, -1, -1, -1) },
};

const wrongFrame = (what) => new KilnError("unpacking", `no frame of Zstandard that can be read: ${what}`);
const high = (x) => 31 - Math.clz32(x);

// A state is one number: the base of the next state, the number of bits to add to it (10 and 4 bits), and the number of
// extra bits of its code (5). The base value is in another array.
class States {
  cells = new Int32Array(2 ** STATE_BITS);
  bases = new Uint32Array(2 ** STATE_BITS);
  log = -1; // no table yet

  fill(kind, log, chances) {
    const { cells, bases } = this, size = 2 ** log, seen = new Uint16Array(chances.length);
    let top = size, at = 0;
    chances.forEach((chance, symbol) => {
      seen[symbol] = Math.abs(chance);
      if (chance < 0) bases[--top] = symbol;
    });
    chances.forEach((chance, symbol) => {
      for (let k = 0; k < chance; k++) {
        bases[at] = symbol;
        do at = at + (size >> 1) + (size >> 3) + 3 & size - 1; while (at >= top);
      }
    });
    for (let i = 0; i < size; i++) {
      const symbol = bases[i], x = seen[symbol]++, bits = log - high(x), extra = kind === WEIGHT ? 0 : EXTRA[kind][symbol];
      if (extra === undefined) throw wrongFrame("a code that does not exist");
      cells[i] = (x << bits) - size | bits << 10 | extra << 14;
      if (kind !== WEIGHT) bases[i] = BASES[kind][symbol];
    }
    this.log = log;
  }

  one(kind, symbol) {
    if (!(symbol < EXTRA[kind].length)) throw wrongFrame("a code that does not exist");
    this.cells[0] = EXTRA[kind][symbol] << 14;
    this.bases[0] = BASES[kind][symbol];
    this.log = 0;
  }
}

// look returns n bits, at most 25, from a bit position in the data after begin. Streams are read from their end, so the
// remaining bits are below.
function look(src, begin, bit, n) {
  const i = begin + (bit >> 3);
  return (src[i] | src[i + 1] << 8 | src[i + 2] << 16 | src[i + 3] << 24) >>> (bit & 7) & (1 << n) - 1;
}

// bitsIn returns the number of bits in a stream, by the highest bit of its last byte.
function bitsIn(src, begin, end) {
  if (end <= begin || src[end - 1] === 0) throw wrongFrame("a stream without an end");
  return (end - begin - 1) * 8 + high(src[end - 1]);
}

// readChances reads the probabilities of symbols, and returns the offset of their end.
function readChances(src, begin, end, mostBits) {
  const log = 5 + (src[begin] & 15), chances = [];
  if (begin >= end || log > mostBits) throw wrongFrame("a table that is too large");
  const bits = (at, n) => at + n <= 8 * (end - begin) ? look(src, begin, at, n) : look(src, begin, at, n) & (1 << Math.max(0, 8 * (end - begin) - at)) - 1;
  let at = 4, left = 2 ** log;
  while (left > 0 && chances.length < 256 && at < 8 * (end - begin)) {
    let n = high(left + 1) + 1, v = bits(at, n);
    const low = v & (1 << n - 1) - 1, short = 2 ** n - 2 - left;
    if (low < short) [v, n] = [low, n - 1];
    else if (v !== low) v -= short;
    at += n;
    chances.push(v - 1);
    left -= Math.abs(v - 1);
    for (let zeros = v === 1 ? 3 : 0; zeros === 3;) { // two bits with the number of further zeros; 3 means that two more bits follow
      zeros = bits(at, 2);
      at += 2;
      if (chances.length + zeros > 256) throw wrongFrame("a table that is too large");
      for (let k = 0; k < zeros; k++) chances.push(0);
    }
  }
  if (left || chances.length < 2 || at > 8 * (end - begin)) throw wrongFrame("a table that is not whole");
  return { log, chances, end: begin + (at + 7 >> 3) };
}

class Unzstd {
  #src; #end; // the bytes and their end; a few more bytes follow, for look
  #out; #at = 0; #begin = 0; // the content, the current position, the begin of the frame's content
  #states = [new States(), new States(), new States()];
  #weights = new States();
  #letters = new Uint16Array(2 ** LETTER_BITS); // letter * 16 + bits of its code
  #letterBits = 0; // none yet
  #offsets = new Uint32Array(3); // repeat offsets
  #dictionary; #window; #most;
  #buffer = new Uint8Array(BLOCK);
  #literals; #literalsAt; #literalsEnd; // literals of the block: in the bytes, or in the buffer

  // all decompresses all frames. size is the expected size of the result.
  all(stored, size, dictionary) {
    const src = new Uint8Array(stored.length + 8);
    src.set(stored);
    this.#src = src;
    this.#out = new Uint8Array(size);
    this.#at = 0;
    try {
      for (let at = 0; at < stored.length;) {
        const other = otherFrame(src, at, stored.length);
        this.#end = stored.length;
        at = other || this.#frame(at, dictionary);
      }
      if (this.#at !== size) throw wrongFrame(`${this.#at} bytes instead of ${size}`);
      return this.#out;
    } finally {
      this.#src = this.#out = this.#dictionary = this.#literals = undefined;
    }
  }

  #frame(begin, dictionary) {
    const src = this.#src, head = frameHead(src, begin, this.#end);
    if (!head || head.window > WINDOW) throw wrongFrame("its head");
    this.#window = head.window;
    this.#most = Math.min(head.window, BLOCK);
    for (const s of this.#states) s.log = -1;
    this.#letterBits = 0;
    this.#offsets.set([1, 4, 8]);
    this.#begin = this.#at;
    this.#takeDictionary(head.dictionary, dictionary);
    let at = head.end;
    for (let last = false; !last;) {
      const block = blockHead(src, at, this.#end);
      if (!block || block.size > this.#most || block.kind > 2) throw wrongFrame("a block");
      last = block.last;
      this.#block(block);
      at = block.end;
    }
    if (head.content !== undefined && head.content !== this.#at - this.#begin) throw wrongFrame("the size of a frame");
    if (!head.checked) return at;
    if (at + 4 > this.#end || viewOf(src).getUint32(at, true) !== xxh64(this.#out.subarray(this.#begin, this.#at))) throw wrongFrame("a checksum");
    return at + 4;
  }

  #block({ kind, size, begin, end }) {
    if (kind === 2) return this.#compressed(begin, end);
    if (size > this.#out.length - this.#at) throw wrongFrame("it becomes too large");
    if (kind === 1) this.#out.fill(this.#src[begin], this.#at, this.#at + size);
    else this.#out.set(this.#src.subarray(begin, end), this.#at);
    this.#at += size;
  }

  #compressed(begin, end) {
    if (end - begin < 2) throw wrongFrame("a block");
    const src = this.#src, stop = Math.min(this.#out.length, this.#at + this.#most);
    let at = this.#readLiterals(begin, end, stop - this.#at);
    const first = src[at], n = at < end ? first < 128 ? 1 : first < 255 ? 2 : 3 : 9;
    if (at + n > end) throw wrongFrame("a block");
    const count = n === 1 ? first : n === 2 ? (first - 128) * 256 + src[at + 1] : src[at + 1] + src[at + 2] * 256 + 0x7f00;
    at += n;
    if (count === 0) {
      if (at !== end) throw wrongFrame("a block");
      this.#out.set(this.#literals.subarray(this.#literalsAt, this.#literalsEnd), this.#at);
      this.#at += this.#literalsEnd - this.#literalsAt;
      return;
    }
    const modes = src[at++];
    if (at > end || modes & 3) throw wrongFrame("a block");
    for (const kind of [LITERAL, OFFSET, MATCH]) at = this.#table(kind, modes >> 6 - 2 * kind & 3, at, end);
    this.#sequences(count, at, end, stop);
  }

  // table reads a table of states, and returns the offset of its end.
  #table(kind, mode, at, end) {
    const states = this.#states[kind];
    if (mode === 0) states.fill(kind, USUAL[kind].log, USUAL[kind].chances);
    if (mode === 1) states.one(kind, at < end ? this.#src[at] : NaN);
    if (mode === 2) {
      const table = readChances(this.#src, at, end, STATE_BITS);
      states.fill(kind, table.log, table.chances);
      return table.end;
    }
    if (states.log < 0) throw wrongFrame("a table that was not there before");
    return mode === 1 ? at + 1 : at;
  }

  // readLiterals finds or decodes the literals of a block, and returns the offset of their end.
  #readLiterals(begin, end, room) {
    const src = this.#src, kind = src[begin] & 3, form = src[begin] >> 2 & 3;
    const head = kind < 2 ? [1, 2, 1, 3][form] : [3, 3, 4, 5][form];
    if (begin + head > end) throw wrongFrame("literals");
    let v = 0;
    for (let i = head - 1; i >= 0; i--) v = v * 256 + src[begin + i];
    const bits = [10, 10, 14, 18][form];
    const count = kind < 2 ? Math.floor(v / (form & 1 ? 16 : 8)) : Math.floor(v / 16) % 2 ** bits;
    const used = kind === 0 ? count : kind === 1 ? 1 : Math.floor(v / 2 ** (4 + bits));
    const at = begin + head;
    if (at + used > end || count > room) throw wrongFrame("literals");
    this.#literals = kind === 0 ? src : this.#buffer;
    this.#literalsAt = kind === 0 ? at : 0;
    this.#literalsEnd = this.#literalsAt + count;
    if (kind === 1) this.#buffer.fill(src[at], 0, count);
    if (kind > 1) {
      const streams = kind === 2 ? this.#readTree(at, at + used) : at;
      if (!this.#letterBits) throw wrongFrame("literals without codes");
      if (form === 0) this.#stream(streams, at + used, 0, count);
      else this.#fourStreams(streams, at + used, count);
    }
    return at + used;
  }

  #fourStreams(begin, end, count) {
    const part = count + 3 >> 2;
    if (end - begin < 10 || 3 * part > count) throw wrongFrame("literals");
    let at = begin + 6;
    for (let i = 0; i < 4; i++) {
      const n = i < 3 ? this.#src[begin + 2 * i] + this.#src[begin + 2 * i + 1] * 256 : end - at;
      if (n > end - at) throw wrongFrame("literals");
      this.#stream(at, at + n, i * part, i < 3 ? (i + 1) * part : count);
      at += n;
    }
  }

  // stream decodes letters into the buffer. Two codes have at most 22 bits, so four bytes hold them at any bit
  // position.
  #stream(begin, end, to, stop) {
    const src = this.#src, out = this.#buffer, letters = this.#letters, log = this.#letterBits, mask = 2 ** log - 1;
    let bit = bitsIn(src, begin, end);
    while (bit >= 22 && to + 2 <= stop) {
      const q = bit - 22, i = begin + (q >> 3);
      const v = (src[i] | src[i + 1] << 8 | src[i + 2] << 16 | src[i + 3] << 24) >>> (q & 7);
      const a = letters[v >>> 22 - log & mask], used = a & 15, b = letters[v >>> 22 - log - used & mask];
      out[to] = a >> 4;
      out[to + 1] = b >> 4;
      to += 2;
      bit -= used + (b & 15);
    }
    for (; to < stop; to++) {
      const a = letters[bit >= log ? look(src, begin, bit - log, log) : look(src, begin, 0, Math.max(0, bit)) << log - Math.max(0, bit)];
      out[to] = a >> 4;
      bit -= a & 15;
      if (bit < 0) break;
    }
    if (bit !== 0) throw wrongFrame("literals");
  }

  // readTree reads the Huffman codes, and returns the offset of their end.
  #readTree(begin, end) {
    const src = this.#src, first = src[begin], used = first < 128 ? first : first - 126 >> 1;
    if (end - begin < 2 || used > end - begin - 1) throw wrongFrame("codes of letters");
    const weights = first < 128 ? this.#readWeights(begin + 1, begin + 1 + used)
      : Array.from({ length: first - 127 }, (_, n) => n & 1 ? src[begin + 1 + (n >> 1)] & 15 : src[begin + 1 + (n >> 1)] >> 4);
    const total = weights.reduce((sum, w) => w > LETTER_BITS ? NaN : w ? sum + 2 ** (w - 1) : sum, 0);
    if (!(total > 0 && total < 2 ** LETTER_BITS)) throw wrongFrame("codes of letters");
    const log = high(total) + 1, rest = 2 ** log - total; // rest is the weight of the last symbol, which is not stored
    if (rest & rest - 1) throw wrongFrame("codes of letters");
    weights.push(high(rest) + 1);
    const shortest = weights.filter((w) => w === 1).length;
    if (shortest < 2 || shortest & 1) throw wrongFrame("codes of letters");
    let at = 0;
    for (let w = 1; w <= log; w++) {
      weights.forEach((weight, letter) => {
        if (weight !== w) return;
        this.#letters.fill(letter << 4 | log + 1 - w, at, at + 2 ** (w - 1));
        at += 2 ** (w - 1);
      });
    }
    this.#letterBits = log;
    return begin + 1 + used;
  }

  // readWeights reads compressed weights. Two states alternate; the first one that needs bits when there are none ends
  // the list.
  #readWeights(begin, end) {
    const src = this.#src, table = readChances(src, begin, end, 6), weights = [], { cells, bases } = this.#weights;
    this.#weights.fill(WEIGHT, table.log, table.chances);
    let bit = bitsIn(src, table.end, end) - 2 * table.log;
    if (bit < 0) throw wrongFrame("codes of letters");
    const states = [look(src, table.end, bit + table.log, table.log), look(src, table.end, bit, table.log)];
    for (let turn = 0; weights.length < 254; turn ^= 1) {
      const cell = cells[states[turn]], bits = cell >> 10 & 15;
      weights.push(bases[states[turn]]);
      if (bits > 0 && bit === 0) return [...weights, bases[states[turn ^ 1]]];
      bit -= bits;
      if (bit < 0) break;
      states[turn] = (cell & 1023) + look(src, table.end, bit, bits);
    }
    throw wrongFrame("codes of letters");
  }

  // sequences writes the content of a block: literals and matches in turn.
  #sequences(count, begin, end, stop) {
    const src = this.#src, out = this.#out, [ls, os, ms] = this.#states, letters = this.#literals, lettersEnd = this.#literalsEnd;
    const lc = ls.cells, lb = ls.bases, oc = os.cells, ob = os.bases, mc = ms.cells, mb = ms.bases;
    let bit = bitsIn(src, begin, end) - ls.log, at = this.#at, from = this.#literalsAt;
    let l = look(src, begin, bit, ls.log), o = look(src, begin, bit -= os.log, os.log), m = look(src, begin, bit -= ms.log, ms.log);
    while (bit >= 0) {
      const lcell = lc[l], ocell = oc[o], mcell = mc[m], oextra = ocell >> 14, mextra = mcell >> 14, lextra = lcell >> 14;
      if (oextra > 24) throw wrongFrame("an offset"); // larger than any window
      const number = ob[o] + look(src, begin, bit -= oextra, oextra);
      let n = mb[m] + look(src, begin, bit -= mextra, mextra);
      const literals = lb[l] + look(src, begin, bit -= lextra, lextra), back = this.#offset(number, literals === 0);
      if (literals > lettersEnd - from || literals + n > stop - at) throw wrongFrame("it becomes too large");
      if (literals > 32) out.set(letters.subarray(from, from += literals), at), at += literals;
      else for (const to = at + literals; at < to;) out[at++] = letters[from++];
      if (back > at - this.#begin) {
        const taken = this.#fromDictionary(back - (at - this.#begin), n, at);
        at += taken;
        n -= taken;
      } else if (back > this.#window) throw wrongFrame("an offset");
      if (n > 32 && back >= n) out.copyWithin(at, at - back, at - back + n), at += n;
      else for (const to = at + n; at < to; at++) out[at] = out[at - back];
      if (--count === 0) break;
      l = (lcell & 1023) + look(src, begin, bit -= lcell >> 10 & 15, lcell >> 10 & 15);
      m = (mcell & 1023) + look(src, begin, bit -= mcell >> 10 & 15, mcell >> 10 & 15);
      o = (ocell & 1023) + look(src, begin, bit -= ocell >> 10 & 15, ocell >> 10 & 15);
    }
    if (bit !== 0 || count > 0 || lettersEnd - from > stop - at) throw wrongFrame("a block");
    out.set(letters.subarray(from, lettersEnd), at);
    this.#at = at + lettersEnd - from;
  }

  // offset converts an offset's number to a distance, and updates the repeat offsets.
  #offset(number, noLiterals) {
    const offsets = this.#offsets;
    let offset = number - 3;
    if (number <= 3) {
      const which = number - 1 + (noLiterals ? 1 : 0);
      offset = (which === 3 ? offsets[0] - 1 : offsets[which]) || 1;
      if (which === 0) return offset;
      if (which > 1) offsets[2] = offsets[1];
    } else offsets[2] = offsets[1];
    offsets[1] = offsets[0];
    return offsets[0] = offset;
  }

  // fromDictionary copies the part of a match that is in the dictionary, and returns its length. The rest of the match
  // is at the begin of the frame.
  #fromDictionary(before, n, at) {
    const d = this.#dictionary, begin = d.length - before;
    if (begin < 0) throw wrongFrame("an offset");
    const taken = Math.min(n, before);
    this.#out.set(d.subarray(begin, begin + taken), at);
    return taken;
  }

  // takeDictionary begins a frame with a dictionary: raw content, or in the format of zstd --train.
  #takeDictionary(id, d) {
    this.#dictionary = new Uint8Array(0);
    const own = d?.length >= 4 && viewOf(d).getUint32(0, true) === 0xec30a437;
    if (own && (d.length < 21 || viewOf(d).getUint32(4, true) === 0)) throw wrongFrame("its dictionary");
    const named = own ? viewOf(d).getUint32(4, true) : 0;
    if (id !== named) {
      if (id) throw wrongFrame("another dictionary");
      return; // a frame without a dictionary id uses none
    }
    if (d) this.#dictionary = d;
    if (!own) return;
    const src = this.#src, padded = new Uint8Array(d.length + 8);
    padded.set(d);
    this.#src = padded;
    let at = this.#readTree(8, d.length);
    for (const kind of [OFFSET, MATCH, LITERAL]) at = this.#table(kind, 2, at, d.length);
    this.#src = src;
    if (d.length - at < 12) throw wrongFrame("its dictionary");
    this.#dictionary = d.subarray(at + 12);
    for (let i = 0; i < 3; i++) {
      this.#offsets[i] = viewOf(d).getUint32(at + 4 * i, true);
      if (!this.#offsets[i] || this.#offsets[i] > this.#dictionary.length) throw wrongFrame("its dictionary");
    }
  }
}

// frameHead reads the header of a frame; undefined if it is not valid.
function frameHead(src, at, end) {
  const view = viewOf(src), flags = src[at + 4];
  if (end - at < 6 || view.getUint32(at, true) !== 0xfd2fb528 || flags & 8) return undefined;
  const one = (flags & 32) !== 0; // single segment: the window is the content
  const ids = [0, 1, 2, 4][flags & 3], contents = flags >> 6 || !one ? [0, 2, 4, 8][flags >> 6] : 1;
  const head = { end: at + 5 + (one ? 0 : 1) + ids + contents, checked: (flags & 4) !== 0, dictionary: 0, content: undefined };
  if (head.end > end) return undefined;
  const number = (from, bytes) => Array.from(src.subarray(from, from + bytes)).reduceRight((n, b) => n * 256 + b, 0);
  head.dictionary = number(head.end - contents - ids, ids);
  if (contents) head.content = number(head.end - contents, contents) + (contents === 2 ? 256 : 0);
  head.window = one ? Math.max(1024, head.content) : (8 + (src[at + 5] & 7)) * 2 ** (7 + (src[at + 5] >> 3));
  return head;
}

// otherFrame returns the end of a skippable frame, or 0 if it is not one.
function otherFrame(src, at, end) {
  if (end - at < 8 || (src[at] & 0xf0) !== 0x50 || src[at + 1] !== 0x2a || src[at + 2] !== 0x4d || src[at + 3] !== 0x18) return 0;
  const stop = at + 8 + viewOf(src).getUint32(at + 4, true);
  return stop <= end ? stop : 0;
}

// blockHead reads the header of a block; undefined if it or the block is truncated.
function blockHead(src, at, end) {
  if (at + 3 > end) return undefined;
  const kind = src[at] >> 1 & 3, size = (src[at] | src[at + 1] << 8 | src[at + 2] << 16) >> 3, begin = at + 3, stop = begin + (kind === 1 ? 1 : size);
  return stop <= end ? { last: (src[at] & 1) === 1, kind, size, begin, end: stop } : undefined;
}

// mostOf returns the largest possible size of the decompressed frames, by the headers of their blocks. Content that
// claims more is refused before memory is allocated.
function mostOf(src) {
  let most = 0;
  for (let at = 0; at < src.length && most <= MAX_COMPRESSED;) {
    const other = otherFrame(src, at, src.length), head = other ? undefined : frameHead(src, at, src.length);
    if (!other && !head) return most;
    at = other || head.end;
    for (let block = other ? { last: true } : undefined; !block?.last; at = block.end) {
      block = blockHead(src, at, src.length);
      if (!block) return most;
      most += block.kind === 2 ? BLOCK : block.size;
    }
    if (head?.checked) at += 4;
  }
  return most;
}

const X1 = 0x9e3779b185ebca87n, X2 = 0xc2b2ae3d27d4eb4fn, X3 = 0x165667b19e3779f9n, X4 = 0x85ebca77c2b2ae63n, X5 = 0x27d4eb2f165667c5n;

// xxh64 returns the lower half of XXH64 with seed 0, by Yann Collet. Kiln's own frames do not have it; frames of other
// programs may.
function xxh64(bytes) {
  const u64 = (x) => BigInt.asUintN(64, x), left = (x, n) => u64(x << n) | x >> 64n - n, view = viewOf(bytes), size = bytes.length;
  const round = (h, v) => u64(left(u64(h + u64(v * X2)), 31n) * X1);
  let h = X5, at = 0;
  if (size >= 32) {
    const v = [u64(X1 + X2), X2, 0n, u64(-X1)];
    for (; at + 32 <= size; at += 32) for (let i = 0; i < 4; i++) v[i] = round(v[i], view.getBigUint64(at + 8 * i, true));
    h = u64(left(v[0], 1n) + left(v[1], 7n) + left(v[2], 12n) + left(v[3], 18n));
    for (let i = 0; i < 4; i++) h = u64((h ^ round(0n, v[i])) * X1 + X4);
  }
  h = u64(h + BigInt(size));
  for (; at + 8 <= size; at += 8) h = u64(left(h ^ round(0n, view.getBigUint64(at, true)), 27n) * X1 + X4);
  if (at + 4 <= size) {
    h = u64(left(h ^ u64(BigInt(view.getUint32(at, true)) * X1), 23n) * X2 + X3);
    at += 4;
  }
  for (; at < size; at++) h = u64(left(h ^ u64(BigInt(bytes[at]) * X5), 11n) * X1);
  h = u64((h ^ h >> 33n) * X2);
  h = u64((h ^ h >> 29n) * X3);
  return Number((h ^ h >> 32n) & 0xffffffffn);
}

let unzstd;

/** zstd decompresses Zstandard frames to exactly size bytes. options.zstd replaces it. */
export function zstd(stored, size, dictionary) {
  if (size > mostOf(stored)) throw wrongFrame(`${stored.length} bytes cannot become ${size}`);
  unzstd ??= new Unzstd();
  return unzstd.all(stored, size, dictionary);
}

// ---- BLAKE3: the unkeyed hash with 32 bytes of output, section 2 of the BLAKE3 paper ----

const IV = Int32Array.of(0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19);
const CHUNK_START = 1, CHUNK_END = 2, PARENT = 4, ROOT = 8;

// compress mixes the 16 words of m into the chaining value cv. It reorders the words. The state is in sixteen
// variables, because an array would be five times slower.
function compress(cv, m, counter, size, flags) {
  let a0 = cv[0], a1 = cv[1], a2 = cv[2], a3 = cv[3], b0 = cv[4], b1 = cv[5], b2 = cv[6], b3 = cv[7];
  let c0 = IV[0], c1 = IV[1], c2 = IV[2], c3 = IV[3], d0 = counter | 0, d1 = Math.floor(counter / 2 ** 32) | 0, d2 = size, d3 = flags;
  for (let round = 0; ; round++) {
    a0 = a0 + b0 + m[0] | 0; d0 ^= a0; d0 = d0 >>> 16 | d0 << 16; c0 = c0 + d0 | 0; b0 ^= c0; b0 = b0 >>> 12 | b0 << 20;
    a0 = a0 + b0 + m[1] | 0; d0 ^= a0; d0 = d0 >>> 8 | d0 << 24; c0 = c0 + d0 | 0; b0 ^= c0; b0 = b0 >>> 7 | b0 << 25;
    a1 = a1 + b1 + m[2] | 0; d1 ^= a1; d1 = d1 >>> 16 | d1 << 16; c1 = c1 + d1 | 0; b1 ^= c1; b1 = b1 >>> 12 | b1 << 20;
    a1 = a1 + b1 + m[3] | 0; d1 ^= a1; d1 = d1 >>> 8 | d1 << 24; c1 = c1 + d1 | 0; b1 ^= c1; b1 = b1 >>> 7 | b1 << 25;
    a2 = a2 + b2 + m[4] | 0; d2 ^= a2; d2 = d2 >>> 16 | d2 << 16; c2 = c2 + d2 | 0; b2 ^= c2; b2 = b2 >>> 12 | b2 << 20;
    a2 = a2 + b2 + m[5] | 0; d2 ^= a2; d2 = d2 >>> 8 | d2 << 24; c2 = c2 + d2 | 0; b2 ^= c2; b2 = b2 >>> 7 | b2 << 25;
    a3 = a3 + b3 + m[6] | 0; d3 ^= a3; d3 = d3 >>> 16 | d3 << 16; c3 = c3 + d3 | 0; b3 ^= c3; b3 = b3 >>> 12 | b3 << 20;
    a3 = a3 + b3 + m[7] | 0; d3 ^= a3; d3 = d3 >>> 8 | d3 << 24; c3 = c3 + d3 | 0; b3 ^= c3; b3 = b3 >>> 7 | b3 << 25;
    a0 = a0 + b1 + m[8] | 0; d3 ^= a0; d3 = d3 >>> 16 | d3 << 16; c2 = c2 + d3 | 0; b1 ^= c2; b1 = b1 >>> 12 | b1 << 20;
    a0 = a0 + b1 + m[9] | 0; d3 ^= a0; d3 = d3 >>> 8 | d3 << 24; c2 = c2 + d3 | 0; b1 ^= c2; b1 = b1 >>> 7 | b1 << 25;
    a1 = a1 + b2 + m[10] | 0; d0 ^= a1; d0 = d0 >>> 16 | d0 << 16; c3 = c3 + d0 | 0; b2 ^= c3; b2 = b2 >>> 12 | b2 << 20;
    a1 = a1 + b2 + m[11] | 0; d0 ^= a1; d0 = d0 >>> 8 | d0 << 24; c3 = c3 + d0 | 0; b2 ^= c3; b2 = b2 >>> 7 | b2 << 25;
    a2 = a2 + b3 + m[12] | 0; d1 ^= a2; d1 = d1 >>> 16 | d1 << 16; c0 = c0 + d1 | 0; b3 ^= c0; b3 = b3 >>> 12 | b3 << 20;
    a2 = a2 + b3 + m[13] | 0; d1 ^= a2; d1 = d1 >>> 8 | d1 << 24; c0 = c0 + d1 | 0; b3 ^= c0; b3 = b3 >>> 7 | b3 << 25;
    a3 = a3 + b0 + m[14] | 0; d2 ^= a3; d2 = d2 >>> 16 | d2 << 16; c1 = c1 + d2 | 0; b0 ^= c1; b0 = b0 >>> 12 | b0 << 20;
    a3 = a3 + b0 + m[15] | 0; d2 ^= a3; d2 = d2 >>> 8 | d2 << 24; c1 = c1 + d2 | 0; b0 ^= c1; b0 = b0 >>> 7 | b0 << 25;
    if (round === 6) break;
    permute(m);
  }
  cv[0] = a0 ^ c0; cv[1] = a1 ^ c1; cv[2] = a2 ^ c2; cv[3] = a3 ^ c3;
  cv[4] = b0 ^ d0; cv[5] = b1 ^ d1; cv[6] = b2 ^ d2; cv[7] = b3 ^ d3;
}

// permute applies the permutation of the paper's table 2 in place, along its two cycles.
function permute(m) {
  let t = m[0];
  m[0] = m[2]; m[2] = m[3]; m[3] = m[10]; m[10] = m[12]; m[12] = m[9]; m[9] = m[11]; m[11] = m[5]; m[5] = t;
  t = m[1];
  m[1] = m[6]; m[6] = m[4]; m[4] = m[7]; m[7] = m[13]; m[13] = m[14]; m[14] = m[15]; m[15] = m[8]; m[8] = t;
}

class Hasher {
  #stack = []; // values of finished subtrees, the largest first
  #chunk = 0; // number of the current chunk
  #cv = IV.slice(); // its chaining value
  #blocks = 0; // number of its blocks that are in the chaining value
  #block = new Uint8Array(64); // the next block, held back because the very last one is hashed in another way
  #words = viewOf(this.#block);
  #used = 0;
  #m = new Int32Array(16);

  // mix adds 64 bytes of a view to the chaining value. It closes the chunk, and the subtrees that are complete with it.
  #mix(view, at) {
    for (let i = 0; i < 16; i++) this.#m[i] = view.getInt32(at + 4 * i, true);
    compress(this.#cv, this.#m, this.#chunk, 64, (this.#blocks === 0 ? CHUNK_START : 0) | (this.#blocks === 15 ? CHUNK_END : 0));
    if (++this.#blocks < 16) return;
    for (let done = ++this.#chunk; done % 2 === 0; done /= 2) this.#join(0);
    this.#stack.push(this.#cv);
    this.#cv = IV.slice();
    this.#blocks = 0;
  }

  // join combines the last subtree and the chaining value.
  #join(root) {
    this.#m.set(this.#stack.pop());
    this.#m.set(this.#cv, 8);
    this.#cv = IV.slice();
    compress(this.#cv, this.#m, 0, 64, PARENT | root);
  }

  add(bytes) {
    const view = viewOf(bytes);
    let at = 0;
    while (at < bytes.length) {
      if (this.#used === 64) {
        this.#mix(this.#words, 0);
        this.#used = 0;
      }
      if (this.#used === 0) for (; bytes.length - at > 64; at += 64) this.#mix(view, at);
      const n = Math.min(64 - this.#used, bytes.length - at);
      this.#block.set(bytes.subarray(at, at + n), this.#used);
      this.#used += n;
      at += n;
    }
    return this;
  }

  end() {
    this.#block.fill(0, this.#used);
    for (let i = 0; i < 16; i++) this.#m[i] = this.#words.getInt32(4 * i, true);
    compress(this.#cv, this.#m, this.#chunk, this.#used, (this.#blocks === 0 ? CHUNK_START : 0) | CHUNK_END | (this.#stack.length ? 0 : ROOT));
    while (this.#stack.length) this.#join(this.#stack.length === 1 ? ROOT : 0);
    const out = new Uint8Array(32), words = viewOf(out);
    this.#cv.forEach((word, i) => words.setInt32(4 * i, word, true));
    return out;
  }
}

/** hash returns the BLAKE3 hash of bytes: 32 bytes. About 0.2 GB/s. */
export function hash(bytes) {
  return new Hasher().add(bytes).end();
}
