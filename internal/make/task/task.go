// Package task has the names, as text, of everything that can be asked for: a job, a part of one, or a
// request. The names are in traces and snapshots, and are displayed.
package task

import "strings"

// Subject names a job, or a part of one. String is its text for the engine and in traces.
type Subject struct {
	Platform string
	Asset    string // id or path
	Part     string // "" for the job itself
	// Always set for a part, whose trace may outlive the position of its job; for a job only if it is not the
	// asset's first on the platform.
	Processor string
}

func (s Subject) String() string {
	text := s.Platform + "\x00" + s.Asset
	if s.Part != "" || s.Processor != "" {
		text += "\x00" + s.Part
	}
	if s.Processor != "" {
		text += "\x00" + s.Processor
	}
	return text
}

// ParseSubject is the reverse of String.
func ParseSubject(text string) (s Subject) {
	s.Platform, text, _ = strings.Cut(text, "\x00")
	s.Asset, text, _ = strings.Cut(text, "\x00")
	s.Part, s.Processor, _ = strings.Cut(text, "\x00")
	return s
}

// FullName is the name of a task for display.
func FullName(job, platform string) string { return job + " [" + platform + "]" }

// JobOf returns the job in the name of a task.
func JobOf(name string) string {
	if i := strings.LastIndex(name, " ["); i >= 0 {
		name = name[:i]
	}
	return name
}

// AssetOf returns the asset in it.
func AssetOf(name string) string {
	asset, _, _ := strings.Cut(JobOf(name), PartMark)
	return asset
}

// Name is the name of a job, or of a part, without its platform. The processor is included if the asset has
// several.
func Name(asset, among, part string) string {
	if among != "" {
		asset += PartMark + among
	}
	if part != "" {
		asset += PartMark + part
	}
	return asset
}

// PartMark separates an asset from one of its processors, and from a part of a job.
const PartMark = " ▸ "
