// Package ship updates what games take from a project to match the products of a build: resource ids in kiln.ids,
// parcels, and constants for the game's code.
//
// The rules:
//   - Everything is derived from the project file, kiln.ids and the products; never from existing output.
//   - A parcel that cannot be packed is reported, and the existing one stays.
//   - Each file is complete or unchanged.
package ship

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/delivery/manifest"
	"github.com/kiln-pipeline/kiln/processor"
)

// Product is a product of an asset on a platform.
type Product struct {
	SubID      uint32
	Name, Type string
	Size       int64
	Hash       digest.Hash
	References []processor.Reference
	Processor  string
	Facts      map[string]string // of a parcel that is listed
}

// Asset is an asset on a platform.
type Asset struct {
	ID, UUID string
	Lost     string // why its products are not available: "failed"; "": they are
	Fails    bool   // it cannot be built now; its source may make other products than these
	More     bool   // in other stages of the project it may have more products than these
	Follows  bool   // see manifest.Asset
	Products []Product
	Last     []Product           // what it had when it could be built last, of one that fails
	Meta     map[string][]string // what rules say of it

	Placeholder bool // placeholders are among the products
}

// Platform is the assets of a platform, in the order of their ids.
type Platform struct {
	Name    string
	Decided bool // everything in it is of the current build; otherwise only its numbers and names count
	Assets  []Asset
	Others  []Asset // those that it has in other stages of the project alone, without products
}

// Options are the options of Update.
type Options struct {
	Project, Below *disk.Bounds                              // of the project folder and of the output folder
	State          string                                    // the folder of Kiln's state, absolute
	Match          func(pattern string) func(id string) bool // returns what a parcel's pattern means
	Open           func(digest.Hash) (io.ReadCloser, error)  // opens the content of products
	// Reports whether a parcel, by its path relative to the project folder, is unchanged; nil: none is.
	Trusted func(file string) bool
	Before  []string // files made before, as in Result
	// Called for each file that is correct from now on, relative to the project folder; may be nil.
	Settled func(file string)
	// Called before each file is read that decides what is made, existing or not, relative to the project folder;
	// may be nil.
	Reading func(file string)
	Wrote   func(file string) // called for each file that is written, by its path relative to the project folder; may be nil
	Stopped func() bool       // reports whether to stop, for which Open fails too; nil: never
	Locked  bool              // fail if kiln.ids would change
	Compact bool              // leave no waste in parcels
	Only    []*project.Parcel // the parcels to pack; others, and constants, are not changed. nil: all
	Workers int
}

// Result is the result of Update.
type Result struct {
	Parcels  []Parcel
	Made     []string  // Kiln's files, relative to the project folder, sorted; those not passed to Options.Settled may be wrong
	Messages diag.List // what could not be made, and why
	Lacks    []Lack    // the reasons for those that report an incomplete parcel
	Left     []string  // parcels that were not replaced, below the output folder
	Notes    diag.List // messages that the next build need not repeat
	Again    bool      // a problem may pass by itself: the next build must try again although nothing changed
	Stopped  bool      // it was stopped before everything was made
}

// Lack is why a parcel was not packed.
type Lack struct {
	Message  *diag.Message `json:"-"` // in Result.Messages; one for all platforms with the same message
	Alone    *diag.Message // for this platform alone
	Platform string
	Assets   []string // ids, from one that the parcel names to the unavailable one
}

// Parcel is a parcel that was packed or kept.
type Parcel struct {
	Name, Platform string
	File           string   // below the output folder; "" if there is none
	Needs          []string // parcels to be mounted before it
	Products       []Place
	Resources      int
	Size           int64
	Digest         digest.Hash

	Added, Removed []Place // set by Touch instead of Products: the changes

	placeholders []string // ListEntry.Placeholders
}

// Place is a product in a parcel.
type Place struct {
	Asset string
	SubID uint32
}

// Wanted reports whether a project has anything to ship.
func Wanted(p *project.Project) bool { return len(p.Parcels) > 0 || len(p.Constants) > 0 }

