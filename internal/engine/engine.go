// Package engine brings tasks up to date. It is a suspending scheduler over verifying
// and constructive traces ("Build systems à la carte", Mokhov, Mitchell, Peyton Jones
// 2018), with early cutoff at the grain of a single product. It knows keys, observations and
// products; what a subject means it asks its [World].
//
// A build has two parts. The sweep visits the wanted tasks and, depth first, those
// that their traces name, on one goroutine and without any I/O of its own; most tasks
// end there, because a trace holds. Only the rest gets goroutines, as worker slots come free.
//
// Rules that make it right:
//
//   - Observations of a trace are compared in the order they were made, up to the first that
//     differs and is not harmless: a later one may have been made only because of an earlier one. For the same reason a
//     task that a holding prefix asks for would be asked for again by a run, so bringing
//     it up to date during the check is never wasted work.
//   - A task is done once in a build, however many ask for it.
//   - Who waits for whom is kept in node.waits, for checks and runs alike. Whenever a node begins to wait for another
//     one, it is looked at whether that closes a ring; so no build ever hangs on a cycle. Which rings there are depends on
//     what the tasks ask for, not on who was first: see build.ring.
//   - A run that was refused an answer because the build is over leaves no trace, whatever it made of that.
//
// Lock order: build.mu, then whatever World locks inside; Run.mu is never held while build.mu is taken.
package engine

