package parcel

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/kilnrt"
)

// BenchmarkPack writes 10,000 resources of 100 KB, against a zip without compression and plain files of the same
// content in the same run.
func BenchmarkPack(b *testing.B) {
	const count, size = 10_000, 100_000
	dir := b.TempDir()
	content := noise(9, size+count)
	rs := make([]Resource, count)
	for i := range rs {
		rs[i] = with(Resource{ID: uint32(i), UUID: [16]byte{byte(i), byte(i >> 8)}, Name: fmt.Sprintf("dir/file%d.bin", i), Type: "data"}, content[i:i+size])
	}
	var ours, zipped, plain time.Duration
	b.SetBytes(count * size)
	for b.Loop() {
		start := time.Now()
		if err := Write(filepath.Join(dir, "p"), rs, Options{Workers: 2}); err != nil {
			b.Fatal(err)
		}
		ours += time.Since(start)
		os.Remove(filepath.Join(dir, "p"))
		b.StopTimer()
		start = time.Now()
		zipOf(b, filepath.Join(dir, "z"), rs)
		zipped += time.Since(start)
		os.Remove(filepath.Join(dir, "z"))
		start = time.Now()
		sub := filepath.Join(dir, "plain")
		os.Mkdir(sub, 0o755)
		for i := range rs {
			if err := os.WriteFile(filepath.Join(sub, fmt.Sprint(i)), content[i:i+size], 0o644); err != nil {
				b.Fatal(err)
			}
		}
		plain += time.Since(start)
		os.RemoveAll(sub)
		b.StartTimer()
	}
	b.ReportMetric(float64(ours)/float64(zipped), "of-zip")
	b.ReportMetric(float64(ours)/float64(plain), "of-files")
}

