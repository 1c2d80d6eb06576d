package texture

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/internal/media/texture"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

const needSide = 1024

// needPictures are pictures and a texture of needSide x needSide pixels by file, and one of light with a few less.
func needPictures(t *testing.T) map[string][]byte {
	m := image.NewNRGBA(image.Rect(0, 0, needSide, needSide))
	for i := range m.Pix {
		m.Pix[i] = byte(i*i>>4 | i>>11)
	}
	grey, deep := image.NewGray(m.Rect), image.NewNRGBA64(m.Rect)
	copy(grey.Pix, m.Pix)
	for i := range deep.Pix {
		deep.Pix[i] = byte(i*i>>4 | i>>11)
	}
	light := []byte("#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 724 +X 1448\n")
	for i := range 724 * 1448 {
		light = append(light, byte(i|4), byte(i>>3|4), byte(i>>7|4), 129)
	}
	var jpg bytes.Buffer
	if err := jpeg.Encode(&jpg, m, nil); err != nil {
		t.Fatal(err)
	}
	ready, err := texture.Encode(&pixel.Image{Pix: m.Pix, Width: needSide, Height: needSide}, *settings(func(o *texture.Options) { o.Format = "rgba8" }))
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{
		"rgba.png": pngFile(t, m), "grey.png": pngFile(t, grey), "deep.png": pngFile(t, deep), "light.hdr": light, "photo.jpg": jpg.Bytes(),
		"ready.ktx2": ready,
	}
}

// peakOfTexture returns the most bytes that were in use while a texture was made, without its file, which a build writes as it is made.
func peakOfTexture(t *testing.T, c processortest.Case) int64 {
	var r processortest.Result
	peak := peakOf(func() { r = processortest.Run(t, New(), c) })
	if r.Err != nil {
		t.Fatalf("%s: %v", c.Asset, r.Err)
	}
	return peak - int64(len(r.Products[""].Data))
}

// peakOf returns the most bytes that were in use while a function ran, above those before. The collector runs often meanwhile.
func peakOf(run func()) int64 {
	inUse := func() int64 {
		s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(s)
		return int64(s[0].Value.Uint64())
	}
	debug.FreeOSMemory()
	before, peak := inUse(), int64(0)
	defer debug.SetGCPercent(debug.SetGCPercent(3))
	var stop atomic.Bool
	done := make(chan bool)
	go func() {
		defer close(done)
		for !stop.Load() {
			peak = max(peak, inUse())
			time.Sleep(200 * time.Microsecond)
		}
	}()
	run()
	stop.Store(true)
	<-done
	return peak - before
}

// TestNeedIsEnough makes textures of all kinds of pictures with all that changes how much memory that takes, and compares the peak
// with what Need tells.
func TestNeedIsEnough(t *testing.T) {
	thorough.Only(t, "some 100 textures are made while the collector runs all the time")
	type change = func(*texture.Options)
	format := func(s string) change { return func(o *texture.Options) { o.Format, o.Quality = s, "fast" } }
	kaiser := func(o *texture.Options) { o.Filter = "kaiser" }
	smaller := func(o *texture.Options) { o.MaxSize = 3 * needSide / 4 }
	larger := func(o *texture.Options) { o.Scale = 1.5 }
	all := func(o *texture.Options) {
		o.Premultiply, o.Bleed, o.ColorKey, o.Flip, o.AlphaCutoff = true, 4, "#000000", true, 0.5
	}
	changes := map[string][]change{
		"": {}, "kaiser": {kaiser}, "all": {all}, "kaiser smaller": {kaiser, smaller}, "kaiser smaller all": {kaiser, smaller, all},
		"larger": {larger}, "larger all": {larger, all},
		"zstd": {func(o *texture.Options) { o.Compress = "zstd" }}, "dds": {func(o *texture.Options) { o.Container = "dds" }},
		"volume": {func(o *texture.Options) { o.SliceCount = 4 }}, "limited": {func(o *texture.Options) { o.MaxSize = 8192 }},
	}
	for file, data := range needPictures(t) {
		for _, f := range []string{"rgba8", "bc7", "rgba16f"} {
			for name, list := range changes {
				o := settings(func(o *texture.Options) {
					format(f)(o)
					for _, c := range list {
						c(o)
					}
				})
				c := processortest.Case{Files: map[string][]byte{file: data}, Asset: file, Settings: o}
				need := o.Need(file, data).Made
				most := need + need/20 + 1<<20 // what the collector has not found yet
				peak := int64(math.MaxInt64)
				for try := 0; try < 3 && peak > most; try++ { // on a busy machine, the collector can be late, never early
					peak = min(peak, peakOfTexture(t, c))
				}
				row := fmt.Sprintf("%s %s %s: %.1f bytes a pixel, want at most %.1f", file, f, name, float64(peak)/needSide/needSide, float64(need)/needSide/needSide)
				if peak > most {
					t.Error(row)
				} else {
					t.Log(row)
				}
			}
		}
	}
}
