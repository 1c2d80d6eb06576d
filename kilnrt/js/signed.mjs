// signed.mjs verifies the minisign signature in a parcel: docs/formats/parcel.md, "Digest and signature". It needs
// WebCrypto with Ed25519: node from 18, Chromium from 137, Firefox from 129, Safari from 17.
//
//     import { open } from "./kiln.mjs";
//     import { trust } from "./signed.mjs";
//     const parcel = open(bytes);
//     await trust(parcel, "RWR8F8J9ur+Ailn0HgndQnmMKqsbKGvO7riFQvqYhKLnUu5SP2C/FYmM");

import { KilnError } from "./kiln.mjs";

/**
 * trust verifies a parcel with a public key of minisign (the text of a .pub file, or its second line): the signature of
 * the digest, the digest of the index, and the index itself as check() does. Afterwards each content is compared with
 * its hash when it is returned. Throws a KilnError "signature" or "damaged".
 */
export async function trust(parcel, publicKey) {
  const key = base64(publicKey.trim().split("\n").at(-1).trim());
  if (key.length !== 42 || key[0] !== 0x45 || key[1] !== 0x64) throw new TypeError("this is no public key of minisign");
  if (!await signs(key, parcel.storedDigest, parcel.signature)) throw new KilnError("signature", "the parcel is not signed by this key");
  parcel.check();
  if (parcel.digest().some((b, i) => b !== parcel.storedDigest[i])) throw new KilnError("damaged", "the index is not the one that is signed");
  parcel.trusted = true;
}

// signs reports whether text is a signature of a short message by a key: of the message itself ("Ed") or of its BLAKE2b
// ("ED"), and of that with a comment.
async function signs(key, message, text) {
  const lines = new TextDecoder().decode(text).split("\n"), prefix = "trusted comment: ";
  if (lines.length < 4 || !lines[0].startsWith("untrusted comment: ") || !lines[2].startsWith(prefix)) return false;
  let signature, second;
  try {
    [signature, second] = [base64(lines[1].trim()), base64(lines[3].trim())];
  } catch {
    return false;
  }
  const hashed = signature[1] === 0x44;
  if (signature.length !== 74 || second.length !== 64 || signature[0] !== 0x45 || !hashed && signature[1] !== 0x64) return false;
  if (key.subarray(2, 10).some((b, i) => b !== signature[2 + i])) return false;
  const comment = new TextEncoder().encode(lines[2].slice(prefix.length).replace(/\r+$/, ""));
  const both = new Uint8Array(64 + comment.length);
  both.set(signature.subarray(10));
  both.set(comment, 64);
  const { subtle } = globalThis.crypto ?? {};
  if (!subtle) throw new KilnError("signature", "there is no WebCrypto here: a page must come over https");
  const ed25519 = await subtle.importKey("raw", key.subarray(10), { name: "Ed25519" }, false, ["verify"]);
  return await subtle.verify("Ed25519", ed25519, signature.subarray(10), hashed ? blake2b(message) : message) &&
    await subtle.verify("Ed25519", ed25519, second, both);
}

const base64 = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

const IV = [
  0x6a09e667f3bcc908n, 0xbb67ae8584caa73bn, 0x3c6ef372fe94f82bn, 0xa54ff53a5f1d36f1n, 0x510e527fade682d1n, 0x9b05688c2b3e6c1fn, 0x1f83d9abfb41bd6bn, 0x5be0cd19137e2179n,
];

// The word for each place of a round, in hexadecimal: RFC 7693, 2.7. Rounds 10 and 11 are 0 and 1 again.
const SIGMA = [
  "0123456789abcdef", "ea489fd61c02b753", "b8c052fdae367194", "7931dcbe265a40f8", "905724afe1bc683d",
  "2c6a0b834d75fe19", "c51fed4a0763928b", "db7ec13950f4862a", "6fe9b308c2d714a5", "a2847615fb9e3cd0",
];

// blake2b is the BLAKE2b-512 of at most 128 bytes (RFC 7693).
export function blake2b(message) {
  const block = new Uint8Array(128);
  block.set(message);
  const m = new BigUint64Array(16), view = new DataView(block.buffer), h = BigUint64Array.from(IV), v = new BigUint64Array(16);
  for (let i = 0; i < 16; i++) m[i] = view.getBigUint64(8 * i, true);
  h[0] ^= 0x01010040n; // 64 bytes of hash, no key
  v.set(h);
  v.set(IV, 8);
  v[12] ^= BigInt(message.length);
  v[14] = ~v[14]; // the last block
  const turn = (x, n) => x >> n | x << 64n - n;
  const mix = (a, b, c, d, x, y) => {
    v[a] += v[b] + x; v[d] = turn(v[d] ^ v[a], 32n); v[c] += v[d]; v[b] = turn(v[b] ^ v[c], 24n);
    v[a] += v[b] + y; v[d] = turn(v[d] ^ v[a], 16n); v[c] += v[d]; v[b] = turn(v[b] ^ v[c], 63n);
  };
  for (let round = 0; round < 12; round++) {
    const w = Array.from(SIGMA[round % 10], (digit) => m[parseInt(digit, 16)]);
    for (let i = 0; i < 4; i++) mix(i, 4 + i, 8 + i, 12 + i, w[2 * i], w[2 * i + 1]);
    for (let i = 0; i < 4; i++) mix(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4, w[8 + 2 * i], w[9 + 2 * i]);
  }
  const out = new Uint8Array(64), to = new DataView(out.buffer);
  for (let i = 0; i < 8; i++) to.setBigUint64(8 * i, h[i] ^ v[i] ^ v[8 + i], true);
  return out;
}
