// Package task names what can be asked for: a job, a part of one, or a request, as text. It is what stands in
// traces and snapshots, and what is displayed.
package task

import "strings"

// Subject names a job, or a part of one. String is how the engine hands it around, and how it stands in traces.
type Subject struct {
	Platform  string
	Asset     string // by id or path
	Part      string // "" for the job itself
	Processor string // of a part, always, whose trace may outlive its job's place; of a job unless it is the asset's first on the platform
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

// ParseSubject reads what String wrote.
func ParseSubject(text string) (s Subject) {
	s.Platform, text, _ = strings.Cut(text, "\x00")
	s.Asset, text, _ = strings.Cut(text, "\x00")
	s.Part, s.Processor, _ = strings.Cut(text, "\x00")
	return s
}

// FullName is a task for display.
func FullName(job, platform string) string { return job + " [" + platform + "]" }

// JobOf is the job's name in that of a task.
func JobOf(name string) string {
	if i := strings.LastIndex(name, " ["); i >= 0 {
		name = name[:i]
	}
	return name
}

// AssetOf is the asset alone.
func AssetOf(name string) string {
	asset, _, _ := strings.Cut(JobOf(name), PartMark)
	return asset
}

// Name is a job, or a part of one, without its platform. The processor is named where the asset has several.
func Name(asset, among, part string) string {
	if among != "" {
		asset += PartMark + among
	}
	if part != "" {
		asset += PartMark + part
	}
	return asset
}

// PartMark stands between an asset and one of its processors, and a part of a job.
const PartMark = " ▸ "
