// Package processor is the contract that turns source files into game-ready
// products. Kiln's own processors are written against it, and so are a team's.
//
// A processor gets a [Job]: one asset, for one platform, with its settings. The
// Job is all it may touch: what it reads through the Job, finds missing there or
// lists there is recorded, and that record decides when the job runs again. A
// processor that reads the disk, the clock, the environment or the network by
// other ways breaks incremental builds; `kiln audit` looks for that.
//
// The same inputs must give the same bytes. Process is called from several
// goroutines at once, each with a Job of its own.
package processor

import (
	"context"
	"hash/fnv"
	"io"
	"io/fs"
)

// Processor turns one asset into products for one platform.
type Processor interface {
	// Info describes the processor. It returns the same value every time.
	Info() Info

	// Process reads the job's asset and writes its products. A returned
	// error fails the job; return a [*Problem], or several joined with
	// errors.Join, to point at the place in the source file. Products written
	// by a job that fails are dropped.
	Process(ctx context.Context, job Job) error
}

// Parter is a processor whose work on one asset falls into parts. Each part has a key and a record of its own, as
// if it were an asset: what it read decides whether it runs again, and where what it made is the same as
// before, whoever asked for it does not.
type Parter interface {
	Processor

	// Part does one part, named by whoever called [Job.Parts]. Products it writes are the asset's.
	Part(ctx context.Context, job Job, name string) error
}

// Sourced is a processor that carries its own source, so that Kiln knows by itself when its code is another: its assets are then built
// again, and no others. One in a work tree that does not counts as changed whenever anything in its program is. Three lines do it:
//
//	//go:embed *.go
//	var source embed.FS
//
//	func (Tilemap) Source() fs.FS { return source }
//
// Packages of the same work tree that it imports have to be in folders below its own, and be embedded as well ("*.go grid/*.go"); so has
// whatever else the compiler puts into it. Tests do not count.
type Sourced interface {
	Processor

	// Source is the folder of the package in which the processor's type is declared.
	Source() fs.FS
}

// PackPart is the part in which an asset of a processor that Packs asks to have images packed.
const PackPart = "pack"

// Info is what Kiln knows of a processor without running it.
type Info struct {
	// Name is how rules call it: lower case letters, digits and dashes.
	Name string

	// Version is raised whenever the same input would give other output: a new version runs every job again. The
	// code of a processor that a team adds to a kiln of its own counts besides; see [Sourced].
	Version int

	// Summary is one line for `kiln processors`.
	Summary string

	// Extensions it is the default processor for, lower case with the dot
	// (".png"). For a processor of folders they are the files inside the folder
	// that belong to it and are no assets of their own.
	Extensions []string

	// Folder says that its assets are folders, given by a rule whose match
	// ends in a slash.
	Folder bool

	// Settings is nil or a pointer to a struct that holds the defaults.
	// Fields are bool, int, int64, float64, string, a slice of those, a
	// map[string]string, a map[string]any or a struct of the same kinds. A
	// map[string]any holds string, bool, int64, float64, []any and
	// map[string]any; jobs never see a nil slice or map. Fields have the tags
	//
	//	toml:"max_size"            the name in rules
	//	doc:"Largest side, in pixels. 0 keeps the size."
	//	values:"rgba8,r8,rg8"      all that a string may be
	//	min:"0" max:"16384"        bounds of a number
	Settings any

	// Products lists the types of product it makes, the main one first.
	Products []ProductType

	// Packs says that its assets ask to have images packed into atlases, in a part named PackPart. See package
	// processor/pack.
	Packs bool

	// Memory is what one job needs at most, in bytes, as long as no run
	// of it was measured. 0 means 64 MiB.
	Memory int64
}

// ProductType describes a kind of product for people.
type ProductType struct {
	Type      string // "texture", "atlas", "data"
	Extension string // ".ktx2"; empty if the source's own name is kept
	Doc       string
}

