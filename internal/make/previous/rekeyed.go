package previous

import (
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/plan"
)

// Rekeyed reports that the last build had a task with another key: something that the key contains has changed since, which is
// nearly always its settings.
func (s *Build) Rekeyed(et *engine.Task) bool {
	t := et.World.(*job.Task)
	if s.Prev == nil || s.Upgrade || t.Request() { // the id of a request contains its settings
		return false
	}
	if a := t.Asset; a.Folder {
		if !s.Prev.Sources.HasFolder(a.Path) {
			return false
		}
	} else if _, _, is := s.Prev.Sources.Find(a.Path); !is { // a new file: no need to search
		return false
	}
	if tasks := plan.TasksOf(s.Prev); t.Part != "" && tasks != nil {
		whole := *t
		whole.Part = ""
		if _, same := tasks.Held(whole.Preimage().Sum()); same {
			return false // a new part of a job with the same settings, such as an image of an atlas: no need to search
		}
	}
	return s.KeyOf(t.Subject(), t.Key) != nil
}

// KeyOf is the key that the last build had for a subject, if it is not this one; else nil.
func (s *Build) KeyOf(subject string, now engine.Key) *engine.Key {
	tasks := plan.TasksOf(s.Prev)
	if tasks == nil {
		return nil
	}
	n, ok := tasks.BySubject(subject)
	if !ok {
		return nil
	}
	if k := engine.Key(tasks.At(n).Key); k != now {
		return &k
	}
	return nil
}
