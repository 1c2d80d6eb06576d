package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/kiln-pipeline/kiln/internal/media/codec/wav"
	"github.com/kiln-pipeline/kiln/internal/media/sound"
	"github.com/kiln-pipeline/kiln/internal/media/soundfile"
)

// folder compares all sounds in a folder: their loudness with ffmpeg's, and their size as FLAC with that of flac -5,
// which must accept Kiln's file as valid.
func (b *bench) folder(dir string) error {
	var all loudnesses
	var ours, theirs, files, whole int64
	var flacTime, peerTime time.Duration
	err := filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || soundfile.Named(strings.ToLower(filepath.Ext(file))) == "" {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		f, err := soundfile.Open(bytes.NewReader(data), int64(len(data)))
		if err != nil || f.Opaque != nil || f.Format.Channels > 2 {
			return nil
		}
		if err := all.add(f, file); err != nil {
			return err
		}
		one := &bench{dir: b.dir, in: filepath.Join(b.dir, "one.wav")}
		if one.pcm, err = sixteen(f); err != nil {
			return err
		}
		if err := os.WriteFile(one.in, one.pcm, 0o666); err != nil {
			return err
		}
		n, m, ok, took, peer, err := one.sizes()
		if err != nil || m == 0 {
			return err
		}
		files, ours, theirs, flacTime, peerTime = files+1, ours+n, theirs+m, flacTime+took, peerTime+peer
		if ok {
			whole++
		}
		return nil
	})
	if err != nil {
		return err
	}
	all.print()
	if files > 0 {
		row(fmt.Sprintf("FLAC of %d files", files), "kiln", flacTime, fmt.Sprintf("%d bytes; flac -t finds %d whole", ours, whole))
		row(fmt.Sprintf("FLAC of %d files", files), "flac -5", peerTime, fmt.Sprintf("%d bytes", theirs))
	}
	return nil
}

// sixteen returns a sound as a WAV file of 16 bits.
func sixteen(f *soundfile.File) ([]byte, error) {
	src, err := f.Source()
	if err != nil {
		return nil, err
	}
	to := &seeker{}
	err = (&soundfile.Output{Frames: f.Frames, Notes: &soundfile.Notes{Silent: true}}).WAV(to, src, wav.PCM, wav.Metadata{})
	return to.b, err
}

// sizes returns the bytes of FLAC from Kiln and from flac, and whether flac accepts Kiln's file as valid.
func (b *bench) sizes() (ours, theirs int64, whole bool, took, peerTook time.Duration, err error) {
	data, took, err := b.encoded(func(o *soundfile.Output, to *seeker, src sound.Source) error { return o.FLAC(to, src) })
	if err != nil {
		return
	}
	out, mine := filepath.Join(b.dir, "peer.flac"), filepath.Join(b.dir, "mine.flac")
	// Kiln writes a tag with the peak and a seek table; flac reserves about as much space by default. Neither is sound,
	// but both are counted.
	if peerTook, _ = peer("flac", "-s", "-f", "-5", b.in, "-o", out); peerTook == 0 {
		return
	}
	s, err := os.Stat(out)
	if err != nil {
		return
	}
	if err = os.WriteFile(mine, data, 0o666); err != nil {
		return
	}
	_, failed := exec.Command("flac", "-s", "-t", mine).CombinedOutput()
	return int64(len(data)), s.Size(), failed == nil, took, peerTook, nil
}

// loudnesses compares loudness with ffmpeg's.
type loudnesses struct {
	files, short int
	near         int     // within 0.05 LU
	most         float64 // difference of these
	atGate, far  []string
	ours, theirs time.Duration
	missing      string
}

func (l *loudnesses) add(f *soundfile.File, file string) error {
	from := cpu()
	src, err := f.Source()
	if err != nil {
		return err
	}
	meter, err := sound.NewMeter(src, sound.MeterOptions{})
	if err != nil {
		return err
	}
	buf := make([]float32, 8192*f.Format.Channels)
	for err == nil {
		_, err = meter.Read(buf)
	}
	if err != io.EOF {
		return err
	}
	m, took := meter.Loudness(), cpu()-from
	if m.Basis != sound.Integrated || m.LUFS < -69 {
		l.short++ // no comparison possible: ffmpeg shows -70
		return nil
	}
	if src, err = f.Source(); err != nil {
		return err
	}
	samples, err := sound.All(src)
	if err != nil {
		return err
	}
	theirs, time, err := ebur128(f.Format, samples)
	if err != nil {
		l.missing = err.Error()
		return nil
	}
	l.files++
	l.ours += took
	l.theirs += time
	switch d := math.Abs(theirs - m.LUFS); {
	case d <= 0.05:
		l.near++
		l.most = max(l.most, d)
	case math.Abs(theirs-acrossGate(meter.MomentaryCurve())) <= 0.05:
		l.atGate = append(l.atGate, fmt.Sprintf("%s by %.2f", filepath.Base(file), d))
	default:
		l.far = append(l.far, fmt.Sprintf("%s by %.2f", filepath.Base(file), d))
	}
	return nil
}

