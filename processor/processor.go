// Package processor is the contract that turns source files into game-ready
// products. Kiln's own processors are written against it, and so are a team's.
//
// A processor gets a [Job]: one asset, for one platform, with its settings. It
// accesses everything through the Job. What it reads, lists or does not find there
// is recorded, and this record decides when the job runs again. A processor that
// reads the disk, the clock, the environment or the network in another way breaks
// incremental builds; `kiln audit` checks for that.
//
// The same inputs must give the same bytes. Process is called from several
// goroutines at the same time, each with a Job of its own.
package processor

import (
	"context"
	"hash/fnv"
	"io"
	"io/fs"
	"time"
)

// Processor turns one asset into products for one platform.
type Processor interface {
	// Info describes the processor. It returns the same value every time.
	Info() Info

	// Process reads the job's asset and writes its products. A returned
	// error fails the job; return a [*Problem], or several joined with
	// errors.Join, to point at the place in the source file. The products of
	// a job that fails are discarded.
	Process(ctx context.Context, job Job) error
}

// Parter is a processor whose work on one asset has parts. Each part has a key and a record of its own, as if it
// were an asset: what it read decides whether it runs again, and if its products are unchanged, the job or part
// that asked for it does not run.
type Parter interface {
	Processor

	// Part does one part, whose name was passed to [Job.Parts]. The products that it writes are the asset's.
	Part(ctx context.Context, job Job, name string) error
}

// Sourced is a processor that carries its own source, so that Kiln detects changes of its code: its assets are then
// rebuilt, and no others. A processor in a work tree that is not Sourced counts as changed whenever anything in its
// program changes. These three lines are enough:
//
//	//go:embed *.go
//	var source embed.FS
//
//	func (Tilemap) Source() fs.FS { return source }
//
// Packages of the same work tree that it imports must be in folders below its own, and be embedded as well ("*.go
// grid/*.go"), like everything else that the compiler embeds. Tests are ignored.
type Sourced interface {
	Processor

	// Source returns the folder of the package that declares the processor's type.
	Source() fs.FS
}

// Guesser is a processor that guesses a setting from a file's name, and those of the files beside it, if the setting is left open.
// `kiln settings` shows the guess.
type Guesser interface {
	Processor

	// Guess returns the guess for a source file. beside are the paths of the files in its folder. settings has the type of
	// Info.Settings.
	Guess(file string, beside []string, settings any) Guess
}

// Guess is a guess of a setting. The zero Guess is none.
type Guess struct {
	Setting string // the name of the setting; "processor" if another processor suits the file better
	Value   string
	Because string // the part of the file's name that decides: "_n", ".json"
	Why     string // a text for a comment; may be empty
}

// Placeholder is a processor with placeholders: small files that replace source files that cannot be built, in a build
// with --on-error placeholder. Kiln's own placeholders for images, sounds and models need no such method.
type Placeholder interface {
	Processor

	// Placeholder returns a file that replaces a source file of that name, or nil. Process makes products of it, with
	// the asset's settings. It sees no other file.
	Placeholder(file string) []byte
}

// PackPart is the part in which an asset of a processor with Info.Packs adds images to atlases.
const PackPart = "pack"

// Info describes a processor without running it.
type Info struct {
	// Name is its name in rules: lower case letters, digits and dashes.
	Name string

	// Version is raised whenever the same input gives other output: a new version runs every job again. For a processor
	// that a team adds to its own kiln, its code also counts; see [Sourced].
	Version int

	// Summary is one line for `kiln processors`.
	Summary string

	// Extensions are the extensions of the files that it gets by default, lower case with the dot (".png"). For a
	// processor of folders they select the files inside the folder that belong to it and are not assets of their own.
	Extensions []string

	// Folder is set if its assets are folders, selected by a rule whose match
	// ends in a slash.
	Folder bool

	// NoFile is set if a processor of folders also processes assets without
	// a file or folder, whose Path is "".
	NoFile bool

	// Settings is nil or a pointer to a struct that holds the defaults.
	// Fields are bool, int, int64, float64, string, a slice of those, a
	// map[string]string, a map[string]any or a struct of the same kinds. A
	// map[string]any holds string, bool, int64, float64, []any and
	// map[string]any; jobs never see a nil slice or map. Fields have the tags
	//
	//	toml:"max_size"            the name in rules
	//	doc:"Largest side, in pixels. 0 keeps the size."
	//	values:"rgba8,r8,rg8"      the values that a string may have
	//	min:"0" max:"16384"        bounds of a number
	//	of:"texture"               the processor whose settings a map[string]any holds, for requests to it
	Settings any

	// Products lists the types of its products, the main one first.
	Products []ProductType

	// Packs is set if its assets add images to atlases, in a part named PackPart. See package processor/pack.
	Packs bool

	// Memory is the most memory that one job needs, in bytes. It is used until a run of the job was measured. 0 means
	// 64 MiB.
	Memory int64
}

