package wasm

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/extend/gocode"
)

// goModule returns the module compiled from a Go package, from the cache if it is there.
func goModule(ctx context.Context, c Config) ([]byte, digest.Hash, error) {
	p := &gocode.Package{
		Project: c.Dir, Folder: c.Go,
		Env: []string{"GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "CGO_ENABLED=0"},
		// the same bytes on each machine, with names of functions for crashes
		Flags: []string{"-trimpath", "-buildvcs=false", "-buildmode=c-shared", "-ldflags=-w"},
		Kind:  fmt.Sprintf("wasm of go, interface %d", abi), NoFolder: diag.WasmModule, NoGo: diag.WasmGoMissing, Failed: diag.WasmGoBuild,
		Lang:    "wasm",
		Without: ", or compile the module elsewhere and give `wasm` its file",
	}
	if c.Cache != "" {
		p.Record = filepath.Join(c.Cache, "go-"+digest.Of([]byte(p.Dir())).String()+".json")
	}
	fail := func(err error) ([]byte, digest.Hash, error) { return nil, digest.Hash{}, err }
	src, err := p.Look(ctx)
	if err != nil {
		return fail(err)
	}
	kept := func() string { return filepath.Join(c.Cache, "module-"+src.Key.String()+".wasm") }
	if code, err := os.ReadFile(kept()); c.Cache != "" && err == nil && bytes.HasPrefix(code, []byte("\x00asm")) {
		return code, src.Key, nil
	}
	folder, err := os.MkdirTemp("", "kiln-wasm-*")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "module.wasm")
	if src, err = p.Build(ctx, src, file); err != nil {
		return fail(err)
	}
	code, err := os.ReadFile(file)
	if err != nil {
		return fail(err)
	}
	c.keep(kept(), code)
	return code, src.Key, nil
}
