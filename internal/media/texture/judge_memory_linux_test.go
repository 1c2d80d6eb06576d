package texture

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
)

// peakMost is the memory in bytes that the real kiln may take for a project of hostile files with two workers, whatever
// their headers claim.
const peakMost = 600e6

// peakOf runs the real kiln and returns its peak memory. Failed jobs are accepted; a kill or a panic is an error.
func peakOf(t *testing.T, kiln string, args ...string) int64 {
	t.Helper()
	cmd := exec.Command(kiln, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != 0 && code != 1 || bytes.Contains(out.Bytes(), []byte("goroutine ")) {
		t.Fatalf("kiln ended with %d, %v:\n%s", code, err, &out)
	}
	if testing.Verbose() {
		t.Logf("%s", out.Bytes()[max(0, out.Len()-2000):])
	}
	return cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
}

// hostileProject has the contents of files by path.
type hostileProject map[string]string

// write writes the files to a folder.
func (p hostileProject) write(t *testing.T, dir string) {
	t.Helper()
	for name, data := range p {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(data), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// flatPNG is a valid picture of one colour: grey, white, or with alpha.
func flatPNG(t *testing.T, side int, colour byte) []byte {
	t.Helper()
	bytesAPixel := map[byte]int{0: 1, 2: 3, 6: 4}[colour]
	data := pngFile(uint32(side), uint32(side), append([]byte("IDAT"), deflated(t, side*(1+bytesAPixel*side))...))
	data[25] = colour
	fixPNG(data)
	return data
}

// hugeModel embeds a picture, twice.
func hugeModel(picture []byte) string {
	return fmt.Sprintf(`{"asset": {"version": "2.0"}, "images": [{"uri": "data:image/png;base64,%s"}, {"uri": "data:image/png;base64,%[1]s"}]}`,
		base64.StdEncoding.EncodeToString(picture))
}

// claimingModel has accessors that claim gigabytes.
func claimingModel() string {
	return fmt.Sprintf(`{"asset": {"version": "2.0"}, "buffers": [{"byteLength": 4000000000, "uri": "data:application/octet-stream;base64,AAAA"}],
"bufferViews": [{"buffer": 0, "byteLength": 4000000000}], "accessors": [{"bufferView": 0, "componentType": 5126, "count": %d, "type": "MAT4"},
{"componentType": 5126, "count": %[1]d, "type": "MAT4", "sparse": {"count": %[1]d, "indices": {"bufferView": 0, "componentType": 5125}, "values": {"bufferView": 0}}}],
"meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}]}`, 1<<30)
}

// realKiln compiles the real kiln.
func realKiln(t *testing.T) string {
	t.Helper()
	thorough.Only(t, "the real kiln is compiled, and builds large pictures")
	kiln := filepath.Join(t.TempDir(), "kiln")
	if out, err := exec.Command("go", "build", "-o", kiln, "github.com/kiln-pipeline/kiln/cmd/kiln").CombinedOutput(); err != nil {
		t.Skipf("the real kiln cannot be built here: %v\n%s", err, out)
	}
	return kiln
}

// TestPeakOfOnePicture builds a texture of 4096 x 4096 pixels with mip levels. Its pixels take 67 MB; the file, its levels and
// what they are made of, 22 MB each.
func TestPeakOfOnePicture(t *testing.T) {
	kiln, dir := realKiln(t), t.TempDir()
	hostileProject{
		"kiln.toml":         "[project]\nname = \"test\"\n",
		"assets/rules.toml": "[[rules]]\nmatch = \"big.png\"\nsettings = { format = \"bc7\" }\n",
		"assets/big.png":    string(flatPNG(t, 4096, 6)),
	}.write(t, dir)
	peak := peakOf(t, kiln, "build", "-C", dir)
	t.Logf("%d MB", peak/1e6)
	if peak > 200e6 {
		t.Errorf("%d MB, over 200", peak/1e6)
	}
}

// TestPeakMemory builds hostile and large projects with the real kiln.
func TestPeakMemory(t *testing.T) {
	kiln := realKiln(t)
	const project = "[project]\nname = \"test\"\n[build]\nworkers = 2\nmemory = \"400MB\"\n" +
		"[[processors]]\nname = \"look\"\nscript = \"look.star\"\n"
	big := string(flatPNG(t, 2048, 6))
	hostile := hostileProject{"kiln.toml": project, "assets/model/claims.gltf": claimingModel()}
	for _, more := range []int{100, 48 << 10} {
		for name, data := range lies(t, lieSide, more) {
			for copies := range 3 {
				hostile[fmt.Sprintf("assets/lies/%d-%d-%s", more, copies, name)] = string(data)
			}
			hostile[fmt.Sprintf("assets/scripted/%d-%s.look", more, name)] = string(data)
			if filepath.Ext(name) == ".png" {
				hostile[fmt.Sprintf("assets/ui/%d-%s", more, name)] = string(data)
				hostile[fmt.Sprintf("assets/model/%d-%s.gltf", more, name)] = hugeModel(data)
			}
		}
	}
	hostile["look.star"] = lookScript
	hostile["assets/rules.toml"] = "[[rules]]\nmatch = \"ui/\"\nprocessor = \"atlas\"\n"

	several := hostileProject{"kiln.toml": project, "look.star": lookScript, "assets/rules.toml": `[[rules]]
match = "cube_px.png"
settings = { cube = "faces" }
[[rules]]
match = "packed*.png"
settings = { r = "cube_px.png", g = "cube_nx.png:g", b = "cube_py.png:b", a = "cube_ny.png:a" }
[[rules]]
match = "ui/"
processor = "atlas"
`}
	for _, face := range []string{"px", "nx", "py", "ny", "pz", "nz"} {
		several["assets/cube_"+face+".png"] = big
		several["assets/ui/"+face+".png"] = big
	}
	for i := range 3 {
		several[fmt.Sprintf("assets/packed%d.png", i)] = big
		several[fmt.Sprintf("assets/picture%d.look", i)] = big
		several[fmt.Sprintf("assets/model%d.gltf", i)] = hugeModel([]byte(big))
		several[fmt.Sprintf("assets/light%d.ktx2", i)] = string(ktx2Flat(t, 2048))
	}
	t.Run("hostile", func(t *testing.T) {
		dir := t.TempDir()
		hostile.write(t, dir)
		peak := peakOf(t, kiln, "build", "-j", "2", "-C", dir)
		t.Logf("%d files: %d MB", len(hostile), peak/1e6)
		if peak > peakMost {
			t.Errorf("%d MB, over %d", peak/1e6, int(peakMost/1e6))
		}
	})
	t.Run("init", func(t *testing.T) {
		dir := t.TempDir()
		delete(hostile, "kiln.toml")
		delete(hostile, "assets/rules.toml")
		hostile.write(t, dir)
		peak := peakOf(t, kiln, "init", "-C", dir)
		t.Logf("%d MB", peak/1e6)
		if peak > peakMost {
			t.Errorf("%d MB, over %d", peak/1e6, int(peakMost/1e6))
		}
	})
	flat := hostileProject{"kiln.toml": project, "look.star": lookScript}
	for i := range 3 {
		flat[fmt.Sprintf("assets/flat%d.png", i)] = string(flatPNG(t, 8192, byte(6*(i%2))))
	}
	for name, files := range map[string]hostileProject{"several": several, "flat": flat} {
		t.Run(name+" side by side", func(t *testing.T) {
			// A job that needs more than the limit runs alone. The others run concurrently below the limit.
			var peaks [2]int64
			for i, workers := range []string{"1", "2"} {
				dir := t.TempDir()
				files.write(t, dir)
				peaks[i] = peakOf(t, kiln, "build", "-j", workers, "-C", dir)
			}
			t.Logf("%d files: %d MB, one by one %d", len(files), peaks[1]/1e6, peaks[0]/1e6)
			if most := max(peakMost, peaks[0]*5/4); peaks[1] > most {
				t.Errorf("%d MB at two at once, %d one by one", peaks[1]/1e6, peaks[0]/1e6)
			}
		})
	}
}

const lookScript = `
processor(name = "look", extensions = [".look"], products = {"text": ".txt"})

def process(job):
    m = job.image(job.path)
    job.write(str(m.width))
`

// ktx2Flat is a compressed texture of four channels.
func ktx2Flat(t *testing.T, side int) []byte {
	t.Helper()
	o := with(func(o *Options) { o.Format, o.Compress, o.Mips = "rgba8", "zstd", false })
	return encode(t, Images{Pictures: pictures(1, side, side)}, o, Tools{})
}
