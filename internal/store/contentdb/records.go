package contentdb

import (
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/processor"
)

// Start is what is known when a build begins.
type Start struct {
	Number  int64 // of this build, above 0
	Started time.Time

	// After is the number of the last build that the caller handed in and that
	// finished. If the file describes another one, all records are asked for.
	After int64

	// Everything makes the file empty first: all records will be handed in.
	Everything bool

	Project, Output string   // name; folder of the products relative to the project
	Kiln            string   // version
	Roots           []string // in order
	Platforms       []string // all that the project has; records of others are dropped

	// Building are the platforms of this build, nil for all. Put replaces the records of
	// an asset on these and leaves the others as they are.
	Building []string
}

// Summary is what is known when a build has finished.
type Summary struct {
	Seconds                                       float64
	Assets, Jobs, Built, Reused, Failed, Products int
	Bytes                                         int64
	Compared                                      int    // jobs and parts of jobs
	Because                                       string // why these were all; "": they were not

	// Diagnostics that belong to no job: of scanning, of the project file.
	Diagnostics []Diagnostic
}

// File is a source file, or the place where a job looked for one.
type File struct {
	Path    string // relative to its root
	Root    int    // index into Start.Roots
	Missing bool
	Size    int64 // bytes
	Hash    digest.Hash
}

// Asset is all there is to know of one asset.
type Asset struct {
	ID, UUID  string
	Path      string // of the primary source file, or of the folder; "" if it has none
	Folder    bool
	Missing   bool   // the primary source file is not there
	Processor string // several with ", " between
	Meta      []Meta // by key; several of a key where it has a list
	Jobs      []Job  // on each platform one for each of its processors; those of one platform together
}

// Meta is a value that rules give an asset under a key.
type Meta struct{ Key, Value string }

// Job is one job, as its trace tells it.
type Job struct {
	Platform    string
	Processor   string
	Key         digest.Hash
	Settings    string // JSON, resolved
	Fingerprint string
	Failed      bool
	Held        bool   // it is up to date only because what changed is harmless
	Built       int64  // build in which it ran; 0 if it came from a cache of others
	Reason      string // why it ran, in words
	Seconds     float64
	PeakMemory  int64 // bytes

	Observations []Observation // in the order it looked
	Products     []Product
	Needs        []string // ids of the assets whose products it read
	Diagnostics  []Diagnostic
}

// Kind says what an observation looked at.
type Kind string

// The kinds of engine observations. The subject of the first three is the path of a source file.
const (
	SawFile     Kind = "file"     // content; Hash is that of the content
	SawMissing  Kind = "missing"  // it was not there
	SawExists   Kind = "exists"   // only that it is there
	SawGlob     Kind = "glob"     // a pattern's list of names
	SawListing  Kind = "listing"  // a folder's list of names
	SawProducts Kind = "products" // the list of another asset's products
	SawProduct  Kind = "product"  // the content of one
	SawAsset    Kind = "asset"    // that an asset exists, or not
	SawSetting  Kind = "setting"
	SawTool     Kind = "tool"
	SawEnv      Kind = "env"
)

// ofFile reports whether the subject is a source file.
func (k Kind) ofFile() bool { return k == SawFile || k == SawMissing || k == SawExists }

// Observation is one thing a job looked at.
type Observation struct {
	Group   int // those asked for together have the same
	Kind    Kind
	Subject string
	Hash    digest.Hash // of what it saw
}

// Product is one output of a job.
type Product struct {
	SubID      uint32
	Name, Type string
	File       string // path below the platform's output folder
	Size       int64  // bytes
	Hash       digest.Hash
	References []processor.Reference // what it needs at run time
	Facts      []Fact                // in the order of their names
}

// Fact is something known of a product.
type Fact struct{ Name, Value string }

// Diagnostic is a message about a job.
type Diagnostic struct {
	diag.Message

	// Cause is the id of the asset whose failure this one is, as in "needs X, which
	// failed": the root cause or the next step towards it. Empty for a failure of its own.
	Cause string

	// Asset and Platform say what a message of no job is about. Empty: the project as a whole.
	Asset, Platform string
}

// Parcel is a package of products for one platform.
type Parcel struct {
	Name, Platform string
	File           string // path below the output folder
	Size           int64  // bytes
	Hash           digest.Hash
	Products       []ParcelProduct

	Added, Removed []ParcelProduct // for TouchParcels, in place of Products
}

// ParcelProduct is a product that a parcel holds.
type ParcelProduct struct {
	AssetID string
	SubID   uint32
}
