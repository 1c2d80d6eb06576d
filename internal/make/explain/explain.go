package explain

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/delivery/ids"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/task"
)

// Reason describes why a job ran or would run.
func Reason(r *engine.Reason) string {
	if r == nil {
		return ""
	}
	switch r.Cause {
	case engine.NeverBuilt:
		return "it was never built"
	case engine.SettingsChanged:
		return "its settings changed"
	case engine.CodeChanged:
		return "the processor changed"
	case engine.ProductLost:
		return fmt.Sprintf("its product %s is lost", r.Subject)
	case engine.Forced:
		return "it was asked for with --force"
	case engine.NeedsUndecided:
		if r.Observation.Kind >= engine.FirstLeaf {
			return "the build may change " + Observation(r.Observation)
		}
		return "it needs " + Observation(r.Observation) + ", which must be built first"
	case engine.InputUnreadable:
		return Observation(r.Observation) + " cannot be read"
	case engine.InputDiffers:
		if r.Observation.Kind < engine.FirstLeaf {
			switch name := Subject(r.Observation); {
			case engine.IsFailure(r.New):
				return name + ", which it needs, failed"
			case engine.IsFailure(r.Observation.Value):
				return name + ", which it needs and which had failed, is fixed"
			}
		}
		if r.Observation.Kind == job.SawExists {
			if r.New.IsZero() {
				return r.Observation.Subject + " was there, and is not now"
			}
			return r.Observation.Subject + " was not there, and is now"
		}
		return Observation(r.Observation) + " " + difference(r.Observation, r.New)
	}
	return ""
}

// RunOn is the platform whose run gave the result of a job; "" if the job ran itself.
func RunOn(r *engine.Reason) string {
	if r == nil || r.Cause == engine.ProductLost {
		return ""
	}
	return r.Subject
}

// ByHand describes the key and place of the dependency by hand that a reason is about; "" if it is not by hand.
func ByHand(r *engine.Reason, on *asset.Resolved) string {
	if r == nil || on == nil || r.Cause != engine.InputDiffers && r.Cause != engine.NeedsUndecided && r.Cause != engine.InputUnreadable {
		return ""
	}
	switch o := r.Observation; o.Kind {
	case job.SawFile, job.SawGlob:
		return Input(on, Subject(o))
	case engine.Outline, engine.Content:
		return Need(on, Asset(o))
	case job.SawAssets:
		return Need(on, Subject(o))
	}
	return ""
}

// Input is ByHand for a source file, or a glob of source files.
func Input(on *asset.Resolved, name string) string { return placed("inputs", on.Input(name)) }

// Need is ByHand for an asset, or a pattern of assets.
func Need(on *asset.Resolved, name string) string { return placed("needs", on.Need(name)) }

// Ignored is ByHand for what an observation that is harmless is about: where it is written that it is.
func Ignored(on *asset.Resolved, o *engine.Observation) string {
	return placed("ignore", job.Ignored("", on, o))
}

// IgnoredFile is Ignored for a source file.
func IgnoredFile(on *asset.Resolved, name string) string {
	return placed("ignore", on.Ignored("", name))
}

func placed(key string, p *project.Pattern) string {
	if p == nil || p.Span.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s in %s", key, p.Span)
}

// Observation describes what was observed.
func Observation(o engine.Observation) string {
	switch o.Kind {
	case engine.Outline:
		return "the list of products of " + Subject(o)
	case engine.Content:
		return "a product of " + Subject(o)
	case job.SawFile:
		return o.Subject
	case job.SawExists:
		return "whether " + o.Subject + " exists"
	case job.SawGlob:
		return "the list of files " + Glob(o.Subject)
	case job.SawAsset:
		return "asset " + o.Subject
	case job.SawTool:
		if file, ok := strings.CutPrefix(o.Subject, job.InProject); ok { // a traced program read it
			return file
		}
		return "tool " + o.Subject
	case job.SawEnv:
		return "environment variable " + o.Subject
	case job.SawPackers:
		return "the list of assets that have images packed"
	case job.SawRoots:
		return "the list of source roots"
	case job.SawSettings:
		return "the settings of " + Subject(o)
	case job.SawNamed:
		return "the settings that rules give to " + job.NamedText(o.Subject)
	case job.SawAssets:
		return "the list of assets " + project.ShowPattern(Subject(o))
	case job.SawCatalogue:
		return "the list of assets " + project.ShowPattern(Subject(o)) + ", with their settings"
	case job.SawListed:
		return "the list of assets " + project.ShowPattern(Subject(o)) + ", with their settings and metadata"
	case job.SawID:
		return "the resource id of " + Subject(o)
	}
	return o.Subject
}