// ebur128 returns ffmpeg's loudness of samples. These are Kiln's, because ffmpeg decodes short files of Vorbis to other
// lengths.
func ebur128(f sound.Format, samples []float32) (lufs float64, time time.Duration, err error) {
	filter := "ebur128=peak=true:metadata=1,ametadata=print:file=-"
	if f.Rate < 44100 { // the standard's filters are for 48 kHz; ffmpeg's for low rates are up to 0.3 dB louder
		filter = "aresample=48000:filter_size=256:cutoff=0.995," + filter
	}
	raw := new(bytes.Buffer)
	if err := binary.Write(raw, binary.LittleEndian, samples); err != nil {
		return 0, 0, err
	}
	cmd := exec.Command("ffmpeg", "-hide_banner", "-f", "f32le", "-ar", strconv.Itoa(f.Rate), "-ac", strconv.Itoa(f.Channels), "-i", "-",
		"-af", filter, "-f", "null", "-")
	cmd.Stdin = raw
	out, err := cmd.Output()
	if err != nil {
		return 0, 0, err
	}
	lufs = math.NaN()
	for line := range strings.Lines(string(out)) {
		if v, ok := strings.CutPrefix(line, "lavfi.r128.I="); ok {
			fmt.Sscan(v, &lufs)
		}
	}
	return lufs, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

// acrossGate returns the loudness with all blocks within 0.02 LU of the gate on the other side of it.
func acrossGate(momentary []float32) float64 {
	mean := func(keep func(lufs float64) bool) float64 {
		sum, n := 0.0, 0.0
		for _, v := range momentary[3:] { // the first whole block ends at 0.4 s
			if keep(float64(v)) {
				sum, n = sum+math.Pow(10, float64(v)/10), n+1
			}
		}
		return 10 * math.Log10(sum/n)
	}
	gate := mean(func(v float64) bool { return v > -70 }) - 10
	return mean(func(v float64) bool { return (v > gate) != (math.Abs(v-gate) < 0.02) })
}

func (l *loudnesses) print() {
	what := fmt.Sprintf("loudness of %d files", l.files)
	if l.files == 0 {
		missing(what, "ffmpeg", l.missing)
		return
	}
	words := fmt.Sprintf("with decoding; %d within %.3f LU of ffmpeg", l.near, l.most)
	if len(l.atGate) > 0 {
		words += fmt.Sprintf("; a block within 0.02 LU of the gate: %s", strings.Join(l.atGate, ", "))
	}
	if len(l.far) > 0 {
		words += fmt.Sprintf("; farther: %s", strings.Join(l.far, ", "))
	}
	row(what, "kiln", l.ours, fmt.Sprintf("%s; %d more are too short or silent", words, l.short))
	row(what, "ffmpeg", l.theirs, "without decoding")
}

// imports compares the import of many sounds with that of Godot's server: WAV to Kiln's defaults, which measure and
// encode QOA, and to PCM, which is what Godot 3 does.
func (b *bench) imports(count int) error {
	what := fmt.Sprintf("%d sounds imported", count)
	kiln := filepath.Join(b.dir, "kiln")
	if out, err := exec.Command("go", "build", "-o", kiln, "./cmd/kiln").CombinedOutput(); err != nil {
		return fmt.Errorf("go build ./cmd/kiln: %w: %s", err, out)
	}
	short, seconds := b.pieces(count)
	for _, p := range []struct {
		who, file, text string
		command         []string
	}{
		{"kiln, QOA", "kiln.toml", "[project]\nname = \"a\"\nroots = [\"assets\"]\n[platforms.pc]\n", []string{kiln, "build"}},
		{"kiln, PCM", "kiln.toml", "[project]\nname = \"a\"\nroots = [\"assets\"]\n[platforms.pc.sound]\ncodec = \"pcm\"\n", []string{kiln, "build"}},
		{"godot3-server, PCM", "project.godot", "config_version=4\n[application]\nconfig/name=\"a\"\n",
			[]string{"godot3-server", "--path", ".", "--editor"}},
	} {
		dir := filepath.Join(b.dir, strings.ReplaceAll(p.who, " ", ""))
		if err := os.MkdirAll(filepath.Join(dir, "assets"), 0o777); err != nil {
			return err
		}
		for i, data := range short {
			if err := os.WriteFile(filepath.Join(dir, "assets", fmt.Sprintf("s%d.wav", i)), data, 0o666); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(dir, p.file), []byte(p.text), 0o666); err != nil {
			return err
		}
		cmd := exec.Command(p.command[0], p.command[1:]...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+b.dir, "KILN_CACHE=off")
		from := time.Now()
		if err := cmd.Start(); err != nil {
			missing(what, p.who, err.Error())
			continue
		}
		done := 0
		if p.file == "project.godot" { // its server does not end when everything is imported
			for done < count && time.Since(from) < 5*time.Minute {
				time.Sleep(20 * time.Millisecond)
				all, _ := filepath.Glob(filepath.Join(dir, ".import", "*.md5"))
				done = len(all)
			}
			cmd.Process.Kill()
		}
		err := cmd.Wait()
		words := fmt.Sprintf("%.0f s of sound, in %.2f s", seconds, time.Since(from).Seconds())
		if done < count && err != nil {
			words += ", " + err.Error()
		}
		row(what, p.who, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime(), words)
	}
	return nil
}

// pieces returns short files that are different parts of the sound.
func (b *bench) pieces(count int) (all [][]byte, seconds float64) {
	const head, frame = 44, 4
	samples := b.pcm[head:]
	for i := range count {
		n := min((20_000+i*500)*frame, len(samples))
		at := (i * 7919 * frame) % (len(samples) - n + 1) / frame * frame
		file := bytes.Clone(b.pcm[:head])
		for place, v := range map[int]uint32{4: uint32(head - 8 + n), 40: uint32(n)} {
			for k := range 4 {
				file[place+k] = byte(v >> (8 * k))
			}
		}
		all = append(all, append(file, samples[at:at+n]...))
		seconds += float64(n/frame) / 44100
	}
	return all, seconds
}
