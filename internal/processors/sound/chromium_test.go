package sound

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/kiln-pipeline/kiln/internal/media/codec/wav"
	"github.com/kiln-pipeline/kiln/processor"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

// decoded is what a page finds of a sound that is a sine with a loop of whole periods: how many frames a browser decodes; how far
// samples are from the sine that fits best, at most, in the middle of the loop and near its ends; and the step at the seam, which is how
// far the samples there are from a sine that goes on: its next sample is 2 cos(w) times the last one less the one before it.
type decoded struct {
	Frames             int
	Middle, Ends, Seam float64
}

const decodePage = `(async (url, rate, channels, periods, begin, end) => {
  const bytes = await (await fetch(url)).arrayBuffer();
  const context = new OfflineAudioContext(channels, rate, rate);
  let buffer;
  if (url.endsWith(".qoa")) {
    const { KilnSound } = await import("/kiln_sound.mjs");
    buffer = new KilnSound(new Uint8Array(bytes)).audioBuffer(context);
  } else {
    buffer = await context.decodeAudioData(bytes);
  }
  const y = buffer.getChannelData(0), w = 2 * Math.PI * periods / (end - begin), c = 2 * Math.cos(w);
  const off = (a, b, next) => Math.abs(c * b - a - next);
  let s = 0, k = 0;
  for (let i = begin; i < end; i++) {
    s += y[i] * Math.sin(w * (i - begin)) * 2 / (end - begin);
    k += y[i] * Math.cos(w * (i - begin)) * 2 / (end - begin);
  }
  let middle = 0, ends = 0;
  for (let i = begin; i < end; i++) {
    const error = Math.abs(y[i] - s * Math.sin(w * (i - begin)) - k * Math.cos(w * (i - begin)));
    if (i < begin + 3000 || i >= end - 3000) ends = Math.max(ends, error); else middle = Math.max(middle, error);
  }
  const seam = Math.max(off(y[end - 2], y[end - 1], y[begin]), off(y[end - 1], y[begin], y[begin + 1]));
  return { Frames: buffer.length, Middle: middle, Ends: ends, Seam: seam };
})`

// installed runs a program of this machine for a test, with the files that it is given.
func installed(t *testing.T, name string) processortest.Program {
	return func(c processor.Command) (r processor.Result, err error) {
		dir := t.TempDir()
		for _, folder := range []string{"in", "out"} {
			if err := os.Mkdir(filepath.Join(dir, folder), 0o777); err != nil {
				return r, err
			}
		}
		for file, data := range c.Files {
			if err := os.WriteFile(filepath.Join(dir, "in", file), data, 0o666); err != nil {
				return r, err
			}
		}
		cmd := exec.Command(name, c.Args[1:]...)
		cmd.Dir = filepath.Join(dir, "in")
		if said, err := cmd.CombinedOutput(); err != nil {
			return r, fmt.Errorf("%s: %w: %s", name, err, said)
		}
		data, err := os.ReadFile(filepath.Join(dir, "out", made))
		return processor.Result{Files: map[string][]byte{made: data}}, err
	}
}

// chromium is a page of a server that has files; the test is skipped if there is no Chromium.
func chromium(t *testing.T, files map[string][]byte) context.Context {
	var tool string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			tool = found
			break
		}
	}
	if tool == "" {
		t.Skip("there is no Chromium")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch data := files[r.URL.Path]; {
		case r.URL.Path == "/kiln_sound.mjs":
			w.Header().Set("Content-Type", "text/javascript")
			http.ServeFile(w, r, "../../../kilnrt/js/kiln_sound.mjs")
		case data != nil:
			w.Write(data)
		default:
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<!doctype html>")
		}
	}))
	t.Cleanup(server.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	t.Cleanup(cancel)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(tool), chromedp.NoSandbox) // the page is ours
	ctx, stop := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(stop)
	ctx, leave := chromedp.NewContext(ctx)
	t.Cleanup(leave)
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("true")); err != nil {
		t.Skipf("%s does not run here: %v", tool, err)
	}
	if _, err := chromedp.Run(ctx, chromedp.Navigate(server.URL)); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// looped is a sine whose loop goes to its end. 441 Hz: a period is 100 frames at 44,100 Hz, and the loop has whole periods, at any rate.
const loopedRate, loopedFrames, loopedHz, loopedAmplitude = 44100, 37300, 441, 0.5

