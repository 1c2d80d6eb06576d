package command

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

// The examples of docs/commands.md with the programs themselves, where they are installed.

func realCase(t *testing.T, program string) processortest.Case {
	t.Helper()
	file, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("%s is not installed: %v", program, err)
	}
	return processortest.Case{
		Tools: map[string]string{program: file},
		Env:   map[string]string{"LD_LIBRARY_PATH": os.Getenv("LD_LIBRARY_PATH")},
	}
}

func TestGlslc(t *testing.T) {
	one := realCase(t, "glslc")
	c := glslc()
	c.Command = append(c.Command, "-I{root}/include")
	c.Settings[0].Default = 0 // glslc has -O0 and -Os only
	c.Env = []string{"LD_LIBRARY_PATH"}
	p := mustNew(t, c)
	one.Asset = "shaders/water.vert"
	one.Files = map[string][]byte{
		"shaders/water.vert": []byte("#version 450\n#extension GL_GOOGLE_include_directive : require\n#include \"waves.glsl\"\n" +
			"void main() { gl_Position = vec4(wave(1.0)); }\n"),
		"include/waves.glsl": []byte("float wave(float t) { return sin(t); }\n"),
	}
	r := processortest.Run(t, p, one)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	again := processortest.Run(t, p, one)
	if spv := r.Products[""].Data; len(spv) < 4 || !bytes.Equal(spv[:4], []byte{3, 2, 0x23, 7}) || !bytes.Equal(spv, again.Products[""].Data) {
		t.Errorf("%d bytes are no SPIR-V, or differ at the second run", len(spv))
	}

	one.Files["include/waves.glsl"] = []byte("float wave(float t) { return sine(t); }\n")
	ps := processortest.Problems(processortest.Run(t, p, one).Err)
	if len(ps) != 2 || ps[0].Code != string(diag.CommandReported) || ps[0].Path != "include/waves.glsl" || ps[0].Line != 1 || !strings.Contains(ps[0].Text, "sine") {
		t.Errorf("problems %v", ps)
	}
}

func TestOggenc(t *testing.T) {
	one := realCase(t, "oggenc")
	p := mustNew(t, Config{
		Name: "ogg", Command: []string{"oggenc", "--quiet", "--serial", "1", "-q", "{quality}", "-o", "{out}", "{in}"},
		Extensions: []string{".wav"}, Output: ".ogg", Env: []string{"LD_LIBRARY_PATH"},
		Settings: []Setting{{Name: "quality", Default: 5}},
	})
	one.Asset = "music/theme.wav"
	one.Files = map[string][]byte{one.Asset: append([]byte("RIFF\x24\x10\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00"+
		"\x44\xac\x00\x00\x88\x58\x01\x00\x02\x00\x10\x00data\x00\x10\x00\x00"), make([]byte, 4096)...)}
	r := processortest.Run(t, p, one)
	if r.Err != nil || len(r.Warnings) > 0 {
		t.Fatal(r.Err, r.Warnings)
	}
	again := processortest.Run(t, p, one)
	if ogg := r.Products[""].Data; !bytes.HasPrefix(ogg, []byte("OggS")) || !bytes.Equal(ogg, again.Products[""].Data) {
		t.Errorf("%d bytes are no Ogg, or differ at the second run", len(ogg))
	}
}
