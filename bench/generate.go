package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	assetSize  = 4 << 10 // bytes of every asset
	tinySize   = 64      // bytes of an asset in projects that would be too large for the disk otherwise
	folderSize = 100     // assets in a folder, all of which one join reads
	tenth      = 10      // every tenth asset differs on another branch
)

// project is one tool's copy of the generated project: assets that are copied, in folders of a hundred, and a join of
// the hundred assets for each folder. The content of a file follows from its number and version, so the expected
// products need not be stored.
type project struct {
	dir      string
	versions []uint32 // of the content of each asset
	extra    *extra   // the one file that is added and removed
	removed  int      // number of times it was removed
	everyday bool     // it has what real projects have: see makeEveryday
}

type extra struct {
	folder  int
	version uint32
}

// million is the size from which assets are tiny, and ninja gets a prepared build.
const million = 1_000_000

func newProject(dir string, assets int) *project {
	return &project{dir: dir, versions: make([]uint32, assets)}
}

// assetSize returns the bytes of each asset.
func (p *project) assetSize() int {
	if len(p.versions) >= million {
		return tinySize
	}
	return assetSize
}

func (p *project) folders() int { return len(p.versions) / folderSize }

// products returns the number of files that a build makes.
func (p *project) products() int {
	n := len(p.versions) + p.folders()
	if p.extra != nil {
		n++
	}
	if p.everyday {
		n++ // for the empty file
	}
	return n
}

// write writes the sources.
func (p *project) write() error {
	for f := range p.folders() {
		if err := os.MkdirAll(filepath.Join(p.dir, "assets", folderName(f)), 0o777); err != nil {
			return err
		}
	}
	for i := range p.versions {
		if err := p.writeAsset(i); err != nil {
			return err
		}
	}
	return nil
}

func (p *project) writeAsset(i int) error {
	return os.WriteFile(p.source(i), p.content(nil, i), 0o666)
}

func (p *project) source(i int) string { return filepath.Join(p.dir, "assets", assetName(i)) }

// edit changes the content of an asset.
func (p *project) edit(i int) error {
	p.versions[i]++
	return p.writeAsset(i)
}

// touch changes the time of an asset.
func (p *project) touch(i int) error {
	now := time.Now()
	return os.Chtimes(p.source(i), now, now)
}

// branch changes the version of a tenth of the assets.
func (p *project) branch(by int32) error {
	for i := 0; i < len(p.versions); i += tenth {
		p.versions[i] += uint32(by)
		if err := p.writeAsset(i); err != nil {
			return err
		}
	}
	return nil
}

// add adds the extra file, which is copied and in no join.
func (p *project) add(folder int, version uint32) error {
	p.extra = &extra{folder % p.folders(), version}
	return os.WriteFile(filepath.Join(p.dir, "assets", extraName(p.extra.folder)), p.extraContent(), 0o666)
}

// makeEveryday adds an empty file. prepareEveryday adds the rest, for Kiln only.
func (p *project) makeEveryday() error {
	p.everyday = true
	return os.WriteFile(filepath.Join(p.dir, "assets", emptyName), nil, 0o666)
}

func (p *project) remove() error {
	name := filepath.Join(p.dir, "assets", extraName(p.extra.folder))
	p.extra = nil
	p.removed++
	return os.Remove(name)
}

func (p *project) extraContent() []byte { return content(nil, -1, p.extra.version, p.assetSize()) }

// Names are slash paths below assets, and below the output folder. All have the same length, so that the cost of an
// asset does not depend on its number.

func folderName(f int) string { return fmt.Sprintf("%05d", f) }
func assetName(i int) string  { return fmt.Sprintf("%05d/%07d.bin", i/folderSize, i) }

const emptyName = "00000/empty00.bin"

func extraName(f int) string { return fmt.Sprintf("%05d/extra.bin", f) }

// content appends the content of an asset.
func (p *project) content(to []byte, i int) []byte {
	return content(to, i, p.versions[i], p.assetSize())
}

// content appends size bytes of the content of a version of an asset.
func content(to []byte, i int, version uint32, size int) []byte {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], uint64(i))
	binary.LittleEndian.PutUint32(seed[8:], version)
	n := len(to)
	to = append(to, make([]byte, size)...)
	rand.NewChaCha8(seed).Read(to[n:])
	return to
}

// check compares all products of a tool with the expected ones. Only a tool that does not sweep may leave the products
// of removed sources.
func (p *project) check(t tool) error {
	for f := range p.folders() {
		var all []byte
		for i := f * folderSize; i < (f+1)*folderSize; i++ {
			n := len(all)
			all = p.content(all, i)
			if err := sameFile(filepath.Join(t.output(p), assetName(i)), all[n:]); err != nil {
				return err
			}
		}
		name := filepath.Join(t.output(p), t.joinName(f))
		data, err := os.ReadFile(name)
		if err == nil {
			err = t.isJoin(data, all)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if p.extra != nil {
		if err := sameFile(filepath.Join(t.output(p), extraName(p.extra.folder)), p.extraContent()); err != nil {
			return err
		}
	}
	if p.everyday {
		if err := sameFile(filepath.Join(t.output(p), emptyName), nil); err != nil {
			return err
		}
	}
	most := p.products() + t.more(p)
	if !t.sweeps() {
		most += p.removed
	}
	if n, err := countFiles(t.output(p)); err != nil || n < p.products()+t.more(p) || n > most {
		return errors.Join(err, fmt.Errorf("%s has %d files, not %d", t.output(p), n, p.products()+t.more(p)))
	}
	return nil
}

func sameFile(name string, want []byte) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if !bytes.Equal(data, want) {
		return fmt.Errorf("%s has not the content that it should have", name)
	}
	return nil
}

func countFiles(dir string) (int, error) {
	n := 0
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			n++
		}
		return err
	})
	return n, err
}

// gltfJoin returns a model whose hundred buffers are the assets of a folder: a product made of many files, as games
// have.
func gltfJoin(folder, size int) []byte {
	var buffers, views []string
	for i := folder * folderSize; i < (folder+1)*folderSize; i++ {
		buffers = append(buffers, fmt.Sprintf(`{"uri":"%07d.bin","byteLength":%d}`, i, size))
		views = append(views, fmt.Sprintf(`{"buffer":%d,"byteLength":%d}`, i%folderSize, size))
	}
	return fmt.Appendf(nil, `{"asset":{"version":"2.0"},"buffers":[%s],"bufferViews":[%s]}`+"\n",
		strings.Join(buffers, ","), strings.Join(views, ","))
}

// isGLB returns an error unless data is a .glb whose binary chunk is want.
func isGLB(data, want []byte) error {
	le := binary.LittleEndian
	if len(data) < 20 || string(data[:4]) != "glTF" || int(le.Uint32(data[8:])) != len(data) {
		return errors.New("is no .glb, or not whole")
	}
	rest := data[20:]
	if n := int(le.Uint32(data[12:])); n <= len(rest) {
		rest = rest[n:]
	}
	if len(rest) < 8 || string(rest[4:8]) != "BIN\x00" || !bytes.Equal(rest[8:], want) {
		return errors.New("does not hold the bytes of its buffers")
	}
	return nil
}