// A browser decodes exactly the frames of the source, of every format, and the loop has no click.
func TestChromium(t *testing.T) {
	products := map[string][]byte{}
	ctx := chromium(t, products)
	source := floats(t, loopedRate, 2, loopedFrames, loopedHz, loopedAmplitude, wav.Metadata{})
	for _, test := range []struct{ codec, program string }{{"pcm", ""}, {"float", ""}, {"flac", ""}, {"qoa", ""}, {"vorbis", "oggenc"},
		{"vorbis", "ffmpeg"}, {"opus", "opusenc"}, {"opus", "ffmpeg"}} {
		c := processortest.Case{Asset: "a.wav", Files: map[string][]byte{"a.wav": source}}
		if test.program != "" {
			file, err := exec.LookPath(test.program)
			if err != nil {
				t.Logf("%s is not installed", test.program)
				continue
			}
			c.Tools = map[string]string{test.program: file}
			c.Programs = map[string]processortest.Program{test.program: installed(t, test.program)}
		}
		for _, how := range []struct{ rate, begin int }{{0, 7300}, {32000, 7300}, {0, 0}, {0, 1000}} {
			c.Settings = with(func(s *Settings) {
				s.Codec, s.MaxRate, s.Loop, s.LoopBegin = test.codec, how.rate, "forward", int64(how.begin)
			})
			r := processortest.Run(t, New(), c)
			if r.Err != nil {
				t.Errorf("%s, %s: %v", test.codec, test.program, r.Err)
				continue
			}
			url := fmt.Sprintf("/%s%s-%d-%d%s", test.codec, test.program, how.rate, how.begin, extensions[test.codec])
			products[url] = r.Products[""].Data
			sameFrames := how.rate == 0 && test.codec != "opus"
			listen(t, ctx, url, r, (loopedFrames-how.begin)/100, sameFrames, how.begin == 0)
		}
	}
}

// listen has a product decoded, and checks it.
func listen(t *testing.T, ctx context.Context, url string, r processortest.Result, periods int, sameFrames, fromStart bool) {
	t.Helper()
	loop := [2]float64{number(t, r, "loop_begin"), number(t, r, "loop_end")}
	args, err := json.Marshal([]any{url, number(t, r, "rate"), 2, periods, loop[0], loop[1]})
	if err != nil {
		t.Fatal(err)
	}
	d, err := chromedp.Run(ctx, chromedp.Evaluate[decoded](decodePage+"(..."+string(args)+")", chromedp.EvalAwaitPromise))
	if err != nil {
		t.Errorf("%s: %v", url, err)
		return
	}
	decibels := func(v float64) float64 { return 20 * math.Log10(v/loopedAmplitude) }
	t.Logf("%-26s %d frames, loop %v; off by %6.1f dB in the middle of the loop, %6.1f at its ends; seam %6.1f dB", url, d.Frames, loop,
		decibels(d.Middle), decibels(d.Ends), decibels(d.Seam))
	if want := int(number(t, r, "frames")); d.Frames != want || sameFrames && want != loopedFrames {
		t.Errorf("%s: %d frames are decoded of %d", url, d.Frames, want)
	}
	switch codec := r.Products[""].Facts["sound.codec"]; {
	case (codec == "float" || codec == "flac") && decibels(d.Seam) > -90:
		t.Errorf("%s: the seam is at %.1f dB", url, decibels(d.Seam))
	case fromStart && (codec == "qoa" || codec == "vorbis"): // their first frames are worse, and nothing can go ahead of them
	case decibels(d.Ends) > max(decibels(d.Middle)+6, -90):
		t.Errorf("%s: the ends of the loop are off by %.1f dB, its middle by %.1f", url, decibels(d.Ends), decibels(d.Middle))
	}
}

// floats is a WAV file of a sine of floats.
func floats(t testing.TB, rate, channels, frames int, hz, amplitude float64, m wav.Metadata) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := wav.NewWriter(&b, wav.Format{Rate: rate, Channels: channels, Coding: wav.Float, Bits: 32}, m, int64(frames))
	if err != nil {
		t.Fatal(err)
	}
	all := make([]float32, 0, frames*channels)
	for i := range frames {
		for range channels {
			all = append(all, float32(amplitude*math.Sin(2*math.Pi*hz*float64(i)/float64(rate))))
		}
	}
	if err := w.Write(all); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
