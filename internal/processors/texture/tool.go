package texture

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/codec/astc"
	"github.com/kiln-pipeline/kiln/internal/diag"
	"github.com/kiln-pipeline/kiln/internal/pixel"
	"github.com/kiln-pipeline/kiln/internal/texture"
	"github.com/kiln-pipeline/kiln/processor"
)

// external encodes with astcenc, Arm's own encoder, if it is installed; else it is nil. The job has seen the program, or that
// there is none, so it runs again when that changes.
//
// The program runs in the job's own empty folder, on files of its own, with nothing of the user's environment.
func external(ctx context.Context, job processor.Job) func(*pixel.Image, int, bool) ([]byte, error) {
	tool, err := job.Tool("astcenc")
	if err != nil {
		return nil
	}
	return func(m *pixel.Image, side int, srgb bool) ([]byte, error) {
		dir, err := job.Scratch()
		if err != nil {
			return nil, err
		}
		var in bytes.Buffer
		e := png.Encoder{CompressionLevel: png.BestSpeed}
		if err := e.Encode(&in, &image.NRGBA{Pix: m.Pix, Stride: 4 * m.Width, Rect: image.Rect(0, 0, m.Width, m.Height)}); err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, "in.png"), in.Bytes(), 0o600); err != nil {
			return nil, err
		}
		mode := "-cl"
		if srgb {
			mode = "-cs"
		}
		cmd := exec.CommandContext(ctx, tool, mode, "in.png", "out.astc", fmt.Sprintf("%dx%d", side, side), "-thorough",
			"-j", strconv.Itoa(texture.Workers(m.Width*m.Height)), "-silent")
		cmd.Dir, cmd.Env = dir, []string{}
		if out, err := cmd.CombinedOutput(); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, failed(fmt.Sprintf("%v\n%s", err, strings.ToValidUTF8(strings.TrimSpace(string(out[:min(len(out), 2000)])), "?")))
		}
		data, err := os.ReadFile(filepath.Join(dir, "out.astc"))
		if err != nil {
			return nil, failed(err.Error())
		}
		file, err := astc.Read(data)
		if err != nil {
			return nil, failed(err.Error())
		}
		if file.Width != m.Width || file.Height != m.Height || file.Footprint != (astc.Footprint{Width: side, Height: side}) {
			return nil, failed(fmt.Sprintf("it made blocks of %v for %d x %d pixels", file.Footprint, file.Width, file.Height))
		}
		return file.Blocks, nil
	}
}

func failed(why string) error {
	return &processor.Problem{
		Code: string(diag.TextureTool), Text: "astcenc failed: " + why,
		Hint: `with quality = "normal" Kiln's own encoder is used`,
	}
}
