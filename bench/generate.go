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
	tinySize   = 64      // the same in a project so large that the disk would have no room for it
	folderSize = 100     // assets of a folder, all of which one join reads
	tenth      = 10      // on another branch, every tenth asset is different
)

// project is one tool's copy of the generated project: assets that are copied, in folders of a hundred, and
// for each folder a join of that hundred. What its files hold follows from their number and version, so
// that what a build must give is known without keeping it.
type project struct {
	dir      string
	versions []uint32 // of the content of each asset
	extra    *extra   // the one file that comes and goes
	removed  int      // how often it went
	everyday bool     // it has what projects have that people work on
}

type extra struct {
	folder  int
	version uint32
}

// million is the size from which assets are tiny, and ninja is given what it would have built.
const million = 1_000_000

func newProject(dir string, assets int) *project {
	return &project{dir: dir, versions: make([]uint32, assets)}
}

// assetSize is how many bytes every asset has.
func (p *project) assetSize() int {
	if len(p.versions) >= million {
		return tinySize
	}
	return assetSize
}

func (p *project) folders() int { return len(p.versions) / folderSize }

// products is how many files a build makes.
func (p *project) products() int {
	n := len(p.versions) + p.folders()
	if p.extra != nil {
		n++
	}
	if p.everyday {
		n++ // of the empty file
	}
	return n
}

// write lays out the sources.
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

// edit gives an asset a new content.
func (p *project) edit(i int) error {
	p.versions[i]++
	return p.writeAsset(i)
}

// touch gives an asset a new time.
func (p *project) touch(i int) error {
	now := time.Now()
	return os.Chtimes(p.source(i), now, now)
}

// branch changes a tenth of the assets by so many versions.
func (p *project) branch(by int32) error {
	for i := 0; i < len(p.versions); i += tenth {
		p.versions[i] += uint32(by)
		if err := p.writeAsset(i); err != nil {
			return err
		}
	}
	return nil
}

// add makes the extra file, which is copied and in no join.
func (p *project) add(folder int, version uint32) error {
	p.extra = &extra{folder % p.folders(), version}
	return os.WriteFile(filepath.Join(p.dir, "assets", extraName(p.extra.folder)), p.extraContent(), 0o666)
}

// makeEveryday adds an empty file. What else a project has that people work on, Kiln alone is told.
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

// Names are slash paths below assets, and below the output folder. All have the same length, so
// that the cost of an asset does not depend on its number.

func folderName(f int) string { return fmt.Sprintf("%05d", f) }
func assetName(i int) string  { return fmt.Sprintf("%05d/%07d.bin", i/folderSize, i) }

const emptyName = "00000/empty00.bin"

func extraName(f int) string { return fmt.Sprintf("%05d/extra.bin", f) }

// content appends what an asset holds.
func (p *project) content(to []byte, i int) []byte {
	return content(to, i, p.versions[i], p.assetSize())
}

// content appends so many bytes of what a version of an asset holds.
func content(to []byte, i int, version uint32, size int) []byte {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], uint64(i))
	binary.LittleEndian.PutUint32(seed[8:], version)
	n := len(to)
	to = append(to, make([]byte, size)...)
	rand.NewChaCha8(seed).Read(to[n:])
	return to
}

// check compares all that a tool made with what it should have made. Only a tool that does not sweep may leave
// the products of sources that are gone.
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

// gltfJoin is a model whose hundred buffers are the assets of a folder: what a game has that is made of many files.
func gltfJoin(folder, size int) []byte {
	var buffers, views []string
	for i := folder * folderSize; i < (folder+1)*folderSize; i++ {
		buffers = append(buffers, fmt.Sprintf(`{"uri":"%07d.bin","byteLength":%d}`, i, size))
		views = append(views, fmt.Sprintf(`{"buffer":%d,"byteLength":%d}`, i%folderSize, size))
	}
	return fmt.Appendf(nil, `{"asset":{"version":"2.0"},"buffers":[%s],"bufferViews":[%s]}`+"\n",
		strings.Join(buffers, ","), strings.Join(views, ","))
}

// isGLB tells whether data is a .glb whose binary chunk is want.
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
