package state

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/engine"
)

func emptyFields(v any) (names []string) {
	r := reflect.ValueOf(v)
	for i := range r.NumField() {
		if r.Type().Field(i).IsExported() && r.Field(i).IsZero() {
			names = append(names, r.Type().Field(i).Name)
		}
	}
	return names
}

// readFloor is what the disk cache takes to hand over the bytes.
func readFloor(b *testing.B, path string) {
	b.Run("floor", func(b *testing.B) {
		for b.Loop() {
			data, err := os.ReadFile(path)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(data)))
		}
	})
}

// BenchmarkOpenTraces opens a log of 100,000 traces, each with two files and two products.
func BenchmarkOpenTraces(b *testing.B) {
	const n = 100_000
	path := filepath.Join(b.TempDir(), "traces")
	tr, _, err := OpenTraces(path, false)
	if err != nil {
		b.Fatal(err)
	}
	for i := range n {
		name := fmt.Sprintf("textures/folder%03d/image%06d.png", i/100, i)
		x := trace(name, name)
		x.Messages = nil
		x.Observations = append(x.Observations, engine.Observation{Kind: engine.FirstLeaf, Subject: name, Value: digest.Of([]byte(name))})
		x.Products = append(x.Products, engine.Product{SubID: 1, Name: "1", Type: "texture", File: "pc/" + name + ".ktx2", Hash: digest.Of([]byte(name)), Size: 1})
		add(b, tr, name, x)
	}
	tr.Close()
	readFloor(b, path)
	b.Run("open", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			tr, why, err := OpenTraces(path, true)
			if err != nil || why != "" || tr.byKey.Len() != n {
				b.Fatal(why, err)
			}
		}
	})
}

// BenchmarkSnapshot writes and reads the snapshot of 100,000 files in 1,000 folders with as many outputs and tasks.
func BenchmarkSnapshot(b *testing.B) {
	const n = 100_000
	s := &Image{Sources: &source.Table{Roots: []string{"/a"}}, Tasks: taskStates(n)}
	for i := range n {
		if i%100 == 0 {
			s.Sources.Folders = append(s.Sources.Folders, source.Folder{Path: fmt.Sprintf("textures/folder%03d", i/100), Stat: stat(int64(i)), First: i, Count: 100})
		}
		name := fmt.Sprintf("image%06d.png", i)
		s.Sources.Files = append(s.Sources.Files, source.File{Name: name, Stat: stat(int64(i)), Hash: digest.Of([]byte(name))})
		s.Outputs = append(s.Outputs, Output{File: fmt.Sprintf("pc/textures/folder%03d/%s.ktx2", i/100, name), Stat: stat(int64(i)), Hash: digest.Of([]byte(name))})
	}
	path := filepath.Join(b.TempDir(), "snapshot")
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			if err := WriteSnapshot(path, s); err != nil {
				b.Fatal(err)
			}
		}
	})
	readFloor(b, path)
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s, why, err := ReadSnapshot(path)
			if err != nil || why != "" || s.Outputs.count != n {
				b.Fatal(why, err)
			}
		}
	})
}
