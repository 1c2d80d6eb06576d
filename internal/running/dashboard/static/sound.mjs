// A sound as a wave, with what was played darker. The browser decodes it.

const longest = 30 * 60; // seconds that are drawn: 30 minutes of stereo are 630 MB when decoded

export async function show(box) {
  const audio = box.querySelector("audio"), canvas = box.querySelector("canvas"), facts = box.querySelector("[data-facts]");
  let peaks = null;

  const draw = () => {
    const dpr = devicePixelRatio, w = canvas.width = canvas.clientWidth * dpr, h = canvas.height = canvas.clientHeight * dpr;
    const g = canvas.getContext("2d"), style = getComputedStyle(canvas);
    const played = audio.duration ? audio.currentTime / audio.duration : 0;
    const ink = style.getPropertyValue("color"), accent = getComputedStyle(box.closest("main").querySelector(".under a") ?? box).color;
    g.globalAlpha = .25;
    g.fillStyle = ink;
    for (let c = 0; c < (peaks?.length ?? 1); c++) g.fillRect(0, Math.round(h * (c + .5) / (peaks?.length ?? 1)), w, dpr);
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
  new ResizeObserver(draw).observe(canvas);
  audio.addEventListener("timeupdate", draw);
  canvas.addEventListener("click", event => {
    if (!audio.duration) return;
    audio.currentTime = event.offsetX / canvas.clientWidth * audio.duration;
    audio.play();
  });

  const data = await (await fetch(box.dataset.sound)).arrayBuffer();
  await new Promise(done => audio.readyState ? done() : ["loadedmetadata", "error"].forEach(e => audio.addEventListener(e, done, {once: true})));
  if (!(audio.duration <= longest)) { facts.textContent = "The browser does not play this sound, or it is longer than half an hour."; return; }
  try {
    const sound = await new OfflineAudioContext(1, 1, 48000).decodeAudioData(data);
    peaks = Array.from({length: sound.numberOfChannels}, (_, c) => peaksOf(sound.getChannelData(c)));
    const loudest = Math.max(...peaks.map(p => p.reduce((a, b) => Math.max(a, b), 0)));
    for (const text of [`${sound.duration.toFixed(2)}\u00a0s`, sound.numberOfChannels === 1 ? "mono" : sound.numberOfChannels === 2 ? "stereo" : `${sound.numberOfChannels} channels`, loudest ? `peak ${(20 * Math.log10(loudest)).toFixed(1).replace("-", "−")}\u00a0dB` : "silence"]) {
      facts.append(Object.assign(document.createElement("span"), {textContent: text}));
    }
    draw();
  } catch (err) {
    facts.textContent = `The browser cannot decode this sound: ${err.message}`;
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