// ProductType describes a type of product.
type ProductType struct {
	Type      string // "texture", "atlas", "data"
	Extension string // ".ktx2"; empty if the source's own name is kept
	Doc       string
}

// Asset is the source content of a job.
type Asset struct {
	// ID is the path relative to its source root with forward slashes,
	// "sprites/tank.png"; a folder's ends in a slash. A rule may pin another.
	ID string

	// UUID is the asset's identity on every machine, in the usual text form.
	UUID string

	// Path of the primary source file, or of the folder without a slash at the end. It can be passed to the methods of
	// Job that read files. In a request, or after an import, it is the name of the source that the job works on; in a
	// request without a source it is empty.
	Path string

	// Folder is set if the asset is a folder.
	Folder bool

	// Made is set if the job does not work on a source file: another processor made its source, or a request provided
	// it.
	Made bool
}

// Job is one processor's work on one asset for one platform.
//
// Paths are relative to the source roots and use forward slashes, as in
// Asset.Path; if several roots have the file, the last root wins. Use [Resolve] to convert
// the text of a source file ("../textures/cape.png") to such a path, or [ResolveAsset] if it
// may also name an asset by its UUID: reading such a name reads the asset's source file.
// Methods may be called from several goroutines of one Process call.
type Job interface {
	Asset() Asset

	// Platform returns the name of the platform, and records the call. If the job never calls it, one run may count for
	// all platforms on which the job's settings are the same.
	Platform() string

	// Settings returns a pointer to a struct of the type of Info.Settings, filled from
	// the defaults, the platform and the rules. Do not modify it. [SettingsOf] casts it.
	Settings() any

	// Open opens a source file. Its content is recorded. If it does not exist, the
	// error is fs.ErrNotExist, and its absence is recorded.
	Open(path string) (File, error)

	// ReadFile opens a source file and reads all of it.
	ReadFile(path string) ([]byte, error)

	// Exists reports whether a source file exists. Only that is recorded.
	Exists(path string) (bool, error)

	// Glob lists the source files that match a pattern, sorted bytewise: `*` and `?`
	// within a name, `**` any number of folders, `{a,b}`, `[a-z]`; a backslash escapes
	// one of these characters. The list is recorded, not the content of the files.
	Glob(pattern string) ([]string, error)

	// Find returns the asset with a name: its id, its path, or the result of [ByUUID]. The result is recorded. If
	// there is no such asset, the error is fs.ErrNotExist. Products and Reference accept the same names.
	Find(name string) (Asset, error)

	// Products brings other assets up to date on this job's platform and returns the
	// products of all their processors: names, types and files, each asset's main product first. The job is
	// suspended meanwhile. Only the result is recorded: a change of a product's bytes does
	// not run this job again. Several assets in one call are built in parallel. If one of
	// them failed, the error says so; return it.
	Products(assetIDs ...string) ([][]Product, error)

	// TryProducts is like Products for one asset that may fail or not exist. ok is then false, which is recorded, and
	// the job can continue. An error means that it cannot continue.
	TryProducts(of Ask) (products []Product, ok bool, err error)

	// Assets lists the assets on this job's platform that match a pattern: a glob of ids, or a result of [ByUUID]. The
	// list is sorted by id and has one entry for each of their processors. It does not include files without a
	// processor. The list and its contents are recorded.
	Assets(pattern string) ([]Listed, error)

	// Parts is like Products for parts of this asset's own work, hidden products included: it brings them up to date, in parallel, by
	// calling the processor's [Parter.Part]. A part may ask for parts. Parts that are no longer asked for are deleted, with their
	// products.
	Parts(names ...string) ([][]Product, error)

	// OpenProduct opens a product that Products or Parts returned. Its content is recorded. A product of more than 1 MiB is read from the
	// disk while the caller reads it.
	OpenProduct(p Product) (File, error)

	// Request has other processors do work for this job: each on a source file, a product, bytes or nothing. Its
	// settings override those of the platform. It brings the requests up to date, in parallel, and returns their
	// products, each request's main product first. Equal requests of all jobs on one platform run once. The products of
	// a request have no file and no UUID and are in no parcel; [Job.Adopt] makes one a product of this job's asset. It
	// records the same as Products.
	Request(requests ...Request) ([][]Product, error)

	// Adopt makes a product that Request, Parts or Products returned a product of this job, without a copy of its bytes. If out has no
	// type, extension or references, those of p are used; references between products of the same request then refer to products of
	// this job.
	Adopt(p Product, out Output) error

	// Source opens the source of the job: the asset's source file, or the source of a request, or the result of an import. Its name is
	// Asset().Path, which Open and ReadFile accept as well.
	Source() (File, error)

	// ToPack is for a processor whose assets collect images of other assets, such as an atlas. It brings the part
	// [PackPart] of all assets that add images up to date, and lists the products for this asset. The list is recorded,
	// not the content of the products.
	ToPack() ([]Product, error)

	// Reference returns a reference to another asset's product that the game needs at run time, without building it.
	// name "" is the main product. It records whether the asset exists. If a required asset does not exist, the error
	// is fs.ErrNotExist. If the reference is optional, it refers to the asset that may exist later, and a note reports
	// it.
	Reference(assetID, name string, required bool) (Reference, error)

	// ResourceID returns the number by which games find a product of this job's asset: the one that kiln.ids has for it, on all
	// platforms; name "" is the main product. The answer is recorded. ok is false if the product has no number: before its first
	// build has ended, in a project without kiln.ids, if the product is hidden, and always in a request, which belongs to no asset.
	// Do not fail then: write the product without the number. The build gives it one, and runs the job again.
	ResourceID(name string) (id uint32, ok bool)

	// Tool finds an external program on PATH, or at a path relative to the project, and records its content.
	Tool(name string) (path string, err error)

	// Env returns an environment variable and records its value.
	Env(name string) (value string, ok bool)

	// Run runs a program to its end, and returns what it wrote. The program is found as by Tool. It sees the job's
	// source file and the files that c names; everything else that it reads on the machine is recorded. On Linux it can
	// write only to its own folders, and cannot connect to other machines. If it fails, the error has the reason and
	// its output; return that error.
	Run(ctx context.Context, c Command) (Result, error)

	// Create starts a product. It is complete when it is closed without error.
	Create(out Output) (io.WriteCloser, error)

	// Write creates a product, writes data and closes it.
	Write(out Output, data []byte) error

	// Warn reports a problem that does not stop the build. It is stored with the
	// job, and shown again in builds in which the job is up to date.
	Warn(p Problem)

	// Scratch returns an empty folder of the job's own, as an absolute path of the operating
	// system. It is the same folder in each call, and is deleted after the job.
	Scratch() (string, error)

	// NeedMemory waits until the build has this much memory for the job in total, and reserves it until the job ends.
	// Call it before using the memory, and after the last call that waits for other jobs: reserved memory is not
	// available to them.
	NeedMemory(bytes int64) error

	// UsedMemory reports the peak memory of the job, in bytes, as measured or as an upper bound. The next run of the
	// job starts when that much memory is free. It does not affect the products.
	UsedMemory(bytes int64)

	// Drafts reports whether a running game would use a quick first version of a product. If it returns false, do not
	// make one.
	Drafts() bool

	// Draft sends a draft to running games: all bytes of the product, under the name that the product will have. They
	// use it until the job is done. A draft is never a result: it is not stored, nothing depends on it, and it does not
	// affect the products.
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
	// Name distinguishes the asset's products. The main product has none.
	Name string

	// Type is one of Info.Products.
	Type string

	// Extension is appended to the asset's id to make the file name: "hero.png"
	// with ".ktx2" is "hero.png.ktx2"; with the name "cape", "hero.png.cape.ktx2".
	Extension string

	// References are what this product needs at run time.
	References []Reference

	// Facts are properties of the product for users and tools, by name, available without opening it: "sound.loudness"
	// is "-23.04". A name has lower case letters, digits, dots and underscores. Facts are written to the content
	// database, and no build depends on them. There may be at most 64, of at most 1 KiB each.
	Facts map[string]string

	// Hidden keeps the product out of the output folder and hides it from other assets: it is only for other
	// parts of the asset's own work. Its name need not differ from those of other parts.
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

	// Extension is the end of its file name, after the asset and Name. It is also set for a product of a request.
	Extension string

	Processor string // the processor that made it
	Part      string // the part that made it; empty for the job itself
	Platform  string // of the asset, if it is not the job's own; else empty
}

