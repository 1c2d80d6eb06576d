package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
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
	near         int // within 0.05 LU
	most         float64
	where        string
	ours, theirs time.Duration
	missing      string
}

func (l *loudnesses) add(f *soundfile.File, file string) error {
	from := cpu()
	src, err := f.Source()
	if err != nil {
		return err
	}
	m, err := sound.Measure(src, sound.MeterOptions{})
	if err != nil {
		return err
	}
	took := cpu() - from
	if m.Basis != sound.Integrated || m.LUFS < -69 {
		l.short++ // no comparison possible: ffmpeg shows -70
		return nil
	}
	filter := "ebur128=peak=true:metadata=1,ametadata=print:file=-"
	if f.Format.Rate < 44100 { // the standard's filters are for 48 kHz; ffmpeg's for low rates are up to 0.3 dB louder
		filter = "aresample=48000:filter_size=64," + filter
	}
	cmd := exec.Command("ffmpeg", "-hide_banner", "-nostdin", "-i", file, "-map", "0:a:0", "-af", filter, "-f", "null", "-")
	out, err := cmd.Output()
	if err != nil {
		l.missing = err.Error()
		return nil
	}
	theirs := math.NaN()
	for line := range strings.Lines(string(out)) {
		if v, ok := strings.CutPrefix(line, "lavfi.r128.I="); ok {
			fmt.Sscan(v, &theirs)
		}
	}
	l.files++
	l.ours += took
	l.theirs += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	d := math.Abs(theirs - m.LUFS)
	if !(d <= l.most) {
		l.most, l.where = d, filepath.Base(file)
	}
	if d <= 0.05 {
		l.near++
	}
	return nil
}

func (l *loudnesses) print() {
	what := fmt.Sprintf("loudness of %d files", l.files)
	if l.files == 0 {
		missing(what, "ffmpeg", l.missing)
		return
	}
	row(what, "kiln", l.ours, fmt.Sprintf("%d within 0.05 LU of ffmpeg, all within %.3f (%s); %d more are too short or silent", l.near, l.most,
		l.where, l.short))
	row(what, "ffmpeg", l.theirs, "with decoding")
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
