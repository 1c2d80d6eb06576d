package contentdb

import (
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/processor"
)

// Start is what is known at the beginning of a build.
type Start struct {
	Number  int64 // of this build, greater than 0
	Started time.Time

	// After is the number of the last finished build that the caller wrote. If the file describes
	// another one, all records are asked for.
	After int64

	// Everything empties the file first: all records will be passed.
	Everything bool

	Project, Output string   // the project's name; the output folder relative to the project
	Kiln            string   // version
	Roots           []string // in order
	Platforms       []string // all platforms of the project; records of others are deleted

	// Building are the platforms of this build, nil for all. Put replaces the records of an asset
	// on these and does not change the others.
	Building []string
}

// Summary is what is known at the end of a build.
type Summary struct {
	Seconds                                       float64
	Assets, Jobs, Built, Reused, Failed, Products int
	Bytes                                         int64
	Compared                                      int    // jobs and parts of jobs
	Because                                       string // why these were all; "" if they were not

	// Diagnostics that belong to no job: of scanning, of the project file.
	Diagnostics []Diagnostic
}

// File is a source file, or a path where a job looked for one.
type File struct {
	Path    string // relative to its root
	Root    int    // index into Start.Roots
	Missing bool
	Size    int64 // bytes
	Hash    digest.Hash
}

// Asset is the record of one asset.
type Asset struct {
	ID, UUID  string
	Path      string // of the primary source file, or of the folder; "" if there is none
	Folder    bool
	Processor string // several are separated by ", "
	Meta      []Meta // by key; a key occurs several times if its value is a list
	Jobs      []Job  // on each platform one for each of its processors, in sequence
}

// Meta is a metadata value of an asset.
type Meta struct{ Key, Value string }

// Job is one job, from its trace.
type Job struct {
	Platform    string
	Processor   string
	Key         digest.Hash
	Settings    string // JSON, resolved
	Fingerprint string
	Failed      bool
	Held        bool   // it is up to date only because what changed is harmless
	Built       int64  // build in which it ran; 0 if it came from a cache of others
	Cache       string // that cache: "folder" or "server"; "" if it is not known
	Reason      string // why it ran, in words
	Seconds     float64
	PeakMemory  int64 // bytes

	Observations []Observation // in order
	Products     []Product
	Needs        []string // ids of the assets whose products it read
	Diagnostics  []Diagnostic
}

// Kind is what was observed.
type Kind string

// The kinds of engine observations. The subject of the first three is the path of a source file.
const (
	SawFile     Kind = "file"     // content; Hash is that of the content
	SawMissing  Kind = "missing"  // it was not there
	SawExists   Kind = "exists"   // only its existence
	SawGlob     Kind = "glob"     // a pattern's list of names
	SawListing  Kind = "listing"  // a folder's list of names
	SawProducts Kind = "products" // the list of another asset's products
	SawProduct  Kind = "product"  // the content of a product
	SawAsset    Kind = "asset"    // whether an asset exists
	SawSetting  Kind = "setting"
	SawTool     Kind = "tool"
	SawEnv      Kind = "env"
)

// ofFile reports whether the subject is a source file.
func (k Kind) ofFile() bool { return k == SawFile || k == SawMissing || k == SawExists }

// Observation is one thing a job looked at.
type Observation struct {
	Group   int // observations that were made together have the same number
	Kind    Kind
	Subject string
	Hash    digest.Hash // of the value
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

	// Cause is the id of the asset whose failure caused this one, as in "needs X, which failed":
	// the root cause or the next step towards it. Empty if it failed by itself.
	Cause string

	// Asset and Platform are set for a message that belongs to no job. Empty: about the project as
	// a whole.
	Asset, Platform string
}

// Parcel is a package of products for one platform.
type Parcel struct {
	Name, Platform string
	File           string // path below the output folder
	Size           int64  // bytes
	Hash           digest.Hash
	Products       []ParcelProduct

	Added, Removed []ParcelProduct // for TouchParcels, instead of Products
}

// ParcelProduct is a product that a parcel holds.
type ParcelProduct struct {
	AssetID string
	SubID   uint32
}