// Glob formats a glob for display: [pP][nN][gG], which ignores case, becomes png.
func Glob(glob string) string {
	return anyCase.ReplaceAllStringFunc(project.ShowPattern(glob), plainLetter)
}

var anyCase = regexp.MustCompile(`\[[a-z][A-Z]\]`)

func plainLetter(class string) string {
	if class[1]-'a' == class[2]-'A' {
		return class[1:2]
	}
	return class
}

// difference describes how a value changed; contents are shown by the first digits of their hash.
func difference(o engine.Observation, now digest.Hash) string {
	switch {
	case o.Value.IsZero() && o.Kind == job.SawFile:
		return "was missing and is there now"
	case o.Value.IsZero() && o.Kind == job.SawID:
		return "was not known and is " + Value(o, now) + " now"
	case o.Value.IsZero():
		return "was not there and is now"
	case now.IsZero() && o.Kind == job.SawFile:
		return "is no longer there"
	case now.IsZero():
		return "no longer exists"
	case o.Kind == job.SawID:
		return "changed: " + Value(o, o.Value) + ", now " + Value(o, now)
	}
	return fmt.Sprintf("changed: %s, now %s", o.Value.Short(), now.Short())
}

// Value is a value of an observation as text: a hash, a resource id, or nothing if it was not there.
func Value(o engine.Observation, value digest.Hash) string {
	switch {
	case value.IsZero():
		return ""
	case o.Kind == job.SawID:
		id, _ := job.IDIn(value)
		return strconv.FormatUint(uint64(id), 10)
	}
	return value.String()
}

// Kind is the name of an observation's kind in the content database and in JSON.
func Kind(o engine.Observation) string {
	switch o.Kind {
	case engine.Outline:
		return "products"
	case engine.Content:
		return "product"
	case job.SawFile:
		if o.Value.IsZero() {
			return "missing"
		}
		return "file"
	case job.SawExists:
		if o.Value.IsZero() {
			return "missing"
		}
		return "exists"
	case job.SawGlob:
		return "glob"
	case job.SawAsset:
		return "asset"
	case job.SawTool:
		return "tool"
	case job.SawEnv:
		return "env"
	case job.SawPackers:
		return "packers"
	case job.SawRoots:
		return "roots"
	case job.SawSettings, job.SawNamed:
		return "setting"
	case job.SawAssets, job.SawCatalogue, job.SawListed:
		return "assets"
	case job.SawID:
		return "id"
	}
	return "unknown"
}

// Subject is an observation's subject without the platform.
func Subject(o engine.Observation) string {
	if o.Kind < engine.FirstLeaf || o.Kind == job.SawSettings {
		s := task.ParseSubject(o.Subject)
		if s.Part != "" {
			s.Processor = "" // parts always have it, and it rarely adds information
		}
		return task.Name(task.AssetText(s.Asset), s.Processor, s.Part)
	}
	if o.Kind == job.SawNamed {
		return job.NamedText(o.Subject)
	}
	if o.Kind == job.SawID {
		id, product := job.Numbered(o.Subject)
		return ids.Name{Asset: id, Product: product}.String()
	}
	if o.Kind == job.SawAssets || o.Kind == job.SawCatalogue || o.Kind == job.SawListed {
		_, pattern := job.Meant(o.Subject)
		return pattern
	}
	return o.Subject
}

// Asset is the asset whose products were observed, by id or path; "" for other observations.
func Asset(o engine.Observation) string {
	if o.Kind >= engine.FirstLeaf {
		return ""
	}
	return task.ParseSubject(o.Subject).Asset
}

// Processor is the processor whose products were observed, if it is not the asset's first; else "".
func Processor(o engine.Observation) string {
	if o.Kind >= engine.FirstLeaf {
		return ""
	}
	return task.ParseSubject(o.Subject).Processor
}

// Cache is where the result of a trace came from that another build ran: the cache folder, the cache server, or the
// cache, if it is not known which.
func Cache(t *engine.Trace) string { return strings.TrimSpace("the cache " + t.Origin) }
