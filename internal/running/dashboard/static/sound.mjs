// A sound as a wave with its loop and markers, what was played darker; below it, its spectrum and its loudness over time. The server sends
// what is played as WAV, with the gain: product and source at one level.

const longest = 30 * 60; // seconds that are drawn: 30 minutes of stereo are 630 MB when decoded

export async function show(box) {
  const audio = box.querySelector("audio"), canvas = box.querySelector("canvas"), facts = box.querySelector("[data-facts]");
  const spectrum = box.querySelector(".spectrum"), loudness = box.querySelector(".loudness");
  let peaks = null, samples = null, about = null;

  const paper = c => {
    const dpr = devicePixelRatio, w = c.width = c.clientWidth * dpr, h = c.height = c.clientHeight * dpr;
    return {g: c.getContext("2d"), w, h, dpr, ink: getComputedStyle(c).getPropertyValue("color")};
  };
  const accentOf = () => getComputedStyle(box.closest("main").querySelector(".under a") ?? box).color;

  const draw = () => {
    const {g, w, h, dpr, ink} = paper(canvas), accent = accentOf();
    const played = audio.duration ? audio.currentTime / audio.duration : 0;
    g.globalAlpha = .25;
    g.fillStyle = ink;
    for (let c = 0; c < (peaks?.length ?? 1); c++) g.fillRect(0, Math.round(h * (c + .5) / (peaks?.length ?? 1)), w, dpr);
    for (const l of about?.loops ?? []) {
      const x = l.Begin / about.frames * w, to = l.End / about.frames * w;
      g.globalAlpha = .12;
      g.fillStyle = accent;
      g.fillRect(x, 0, to - x, h);
      g.globalAlpha = 1;
      g.fillRect(x, 0, dpr, h);
      g.fillRect(to - dpr, 0, dpr, h);
    }
    g.font = `${11 * dpr}px sans-serif`;
    for (const m of about?.markers ?? []) {
      const x = m.Frame / about.frames * w;
      g.globalAlpha = .8;
      g.fillStyle = ink;
      g.fillRect(x, 0, dpr, h);
      g.fillText(m.Name, x + 3 * dpr, 11 * dpr);
    }
    if (!peaks) return;
    const lane = h / peaks.length, step = 2 * dpr;
    for (let c = 0; c < peaks.length; c++) {
      for (let x = 0; x < w; x += step) {
        const from = Math.floor(x / w * peaks[c].length), to = Math.max(from + 1, Math.floor((x + step) / w * peaks[c].length));
        let top = 0;
        for (let i = from; i < to; i++) top = Math.max(top, peaks[c][i]);
        const size = Math.max(dpr, top * lane * .94);
        g.globalAlpha = x / w <= played && played ? 1 : .45;
        g.fillStyle = x / w <= played && played ? accent : ink;
        g.fillRect(x, lane * (c + .5) - size / 2, dpr * 1.25, size);
      }
    }
  };

  const drawLoudness = () => {
    if (!about?.curve.length) return;
    const {g, w, h, dpr, ink} = paper(loudness), y = v => h * (1 - (Math.max(-60, Math.min(0, v)) + 60) / 60);
    g.fillStyle = g.strokeStyle = ink;
    g.font = `${10 * dpr}px sans-serif`;
    for (const v of [-14, -23, -40]) {
      g.globalAlpha = .2;
      g.fillRect(0, y(v), w, dpr);
      g.globalAlpha = .6;
      g.fillText(`${v} LUFS`.replace("-", "−"), 2 * dpr, y(v) - 2 * dpr);
    }
    g.globalAlpha = .9;
    g.lineWidth = 1.5 * dpr;
    g.beginPath();
    about.curve.forEach((v, i) => g.lineTo((i + 1) / about.curve.length * w, y(v + about.gain)));
    g.stroke();
  };

  const drawSpectrum = () => {
    if (!samples) return;
    const {g, w, h} = paper(spectrum), columns = Math.min(Math.floor(w), 1200), rows = Math.floor(h), size = 1024;
    const image = g.createImageData(columns, rows), re = new Float32Array(size), im = new Float32Array(size);
    for (let x = 0; x < columns; x++) {
      const from = Math.floor(x / columns * samples.length) - size / 2;
      for (let i = 0; i < size; i++) {
        re[i] = (samples[from + i] ?? 0) * (.5 - .5 * Math.cos(2 * Math.PI * i / size));
        im[i] = 0;
      }
      fft(re, im);
      for (let y = 0; y < rows; y++) {
        const k = Math.min(size / 2 - 1, Math.floor((1 - y / rows) ** 2 * size / 2)), at = (y * columns + x) * 4;
        const level = Math.max(0, Math.min(1, (20 * Math.log10(Math.hypot(re[k], im[k]) / size * 4 + 1e-9) + 100) / 90));
        image.data.set([255 * level ** .8, 150 * level ** 1.6, 60 + 80 * level * (1 - level), 255], at);
      }
    }
    const small = new OffscreenCanvas(columns, rows);
    small.getContext("2d").putImageData(image, 0, 0);
    g.drawImage(small, 0, 0, w, h);
  };

  const all = () => { draw(); drawLoudness(); drawSpectrum(); };
  new ResizeObserver(all).observe(canvas);
  audio.addEventListener("timeupdate", draw);
  canvas.addEventListener("click", event => {
    if (!audio.duration) return;
    audio.currentTime = event.offsetX / canvas.clientWidth * audio.duration;
    audio.play();
  });
  for (const button of box.querySelectorAll("[data-play]")) {
    button.addEventListener("click", () => {
      const at = audio.currentTime, going = !audio.paused;
      for (const b of box.querySelectorAll("[data-play]")) b.setAttribute("aria-pressed", String(b === button));
      audio.src = button.dataset.play === "source" ? `${box.dataset.source}?level=${(about?.lufs ?? 0) + (about?.gain ?? 0)}` : box.dataset.sound;
      audio.addEventListener("loadedmetadata", () => { audio.currentTime = at; if (going) audio.play(); }, {once: true});
    });
  }

  const answer = await fetch(box.dataset.about);
  if (!answer.ok) { facts.textContent = await answer.text(); return; }
  about = await answer.json();
  const say = text => facts.append(Object.assign(document.createElement("span"), {textContent: text.replace("-", "−")}));
  say(about.codec);
  say(`${(about.frames / about.rate).toFixed(2)}\u00a0s`);
  say(about.channels === 1 ? "mono" : about.channels === 2 ? "stereo" : `${about.channels} channels`);
  say(`${about.rate}\u00a0Hz`);
  say(about.lufs > -120 ? `${about.lufs.toFixed(1)}\u00a0LUFS` : "silence");
  say(`peak ${about.true_peak.toFixed(1)}\u00a0dBTP`);
  if (about.gain) say(`gain ${about.gain.toFixed(1)}\u00a0dB`);
  for (const l of about.loops) say(`loop ${l.Begin} to ${l.End}`);
  all();
  if (about.frames / about.rate > longest) return;
  try {
    const data = await (await fetch(box.dataset.sound)).arrayBuffer();
    const sound = await new OfflineAudioContext(1, 1, 48000).decodeAudioData(data);
    peaks = Array.from({length: sound.numberOfChannels}, (_, c) => peaksOf(sound.getChannelData(c)));
    samples = sound.getChannelData(0);
    all();
  } catch (err) {
    facts.append(`The browser cannot decode this sound: ${err.message}`);
  }
}

// fft is in place, of a power of two (Cooley and Tukey 1965).
function fft(re, im) {
  const n = re.length;
  for (let i = 1, j = 0; i < n; i++) {
    let bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) [re[i], re[j], im[i], im[j]] = [re[j], re[i], im[j], im[i]];
  }
  for (let size = 2; size <= n; size *= 2) {
    for (let k = 0; k < size / 2; k++) {
      const c = Math.cos(2 * Math.PI * k / size), s = -Math.sin(2 * Math.PI * k / size);
      for (let i = k; i < n; i += size) {
        const j = i + size / 2, x = re[j] * c - im[j] * s, y = re[j] * s + im[j] * c;
        re[j] = re[i] - x; im[j] = im[i] - y; re[i] += x; im[i] += y;
      }
    }
  }
}

// peaksOf is the loudest sample of each of 4096 stretches, 0 to 1.
function peaksOf(samples) {
  const peaks = new Float32Array(Math.min(4096, samples.length));
  for (let i = 0; i < samples.length; i++) {
    const k = Math.floor(i / samples.length * peaks.length), v = Math.abs(samples[i]);
    if (v > peaks[k]) peaks[k] = v;
  }
  return peaks;
}