func zipOf(b *testing.B, path string, rs []Resource) {
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	for i := range rs {
		w, err := z.CreateHeader(&zip.FileHeader{Name: rs[i].Name, Method: zip.Store})
		if err != nil {
			b.Fatal(err)
		}
		r, _ := rs[i].Open()
		if _, err := io.Copy(w, r); err != nil {
			b.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		b.Fatal(err)
	}
	f.Sync()
}

// hundredThousand writes a parcel of 100,000 small resources.
func hundredThousand(b *testing.B) string {
	path := filepath.Join(b.TempDir(), "p")
	rs := make([]Resource, 100_000)
	for i := range rs {
		rs[i] = with(Resource{ID: uint32(i), UUID: [16]byte{byte(i), byte(i >> 8), byte(i >> 16)}, Name: fmt.Sprintf("textures/level/file%d.ktx2", i), Type: "data"}, []byte(fmt.Sprint(i)))
	}
	if err := Write(path, rs, Options{Workers: 2}); err != nil {
		b.Fatal(err)
	}
	return path
}

func BenchmarkOpen(b *testing.B) {
	path := hundredThousand(b)
	b.Run("mapped", func(b *testing.B) {
		for b.Loop() {
			p, err := kilnrt.Open(path)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := p.ByID(77_777); err != nil {
				b.Fatal(err)
			}
			p.Close()
		}
	})
	b.Run("read", func(b *testing.B) {
		f, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		info, _ := f.Stat()
		for b.Loop() {
			if _, err := kilnrt.OpenReaderAt(f, info.Size()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("zip", func(b *testing.B) {
		p, err := kilnrt.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		defer p.Close()
		s, err := Read(p)
		if err != nil {
			b.Fatal(err)
		}
		rs, _ := s.Resources()
		z := filepath.Join(b.TempDir(), "z")
		zipOf(b, z, rs)
		for b.Loop() {
			r, err := zip.OpenReader(z)
			if err != nil {
				b.Fatal(err)
			}
			r.Close()
		}
	})
}

func BenchmarkLookup(b *testing.B) {
	p, err := kilnrt.Open(hundredThousand(b))
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	rng := rand.New(rand.NewPCG(1, 1))
	order := rng.Perm(p.Len())
	rs := make([]kilnrt.Resource, p.Len())
	names := make([]string, p.Len())
	for i, k := range order {
		rs[i], _ = p.At(k)
		names[i] = rs[i].Name()
	}
	for name, find := range map[string]func(i int) (kilnrt.Resource, error){
		"id":   func(i int) (kilnrt.Resource, error) { return p.ByID(uint32(order[i])) },
		"uuid": func(i int) (kilnrt.Resource, error) { return p.ByUUID(rs[i].UUID, 0) },
		"name": func(i int) (kilnrt.Resource, error) { return p.ByName(names[i]) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if r, err := find(i); err != nil || r.Index() != order[i] {
					b.Fatal(err)
				}
				if i++; i == len(order) {
					i = 0
				}
			}
		})
	}
}

// zeros is content that is nothing but zeros, so that a parcel of 2 GB needs no memory.
type zeros struct{ io.Reader }

func (zeros) Close() error { return nil }
func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// BenchmarkUpdate changes a resource of 10 KB in a parcel of 2 GB with 20,000 resources.
func BenchmarkUpdate(b *testing.B) {
	const count, size = 20_000, 100_000
	path := filepath.Join(b.TempDir(), "p")
	rs := make([]Resource, count)
	var n [8]byte
	for i := range rs {
		le.PutUint64(n[:], uint64(i))
		h := digest.New()
		h.Write(n[:])
		h.Write(make([]byte, size-8))
		head := n
		rs[i] = Resource{ID: uint32(i), UUID: [16]byte{byte(i), byte(i >> 8)}, Name: fmt.Sprintf("dir/file%d.bin", i), Type: "data", Size: size, Hash: h.Sum()}
		rs[i].Open = func() (io.ReadCloser, error) {
			return zeros{io.LimitReader(io.MultiReader(bytes.NewReader(head[:]), zeros{}), size)}.whole(), nil
		}
	}
	if err := Write(path, rs, Options{Workers: 2}); err != nil {
		b.Fatal(err)
	}
	var written int64
	i := 0
	for b.Loop() {
		i++
		rs[i*37%count] = with(rs[i*37%count], noise(uint64(i), 10_000))
		rep, err := Update(path, rs, Options{Workers: 2})
		if err != nil || rep.How != Appended {
			b.Fatal(rep, err)
		}
		written = max(written, rep.Written)
	}
	b.ReportMetric(float64(written), "written-B")
}

func (z zeros) whole() io.ReadCloser { return io.NopCloser(z.Reader) }

// BenchmarkChange changes one of 20,000 small resources by what the parcel itself says of the others, as a build does: its content,
// and then whether it is there.
func BenchmarkChange(b *testing.B) {
	path := filepath.Join(b.TempDir(), "p")
	rs := make([]Resource, 20_000)
	for i := range rs {
		rs[i] = with(Resource{ID: uint32(i), UUID: [16]byte{byte(i), byte(i >> 8)}, Name: fmt.Sprintf("dir/file%d.bin", i), Type: "data"}, noise(uint64(i), 4096))
	}
	if err := Write(path, rs, Options{Workers: 2}); err != nil {
		b.Fatal(err)
	}
	seed := uint64(len(rs))
	change := func(to func([]Resource) []Resource) {
		p, err := kilnrt.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		defer p.Close()
		s, err := Read(p)
		if err != nil {
			b.Fatal(err)
		}
		rs, o := s.Resources()
		if rep, err := s.Update(path, to(rs), o); err != nil || rep.Written == 0 {
			b.Fatal(rep, err)
		}
	}
	b.Run("content", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			change(func(rs []Resource) []Resource {
				seed++
				k := int(seed) * 37 % len(rs)
				rs[k] = with(rs[k], noise(seed, 4096))
				return rs
			})
		}
	})
	b.Run("which", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			change(func(rs []Resource) []Resource {
				if len(rs) == 20_000 {
					return slices.Delete(rs, 777, 778)
				}
				return slices.Insert(rs, 777, with(Resource{ID: 777, UUID: [16]byte{777 & 255, 777 >> 8}, Name: "dir/file777.bin", Type: "data"}, noise(777, 4096)))
			})
		}
	})
}