// shipment is the state of one Update.
type shipment struct {
	p       *project.Project
	o       Options
	numbers numbering
	lines   map[string][]Product // what is known from the lines of kiln.ids alone, by UUID
	kept    map[string][]Product // the same of lines for products that no platform has now
	res     Result
	orders  map[string]*order // by file, if they were needed
	saidOf  map[string]*left  // by their text
	unsure  bool              // it is not known which files are needed

	read map[string]bool // files passed to Options.Reading

	on        string // the platform of byProduct
	byProduct map[productKey]uint32
}

// Update updates everything. Messages report what cannot be made; the existing files for that stay.
func Update(p *project.Project, platforms []Platform, o Options) *Result {
	s := &shipment{p: p, o: o, orders: map[string]*order{}, saidOf: map[string]*left{}, read: map[string]bool{}, unsure: o.Only != nil}
	s.work(platforms)
	s.removeStale()
	slices.Sort(s.res.Made)
	s.res.Made = slices.Compact(s.res.Made)
	return &s.res
}

func (s *shipment) work(platforms []Platform) {
	if !Wanted(s.p) {
		return // what was made before is removed; kiln.ids then belongs to the users
	}
	file, err := s.assign(platforms)
	if err != nil {
		s.res.Messages = append(s.res.Messages, diag.Messages(err, diag.IDsSyntax)...)
		s.keepAll(platforms)
		return
	}
	s.numbers = newTable(file)
	s.findKept(file, platforms)
	contents := make([][]manifest.Contents, len(platforms))
	for i := range platforms {
		if platforms[i].Decided && !s.stopped() {
			contents[i] = s.fill(&platforms[i])
			s.pack(&platforms[i], contents[i])
		} else {
			s.keep(&platforms[i])
		}
	}
	if s.res.Stopped {
		return
	}
	s.constants(platforms, contents)
	s.ordersGone(platforms)
}

// stopped reports whether to stop.
func (s *shipment) stopped() bool {
	if s.o.Stopped != nil && s.o.Stopped() {
		s.res.Stopped, s.res.Again, s.unsure = true, true, true
	}
	return s.res.Stopped
}

// fill decides what goes into the parcels of a platform.
func (s *shipment) fill(pl *Platform) []manifest.Contents {
	var parcels []manifest.Parcel
	for _, x := range s.parcelsOn(pl.Name) {
		parcels = append(parcels, manifest.Parcel{Name: x.Name, Has: s.any(x.Assets), SharedWith: x.SharedWith, Split: x.Split})
	}
	return manifest.Make(parcels, manifestAssets(pl.Assets))
}

// manifestAssets converts assets for package manifest.
func manifestAssets(all []Asset) []manifest.Asset {
	assets := make([]manifest.Asset, len(all))
	for i := range all {
		a := &all[i]
		assets[i] = manifest.Asset{ID: a.ID, UUID: parseUUID(a.UUID), Lost: a.Lost, Follows: a.Follows, Products: make([]manifest.Product, len(a.Products))}
		for k := range a.Products {
			p := &a.Products[k]
			refs := make([]manifest.Reference, len(p.References))
			for n, r := range p.References {
				refs[n] = manifest.Reference{UUID: parseUUID(r.UUID), SubID: r.SubID, Required: r.Required}
			}
			assets[i].Products[k] = manifest.Product{SubID: p.SubID, Name: p.Name, References: refs}
		}
	}
	return assets
}

func parseUUID(s string) manifest.UUID {
	u, _ := uuid.Parse(s) // made by Kiln, so it is valid
	return manifest.UUID(u)
}

// parcelsOn returns the declared parcels of a platform.
func (s *shipment) parcelsOn(platform string) []*project.Parcel {
	var list []*project.Parcel
	for i := range s.p.Parcels {
		if x := &s.p.Parcels[i]; x.On(platform) {
			list = append(list, x)
		}
	}
	return list
}