// Ask selects the products that [Job.TryProducts] returns.
type Ask struct {
	Asset     string // its id, its path, or the result of [ByUUID]
	Platform  string // empty for the job's own
	Processor string // if the asset has several; empty for all
}

// Listed is an asset in the list of [Job.Assets].
type Listed struct {
	Asset
	Processor string
	Type      string // the type of its products: the first that the processor declares; empty if it declares none
	Settings  string // on this platform, as JSON
	Meta      string // the asset's metadata from rules, as a JSON object
}

// Request is a request for work of another processor. At most one of Path, Product and Bytes is its source. A request
// to a processor that needs no source has none. The processor sees a job like any other, whose asset has no ID and a
// zero UUID.
type Request struct {
	// Processor is the name of a processor of files.
	Processor string

	// Name is the job's name for the request. Rules for it, match = "knight.glb#cape", override Settings; the resulting
	// settings are recorded. It is not part of the request: equal requests are one, whatever their names.
	Name string

	// Settings are values as in a rule: string, bool, int, float64, []any and map[string]any, or values that
	// encoding/json converts to these.
	Settings map[string]any

	// Path is the path of a source file.
	Path string

	// Product is a product that Products, Parts or Request returned.
	Product *Product

	// Bytes are the content of a file with this Extension (".png").
	Bytes     []byte
	Extension string
}

