// Package kilnrt is the game's side of Kiln: it opens parcels, finds resources by id, UUID or name, and loads them with
// everything that they need.
//
// A Parcel is one file that contains Resources. A Library is several parcels mounted over each other, with loaders for the types of
// resources that the game uses. The format is docs/formats/parcel.md.
//
// The rules of the package:
//
//   - Nothing is trusted. A parcel may come from anywhere: each offset is checked before it is used, and a wrong one is an
//     error on that resource, never a panic. No number in a file causes an allocation that the size of the file does not justify.
//   - Looking up does not allocate. Uncompressed content is returned without a copy.
//   - All methods except Close may be called by several goroutines at the same time.
//   - There are no globals and no implicit registration.
package kilnrt

import "errors"

// Errors to check with errors.Is. All others only have a text.
var (
	ErrNotFound = errors.New("kilnrt: no such resource")
	ErrDamaged  = errors.New("kilnrt: the parcel is damaged")
	ErrCycle    = errors.New("kilnrt: resources require each other in a circle")
	ErrNoLoader = errors.New("kilnrt: no loader for this type")

	ErrNotSigned = errors.New("kilnrt: the parcel is not signed")
	ErrSignature = errors.New("kilnrt: the parcel is signed by another key, or what it holds is not what was signed")
)

// Numbers of the format, for readers and writers.
const (
	Magic   = "\x89KPRC\r\n\x1a"
	Version = 1

	SlotSize   = 512  // used bytes of a header slot
	SlotPitch  = 4096 // offset of the second slot
	DataStart  = 8192 // the first byte that a payload can have
	RecordSize = 128
	PageSize   = 64 // records in a page

	MaxResources  = 1 << 24
	MaxCompressed = 1 << 28 // most bytes of content that may be compressed
	MaxName       = 4096
	MaxNeeds      = 1 << 16
	MaxChain      = 1000    // most needs in a chain
	MaxLookedUp   = 1 << 20 // most needs that are looked up to load one resource
	MaxDictionary = 1 << 20
	MaxSignature  = 4096
	MaxTypes      = 1 << 16
)

// The sections of a parcel, in the order of the header.
const (
	SectionDirectory = iota
	SectionIDs
	SectionUUIDs
	SectionNames
	SectionTypes
	SectionTexts
	SectionNeeds
	SectionDictionary
	SectionSignature
	Sections // number of sections
)