// any returns a function that reports whether one of the patterns matches.
func (s *shipment) any(patterns []project.Pattern) func(id string) bool {
	var matches []func(string) bool
	for _, p := range patterns {
		matches = append(matches, s.o.Match(p.Text))
	}
	return func(id string) bool {
		return slices.ContainsFunc(matches, func(m func(string) bool) bool { return m(id) })
	}
}

// file is a path relative to the project folder of a file in the output folder.
func (s *shipment) file(below string) string { return path.Join(s.p.Output, below) }

func (s *shipment) abs(file string) string { return Path(s.p, s.o.Below.Root(), file) }

// bounds are those of a file.
func (s *shipment) bounds(file string) *disk.Bounds {
	if strings.HasPrefix(file, s.p.Output+"/") {
		return s.o.Below
	}
	return s.o.Project
}

// Path is where a file is that is named relative to the project folder. Files of the output folder are where that folder is, which may be
// elsewhere.
func Path(p *project.Project, output, file string) string {
	if below, ok := strings.CutPrefix(file, p.Output+"/"); ok {
		return filepath.Join(output, filepath.FromSlash(below))
	}
	return filepath.Join(p.Dir, filepath.FromSlash(file))
}

// Folder of the parcels of a platform, below the output folder.
func Folder(platform string) string { return "parcels/" + platform }

// keep keeps the existing files of a platform.
func (s *shipment) keep(pl *Platform) {
	for _, f := range s.o.Before {
		if strings.HasPrefix(f, s.file(Folder(pl.Name))+"/") {
			s.res.Made = append(s.res.Made, f)
		}
	}
	s.noteOld(pl)
}

// noteOld records the parcels of an earlier build.
func (s *shipment) noteOld(pl *Platform) {
	for _, e := range s.oldList(pl.Name).Parcels {
		s.note(pl, Parcel{Name: e.Name, Platform: pl.Name, File: Folder(pl.Name) + "/" + e.File, Needs: e.Needs}, &List{})
	}
}

// keepAll keeps everything.
func (s *shipment) keepAll(platforms []Platform) {
	s.res.Made = slices.Clone(s.o.Before)
	for i := range platforms {
		s.noteOld(&platforms[i])
	}
}

// removeStale removes files that were made before and are no longer needed.
func (s *shipment) removeStale() {
	for _, f := range s.o.Before {
		if slices.Contains(s.res.Made, f) {
			continue
		}
		if s.unsure {
			s.res.Made = append(s.res.Made, f)
			continue
		}
		if err := Remove(s.abs(f), s.bounds(f), s.bounds(f) == s.o.Below); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.res.Made = append(s.res.Made, f)
			s.failNow(diag.Errorf(diag.OutputUnwritable, diag.Pos{File: f}, "the file is not wanted any more, and cannot be removed: %v", cause(err)).WithHint("close programs that use it, and build again"))
		}
	}
}

// Remove removes a file within bounds, and with folders those above it that are empty then, up to the root, which stays. If the file is gone
// already the folders go all the same.
func Remove(abs string, in *disk.Bounds, folders bool) error {
	if err := in.Folder(filepath.Dir(abs)); err != nil {
		return err
	}
	err := disk.Remove(abs)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for dir := filepath.Dir(abs); folders && strings.HasPrefix(dir, in.Root()+string(filepath.Separator)); dir = filepath.Dir(dir) {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			break // it is not empty
		}
	}
	return err
}

// made records a correct file of Kiln's.
func (s *shipment) made(file string) {
	s.res.Made = append(s.res.Made, file)
	s.settled(file)
}

// settled reports at once that a file is correct, because a change of it while others are made is not Kiln's.
func (s *shipment) settled(file string) {
	if s.o.Settled != nil {
		s.o.Settled(file)
	}
}

func (s *shipment) fail(m *diag.Message) { s.res.Messages = append(s.res.Messages, m) }

// failNow reports a problem that may pass. Which files are needed may depend on it.
func (s *shipment) failNow(m *diag.Message) {
	s.fail(m)
	s.res.Again, s.unsure = true, true
}