// Command is a program that a job runs, as docs/commands.md describes it for commands in the project file: without a
// shell, in its own folder (the view), with an environment that is the same on every machine.
type Command struct {
	// Args are the program, by a name on PATH or a path relative to the project, and its arguments. It runs in the
	// view, where each source file has its path below the source roots. It writes its output to the folder ../out,
	// which exists and is empty.
	Args []string

	// Tools are more programs, or scripts of the project, that it runs or reads. An argument that is one of these names
	// is replaced by its path.
	Tools []string

	// Inputs are globs of source files that it sees besides the job's own. All matching files are recorded, whether it
	// reads them or not.
	Inputs []string

	// Traced makes all source files visible and records which ones it reads. It works only on Linux: on other systems
	// the job fails.
	Traced bool

	// Files are put into the view by path. They replace source files of the same path.
	Files map[string][]byte

	// Scratch are more files of the view, for content that is too large for memory: their names in the folder that
	// [Job.Scratch] returns, by path. They are copied.
	Scratch map[string]string

	// Stdin is its standard input.
	Stdin []byte

	// Env names more environment variables that it gets. Their values are recorded.
	Env []string

	// Codes are the exit codes besides 0 that are not a failure.
	Codes []int

	// Timeout is the time limit; 0 means 10 minutes.
	Timeout time.Duration

	// Network allows connections to other machines.
	Network bool
}

// Result is the result of a program.
type Result struct {
	// Code is its exit code: 0, or one of Command.Codes.
	Code int

	// Stdout and Stderr are its output: all of standard output, and the first and last 32 KiB of standard error.
	Stdout, Stderr []byte

	// Files are the files that it wrote to ../out, by their paths there.
	Files map[string][]byte
}

// Reference is a product that another product needs at run time.
type Reference struct {
	UUID     string // of the asset
	SubID    uint32
	Required bool // if false, the game works without it
}

// Own returns a reference to another product of the same job.
func Own(job Job, name string, required bool) Reference {
	return Reference{UUID: job.Asset().UUID, SubID: SubID(name), Required: required}
}

// SubID returns the number of a product within its asset: 0 for the main product, which
// has no name, else the 32-bit FNV-1a hash of the name, or 1 if that is 0.
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
