package jpeg

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

func TestTry(t *testing.T) {
	files := os.Getenv("FILES")
	for _, name := range bytes.Fields([]byte(files)) {
		data, err := os.ReadFile(string(name))
		if err != nil {
			t.Fatal(err)
		}
		p, err := Decode(data, 1<<30)
		if err != nil {
			t.Error(string(name), err)
			continue
		}
		ppm, err := exec.Command("djpeg", "-pnm", "-rgb", string(name)).Output()
		var w, h int
		fmt.Sscanf(string(ppm[:20]), "P6\n%d %d", &w, &h)
		if w != p.Width || h != p.Height {
			t.Error(string(name), w, h, err)
			continue
		}
		body := ppm[len(ppm)-3*w*h:]
		diff, most, first := 0, 0, -1
		for i := range w * h {
			for c := range 3 {
				d := int(body[3*i+c]) - int(p.Pix[4*i+c])
				if d != 0 {
					diff++
					most = max(most, d, -d)
					if first < 0 {
						first = i
					}
				}
			}
		}
		if diff > 0 {
			t.Errorf("%s %dx%d: %d differ, most %d, first %d,%d %q", name, w, h, diff, most, first%w, first/w, p.Damage)
		}
	}
}