// failDamaged reports a parcel that is left as it is, and damaged. It stays, and the next build checks it again.
func (s *shipment) failDamaged(file, format string, args ...any) *diag.Message {
	m := diag.Errorf(diag.ParcelWrite, diag.Pos{File: s.file(file)}, format, args...)
	s.fail(m)
	s.res.Again = true
	s.res.Made = append(s.res.Made, s.file(file))
	return m
}

// failRead reports a file that could not be read. If it exists, it may be readable the next time.
func (s *shipment) failRead(m *diag.Message, err error) {
	s.fail(m)
	if !errors.Is(err, fs.ErrNotExist) {
		s.res.Again, s.unsure = true, true
	}
}

// reading is called before a file is read that decides what is made.
func (s *shipment) reading(file string) {
	if !s.read[file] && s.o.Reading != nil {
		s.read[file] = true
		s.o.Reading(file)
	}
}

// cause leaves the path out of an error: the message has it already.
func cause(err error) error {
	var e *fs.PathError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

// write replaces a file if its content is another.
func (s *shipment) write(file string, data []byte) bool {
	abs := s.abs(file)
	if old, err := disk.ReadText(abs, 0); err == nil && string(old) == string(data) {
		return true
	}
	err := s.bounds(file).ForWriting(abs)
	if err == nil {
		err = disk.Save(abs, data)
	}
	if m := project.LinkMessage(s.p.Dir, err); m != nil {
		s.failNow(m)
		return false
	}
	if err != nil {
		hint := "check permissions and free space, and build again"
		if disk.InUse(err) {
			hint = "another program may have it open: close it, and build again"
		}
		s.failNow(diag.Errorf(diag.OutputUnwritable, diag.Pos{File: file}, "cannot be written: %v", cause(err)).WithHint("%s", hint))
		return false
	}
	s.wrote(file)
	return true
}

// wrote reports that a file was written.
func (s *shipment) wrote(file string) {
	if s.o.Wrote != nil {
		s.o.Wrote(file)
	}
}

// ListName is the file beside the parcels of a platform that lists them.
const ListName = "parcels.json"

// List is what it holds.
type List struct {
	Version  int         `json:"version"` // 1
	Platform string      `json:"platform"`
	Parcels  []ListEntry `json:"parcels"`
}

// ListEntry is a parcel.
type ListEntry struct {
	Name      string   `json:"name"`
	File      string   `json:"file"`  // beside the list
	Needs     []string `json:"needs"` // names of parcels to be mounted before it, in order
	Resources int      `json:"resources"`
	Bytes     int64    `json:"bytes"`
	Digest    string   `json:"digest"` // of what it holds, the same for a parcel that was changed in place and for one that was made anew

	Placeholders []string `json:"placeholders,omitempty"` // ids of the assets for which placeholders stand in it
	Contents     []Listed `json:"contents,omitempty"`     // its resources by id, if the project wants them listed
}

// Listed is a resource in the list of a parcel. What is said from Asset on is absent if the resource is not what the last build made.
type Listed struct {
	ID     uint32 `json:"id"`
	Name   string `json:"name"`
	Type   string `json:"type"`
	Size   int64  `json:"size"`
	Offset int64  `json:"offset"` // of its bytes in the file
	Stored int64  `json:"stored"` // how many these are

	Asset     string              `json:"asset,omitempty"`
	Processor string              `json:"processor,omitempty"`
	Facts     map[string]string   `json:"facts,omitempty"`
	Meta      map[string][]string `json:"meta,omitempty"` // of the asset
}

// ReadList reads one.
func ReadList(file string) (*List, error) {
	data, err := disk.ReadText(file, 0)
	if err != nil {
		return nil, err
	}
	var l List
	if err := json.Unmarshal(data, &l); err != nil {
		return nil, err
	}
	if l.Version != 1 {
		return nil, fmt.Errorf("version %d is not known", l.Version)
	}
	return &l, nil
}