// Asset is the source content a job is about.
type Asset struct {
	// ID is the path relative to its source root with forward slashes,
	// "sprites/tank.png"; a folder's ends in a slash. A rule may pin another.
	ID string

	// UUID is the asset's identity on every machine, in the usual text form.
	UUID string

	// Path of the primary source file, or of the folder without a slash at the end.
	// It is what Job's reads take. Of a request, or after an import, it is the name of what
	// the job works on; of a request without a source it is empty.
	Path string

	// Folder says that the asset is a folder.
	Folder bool
}

// Job is one processor's work on one asset for one platform.
//
// Paths are relative to the source roots and use forward slashes, as in
// Asset.Path; where roots overlay each other, the last root that has the file wins. Use
// [Resolve] to turn what a source file says ("../textures/cape.png") into such
// a path, or [ResolveAsset] if it may name an asset by its UUID as well: reads of such a name are of the
// asset's source file. Methods may be called from several goroutines of one Process call.
type Job interface {
	Asset() Asset
	Platform() string

	// Settings is a pointer to a struct of the type of Info.Settings, filled from
	// the defaults, the platform and the rules. Do not change it. [SettingsOf] casts it.
	Settings() any

	// Open opens a source file. Its content is recorded. If there is none, the
	// error is fs.ErrNotExist, and its absence is recorded.
	Open(path string) (File, error)

	// ReadFile is Open and read all.
	ReadFile(path string) ([]byte, error)

	// Exists tells whether a source file is there. Only that is recorded.
	Exists(path string) (bool, error)

	// Glob lists the source files that match a pattern, sorted bytewise: `*` and `?`
	// within a name, `**` any number of folders, `{a,b}`, `[a-z]`; a backslash before
	// one of these characters takes it as it is. The list is recorded, not what is in
	// the files.
	Glob(pattern string) ([]string, error)

	// Find tells which asset a name means: its id, its path, or what [ByUUID] gives. What it tells is
	// recorded. If there is none, the error is fs.ErrNotExist. Products and Reference take such names
	// as well.
	Find(name string) (Asset, error)

	// Products brings other assets up to date on this job's platform and tells
	// what they made, by all their processors: names, types and files, each asset's main product first. The job is
	// suspended meanwhile. Only what is in the answer is recorded: a product whose bytes
	// change does not run this job again. Name several assets at once and
	// they are built side by side. If one of them failed, the error says so; return it.
	Products(assetIDs ...string) ([][]Product, error)

	// Parts is Products for parts of this asset's own work, hidden products included: it brings them up to date, side by side, by
	// calling the processor's [Parter.Part]. A part may ask for parts. Parts that nobody asks for any more are gone, with their products.
	Parts(names ...string) ([][]Product, error)

	// OpenProduct opens a product that Products or Parts told of. Its content is recorded. One of more than 1 MiB is read from the disk as
	// the caller reads it.
	OpenProduct(p Product) (File, error)

	// Request has other processors work for this job: each on a source file, a product, bytes or nothing, with settings given here over what
	// the platform says of the processor. It brings that up to date, side by side, and tells what was made, each request's main product
	// first. Requests that are equal are one, whoever asks, on one platform: it runs once. What a request makes has no file, no UUID and is
	// in no parcel; [Job.Adopt] gives a product to this job's asset. What is recorded is as for Products.
	Request(requests ...Request) ([][]Product, error)

	// Adopt makes a product of this job of one that Request, Parts or Products told of, without a copy of its bytes. If out has no
	// type, extension or references, it has those of p; references from one of a request's products to another one are then to products
	// of this job.
	Adopt(p Product, out Output) error

	// Source opens what the job works on: the asset's source file, or what a request, or an import that a rule names, has in its place.
	// Asset().Path is its name: reads of that path are of it.
	Source() (File, error)

	// Reference makes a reference to another asset's product that the game needs at
	// run time, without building it: name "" is the main product. That the asset exists
	// is recorded. If it does not, the error is fs.ErrNotExist.
	Reference(assetID, name string, required bool) (Reference, error)

	// Tool finds an external program on PATH, or at a path relative to the project, and records its content.
	Tool(name string) (path string, err error)

	// Env gives an environment variable and records its value.
	Env(name string) (value string, ok bool)

	// Create begins a product. It counts once it is closed without error.
	Create(out Output) (io.WriteCloser, error)

	// Write is Create, write all, close.
	Write(out Output, data []byte) error

	// Warn tells of something that does not stop the build. It is kept with the
	// job, and shown again when the job is not run.
	Warn(p Problem)

	// Scratch is an empty folder of the job's own, as an absolute path of the operating
	// system, deleted afterwards. It is the same folder at each call.
	Scratch() (string, error)
}