import (
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

// Key is what is asked for: a hash over everything that is fixed before a task runs.
type Key digest.Hash

func (k Key) String() string { return digest.Hash(k).String() }

// Kind of an observation. Two kinds are the engine's own; those from FirstLeaf on are the World's.
type Kind uint8

const (
	// Outline is which products another task has: names, types, files, not contents.
	Outline Kind = 1
	// Content is what one product of another task is: its bytes, and its references and facts if it has any.
	Content Kind = 2
	// FirstLeaf begins the World's kinds.
	FirstLeaf Kind = 16
)

// Observation is one thing that a run looked at, and the hash of what it saw. A zero
// Value says that it was not there.
type Observation struct {
	Kind    Kind
	Joined  bool   // asked for together with the observation before it
	SubID   uint32 // of the product, for Content
	Subject string // in the World's words; for Outline and Content what Resolve understands
	Value   digest.Hash
}

// Outcome of a run.
type Outcome uint8

const (
	Succeeded   Outcome = 1 // its products are in the trace
	Failed      Outcome = 2 // by itself
	NeedsFailed Outcome = 3 // something it needs failed; Trace.Root names the first cause
	Cyclic      Outcome = 4 // it needs itself; Trace.Ring names the ring
)

// Reference says that at run time a product needs another one.
type Reference struct {
	UUID     [16]byte
	SubID    uint32
	Required bool
}

// Product is one output of a task.
type Product struct {
	SubID      uint32
	Name       string
	Type       string
	File       string // below the output folder, with the platform; "" if it has no file there
	Extension  string // of one without a file that another task may give one; "" else
	Hash       digest.Hash
	Size       int64 // bytes
	References []Reference
	Facts      string // what is known of it, opaque here; nothing depends on it
}

// Trace is what one run observed, in order, and what came of it. Traces are not changed once stored.
type Trace struct {
	ID           uint64 // given by the store; tells traces of a key apart
	Fingerprint  digest.Hash
	Observations []Observation
	Products     []Product
	Messages     []byte   // what the run had to tell people, opaque here
	Root         string   // NeedsFailed: the name of the task that failed first
	Ring         []string // Cyclic: names, beginning with the smallest
	Why          *Reason  // why it ran; never nil in a trace that is kept
	Seconds      float64  // of the run, without what it waited for other tasks
	Memory       int64    // peak, bytes; 0 if not measured
	Build        uint64   // number of the build in which it ran
	Worker       string   // name of the other machine on which it ran; "" if it ran on this one
	Outcome      Outcome
	Shareable    bool // Succeeded, and the run did not ask for what tells twins apart: see World.Twins
	Adopted      bool // another build ran it, and this one took its result; Seconds and Memory are that one's
}

// Task is something that can be asked for.
type Task struct {
	Key  Key
	Name string // for people, and to order what must be ordered
	*Work
	World any // what the World knows it by
}

// Work is what tasks have in common that are done in the same way, and share: of a million tasks, 100 MB.
type Work struct {
	Fingerprint digest.Hash
	Memory      int64   // bytes expected, as long as no trace knows better
	Estimate    float64 // seconds expected, as long as no trace knows better
	Outside     bool    // another process does the work
	Folder      string  // what the files of its products begin with; other tasks do not see it
	Run         func(*Run) (Output, error)
}

// hash is the key as what indexes take.
func (t *Task) hash() *digest.Hash { return (*digest.Hash)(&t.Key) }

// Output is what a run hands back. Products are in the order that Outline shows them in.
type Output struct {
	Products []Product
	Messages []byte
	Memory   int64

	Shareable bool    // as in Trace
	Remote    *Remote // of a run on another machine; it knows better than the engine how long that took
}

// Cause of a run.
type Cause uint8

const (
	NeverBuilt      Cause = 1
	CodeChanged     Cause = 2 // the fingerprint differs
	InputDiffers    Cause = 3 // Observation differs; Value is now New
	ProductLost     Cause = 4 // Subject names the product
	Forced          Cause = 5
	NeedsUndecided  Cause = 6 // only in a dry run: depends on what Observation.Subject comes to
	InputUnreadable Cause = 7
)

// Reason says why a task ran: the first difference to its newest trace.
type Reason struct {
	Cause       Cause
	Observation Observation // InputDiffers, NeedsUndecided, InputUnreadable: as it was
	New         digest.Hash // InputDiffers: as it is now
	Subject     string      // ProductLost: which; else whose run the trace is of, as Translate has it, "" for the task's own
}

// Reasons that say nothing else: nearly all, and shared.
var (
	neverBuilt  = &Reason{Cause: NeverBuilt}
	codeChanged = &Reason{Cause: CodeChanged}
	forced      = &Reason{Cause: Forced}
)

// Store keeps traces. Its methods are called by one goroutine at a time, but for Add.
type Store interface {
	// Traces of a key, the one used last first.
	Traces(Key) []*Trace
	// Add keeps a new trace. It is on disk, as far as a killed process is concerned,
	// when Add returns.
	Add(Key, *Trace) error
	// Use says that a trace which is not the first of its key holds again.
	Use(Key, *Trace)
}

// World answers what the engine does not know.
type World interface {
	// Observe tells the hash of a leaf observation as things are now.
	Observe(kind Kind, subject string) (digest.Hash, error)
	// Resolve finds the task that an Outline or Content subject means; nil if there is none.
	Resolve(subject string) *Task
	// Twins are the tasks that differ from one only by what a run can ask for, this one included, in a fixed order; nil if it has none. What a
	// task needs has its twins in the same order, or none.
	Twins(*Task) []*Task
	// Translate makes a trace of one task that of its twin, with the name of the first in Why.Subject; nil if it cannot be one.
	Translate(t *Trace, from, to *Task) *Trace
	// Available reports whether the products of a trace can be had; if not, which one is lost.
	Available(*Trace) (lost string, ok bool)
	// Planned is told, after the sweep, how many tasks are known to run, or to run if something else comes
	// out differently.
	Planned(tasks int)
	// Started and Finished are called without locks around each run, from its goroutine. Finished alone is called for a result that is
	// adopted.
	Started(*Task)
	Finished(*Result)
	// Suspended is called, without locks, when a run begins (true) or ends (false) to wait for another task. It begins before
	// the slot is free for others.
	Suspended(t *Task, on []*Task, begins bool)
}

// Options of a build.
type Options struct {
	Workers  int              // slots; at least 1
	Extra    int              // slots more at most, one for each task that runs Outside
	Hurry    int              // slots more at most, for tasks that somebody waits for
	Memory   int64            // bytes that running tasks may need together; 0 sets no limit
	Force    func(*Task) bool // which tasks run although their traces hold; nil: none
	FailFast bool             // start nothing more after the first failure
	DryRun   bool             // sweep only, run nothing
	Build    uint64
	Control  *Control                  // of who wants to reach in; may be nil
	First    func(*Task, *Reason) bool // which of the tasks that are known to run after the sweep go before the others; may be nil
	NoRuns   bool                      // results of other builds are adopted, and nothing runs
	Shared   Elsewhere                 // where results of other builds can be had; may be nil
	Away     Away                      // other machines that run tasks; may be nil
	Holds    func(*Task, *Trace) bool  // which traces are known to hold: neither what they observed is looked at nor whether their products are there; may be nil

	// Harmless reports that a difference of this observation alone does not make its task run: see Result.Ignored. Nil: all do.
	Harmless func(*Task, *Observation) bool
}

// State of a task after a build.
type State uint8

const (
	Held      State = 1 // a trace holds
	Ran       State = 2
	WouldRun  State = 3 // dry run
	Undecided State = 4 // dry run: depends on a task that would run
	Stopped   State = 5 // cancelled, or not started for that reason
	Shared    State = 6 // the run of a twin does for it; the trace is new
	Adopted   State = 7 // another build had its result
)

// Result of one task in a build. Trace is nil for WouldRun, Undecided and Stopped.
type Result struct {
	Task    *Task
	State   State
	Trace   *Trace
	Why     *Reason // Ran, WouldRun, Undecided; else nil
	Started time.Time
	Remote  *Remote // Ran: on another machine; else nil

	// Ignored are the observations of a trace that holds although they differ, because they are harmless; none if it holds without that.
	Ignored []Reason
}
