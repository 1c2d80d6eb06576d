package build

import (
	"fmt"
	"regexp"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/engine"
)

// Explain puts into words why a job ran or would run.
func Explain(r *engine.Reason) string {
	if r == nil {
		return ""
	}
	switch r.Cause {
	case engine.NeverBuilt:
		return "it was never built"
	case engine.CodeChanged:
		return "the processor changed"
	case engine.ProductLost:
		return fmt.Sprintf("its product %s is lost", r.Subject)
	case engine.Forced:
		return "it was asked for with --force"
	case engine.NeedsUndecided:
		return "it needs " + ObservationText(r.Observation) + ", which is to be built first"
	case engine.InputUnreadable:
		return ObservationText(r.Observation) + " cannot be read"
	case engine.InputDiffers:
		if r.Observation.Kind < engine.FirstLeaf {
			switch name := SubjectName(r.Observation); {
			case engine.IsFailure(r.New):
				return name + ", which it needs, failed"
			case engine.IsFailure(r.Observation.Value):
				return name + ", which it needs and which had failed, is mended"
			}
		}
		return ObservationText(r.Observation) + " " + difference(r.Observation, r.New)
	}
	return ""
}

// ObservationText names what an observation looked at.
func ObservationText(o engine.Observation) string {
	switch o.Kind {
	case engine.Outline:
		return "the list of products of " + SubjectName(o)
	case engine.Content:
		return "a product of " + SubjectName(o)
	case sawFile:
		return o.Subject
	case sawExists:
		return "whether " + o.Subject + " exists"
	case sawGlob:
		return "the list of files " + PlainGlob(o.Subject)
	case sawAsset:
		return "asset " + o.Subject
	case sawTool:
		return "tool " + o.Subject
	case sawEnv:
		return "environment variable " + o.Subject
	case sawPackers:
		return "the list of assets that have images packed"
	case sawRoots:
		return "the list of source roots"
	}
	return o.Subject
}

// PlainGlob is a glob for people: [pP][nN][gG], which means any case, is written png.
func PlainGlob(glob string) string { return anyCase.ReplaceAllStringFunc(glob, plainLetter) }

var anyCase = regexp.MustCompile(`\[[a-z][A-Z]\]`)

func plainLetter(class string) string {
	if class[1]-'a' == class[2]-'A' {
		return class[1:2]
	}
	return class
}

// difference says how a value changed: content by the first digits of its hash.
func difference(o engine.Observation, now digest.Hash) string {
	switch {
	case o.Value.IsZero() && o.Kind == sawExists, o.Value.IsZero() && o.Kind == sawFile:
		return "was missing and is there now"
	case o.Value.IsZero():
		return "was not there and is now"
	case now.IsZero() && (o.Kind == sawFile || o.Kind == sawExists):
		return "is no longer there"
	case now.IsZero():
		return "is gone"
	}
	return fmt.Sprintf("changed: %s, now %s", o.Value.Short(), now.Short())
}

// KindName is an observation's kind in the content database and in JSON.
func KindName(o engine.Observation) string {
	switch o.Kind {
	case engine.Outline:
		return "products"
	case engine.Content:
		return "product"
	case sawFile:
		if o.Value.IsZero() {
			return "missing"
		}
		return "file"
	case sawExists:
		if o.Value.IsZero() {
			return "missing"
		}
		return "exists"
	case sawGlob:
		return "glob"
	case sawAsset:
		return "asset"
	case sawTool:
		return "tool"
	case sawEnv:
		return "env"
	case sawPackers:
		return "packers"
	case sawRoots:
		return "roots"
	}
	return "unknown"
}

// SubjectName is an observation's subject without the platform.
func SubjectName(o engine.Observation) string {
	if o.Kind < engine.FirstLeaf {
		s := parseSubject(o.Subject)
		if s.part != "" {
			s.processor = "" // parts have it always, and nearly always it says nothing
		}
		return JobName(s.asset, s.processor, s.part)
	}
	return o.Subject
}

// NeededAsset is the asset whose products an observation is of, by id or path; "" if it is of something else.
func NeededAsset(o engine.Observation) string {
	if o.Kind >= engine.FirstLeaf {
		return ""
	}
	return parseSubject(o.Subject).asset
}

// NeededProcessor is whose products an observation is of, if these are of one of an asset's further processors; else "".
func NeededProcessor(o engine.Observation) string {
	if o.Kind >= engine.FirstLeaf {
		return ""
	}
	return parseSubject(o.Subject).processor
}