// Drafter is what a Job also is in Kiln: a processor that takes long may hand a quick first version of a product to running games, which
// have it until the job is done. A draft is never a result: it is kept nowhere, nothing depends on it, and whether it is asked for changes
// nothing about the products.
type Drafter interface {
	// Drafts tells whether anybody would see one. If not, do not make it.
	Drafts() bool

	// Draft hands it on: all of the product's bytes, under the name that the product will have.
	Draft(out Output, data []byte) error
}

// File is an open source file or product.
type File interface {
	io.Reader
	io.ReaderAt
	io.Seeker
	io.Closer
	Size() int64
}

// Output names a product that a job writes.
type Output struct {
	// Name tells the asset's products apart. The main product has none.
	Name string

	// Type is one of Info.Products.
	Type string

	// Extension is appended to the asset's id to make the file name: "hero.png"
	// with ".ktx2" is "hero.png.ktx2"; with the name "cape", "hero.png.cape.ktx2".
	Extension string

	// References are what this product needs at run time.
	References []Reference

	// Hidden keeps the product out of the output folder and from other assets: it is for other parts of
	// the asset's own work. Its name need not differ from those of other parts.
	Hidden bool
}

// Product is one output of a job.
type Product struct {
	AssetID string
	UUID    string // of the asset
	Name    string // empty for the main product
	SubID   uint32 // SubID(Name)
	Type    string
	File    string // path below the platform's output folder, forward slashes; empty if it is hidden, or a request's

	// Extension is what its file name ends in, after the asset and Name; of a request's, what it would end in.
	Extension string

	Processor string // that made it
	Part      string // that made it; empty for the job itself
}

// Request asks for what another processor makes. One of Path, Product and Bytes says of what; none of them is for processors that need no source.
// The processor sees a job like any other, whose asset has no ID and whose UUID is zero.
type Request struct {
	// Processor is the name of one that takes files.
	Processor string

	// Settings as a rule would write them: string, bool, int, float64, []any and map[string]any, or what encoding/json makes these of.
	Settings map[string]any

	// Path of a source file.
	Path string

	// Product that Products, Parts or Request told of.
	Product *Product

	// Bytes are a file of their own, with an Extension (".png") that tells what they are.
	Bytes     []byte
	Extension string
}

// Reference says that at run time a product needs another one.
type Reference struct {
	UUID     string // of the asset
	SubID    uint32
	Required bool // false: the game can do without
}

// Own is a reference to another product of the same job.
func Own(job Job, name string, required bool) Reference {
	return Reference{UUID: job.Asset().UUID, SubID: SubID(name), Required: required}
}

// SubID is the number of a product within its asset: 0 for the main product, which
// has no name, else the 32-bit FNV-1a hash of the name, or 1 where that is 0.
func SubID(name string) uint32 {
	if name == "" {
		return 0
	}
	h := fnv.New32a()
	io.WriteString(h, name)
	return max(h.Sum32(), 1)
}

// SettingsOf casts a job's settings to the type of Info.Settings.
func SettingsOf[T any](job Job) *T { return job.Settings().(*T) }
