// Package engine brings tasks up to date. It is a suspending scheduler over verifying and constructive traces ("Build
// systems à la carte", Mokhov, Mitchell, Peyton Jones 2018), with early cutoff for each single product. It knows keys,
// observations and products; it asks its [World] what a subject means.
//
// A build has two parts. The sweep visits the requested tasks and, depth first, the tasks that their traces name, on
// one goroutine and without any I/O of its own. Most tasks end there, because a trace holds. Only the others get
// goroutines, when worker slots are free.
//
// Rules that make it right:
//
//   - Observations of a trace are compared in the order they were made, up to the first that
//     differs and is not harmless: a later one may have been made only because of an earlier one. For the same reason a
//     task that a holding prefix asks for would be asked for again by a run, so bringing
//     it up to date during the check is never wasted work.
//   - A task is done once in a build, however many ask for it.
//   - Who waits for whom is kept in node.waits, for checks and runs alike. Whenever a node begins to wait for another
//     one, the build checks whether that closes a cycle; so no build ever hangs on a cycle. Which cycles there are depends on
//     what the tasks ask for, not on who was first: see build.cycleOf.
//   - A run that was refused an answer because the build is over leaves no trace, whatever it made of that.
//
// Lock order: build.mu, then whatever World locks inside; Run.mu is never held while build.mu is taken.
package engine

import (
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

// Key identifies a task: a hash over everything that is fixed before it runs.
type Key digest.Hash

func (k Key) String() string { return digest.Hash(k).String() }

// Kind of an observation. Two kinds are the engine's own; those from FirstLeaf on are the World's.
type Kind uint8

const (
	// Outline is the list of another task's products: names, types, files, not contents.
	Outline Kind = 1
	// Content is one product of another task: its bytes, and its references and facts if it has any.
	Content Kind = 2
	// FirstLeaf begins the World's kinds.
	FirstLeaf Kind = 16
)

// Observation is one thing that a run looked at, and the hash of what it saw. A zero Value means
// that it was not there.
type Observation struct {
	Kind    Kind
	Joined  bool   // asked for together with the observation before it
	SubID   uint32 // for Content: of the product
	Subject string // defined by the World; for Outline and Content it is what Resolve takes
	Value   digest.Hash
}

// Outcome of a run.
type Outcome uint8

const (
	Succeeded   Outcome = 1 // its products are in the trace
	Failed      Outcome = 2 // because of itself
	NeedsFailed Outcome = 3 // something it needs failed; Trace.Root is the name of the task that failed first
	Cyclic      Outcome = 4 // it needs itself; Trace.Cycle has the names of the cycle
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
	Extension  string // if it has no file: that of the file that another task may write for it
	Hash       digest.Hash
	Size       int64 // bytes
	References []Reference
	Facts      string // facts about it, opaque here; nothing depends on them
}

// Trace is what one run observed, in order, and its result. Traces are not changed once stored.
type Trace struct {
	ID           uint64 // set by the store; distinguishes traces of a key
	Fingerprint  digest.Hash
	Observations []Observation
	Products     []Product
	Messages     []byte   // messages of the run for users, opaque here
	Root         string   // NeedsFailed: the name of the task that failed first
	Cycle        []string // Cyclic: the names of the cycle, beginning with the smallest
	Why          *Reason  // why it ran; never nil in a stored trace
	Seconds      float64  // duration of the run without waits for other tasks
	Memory       int64    // peak, bytes; 0 if not measured
	Build        uint64   // number of the build in which it ran
	Worker       string   // name of the other machine on which it ran; "" if it ran on this one
	Outcome      Outcome
	Shareable    bool // Succeeded, and the run did not ask for what tells twins apart: see World.Twins
	Adopted      bool // another build ran it, and this one took its result; Seconds and Memory are that one's

	Origin string // of an adopted result: where it was found, as Elsewhere names it; "" if that is not known
}

// Task is a unit of work that can be asked for.
type Task struct {
	Key  Key
	Name string // for people, and to order what must be ordered
	*Work
	World any // what the World knows it by
}

// Work is what tasks have in common that are done in the same way, and share: of a million tasks, 100 MB.
type Work struct {
	Fingerprint digest.Hash
	Memory      int64   // expected bytes, if no trace has a measured value
	Estimate    float64 // expected seconds, if no trace has a measured value
	Outside     bool    // another process does the work
	Folder      string  // common beginning of the files of its products; other tasks do not see it
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
	InputDiffers    Cause = 3 // Observation has another value: New
	ProductLost     Cause = 4 // Subject names the product
	Forced          Cause = 5
	NeedsUndecided  Cause = 6 // only in a dry run: depends on the result of Observation.Subject, or see Options.Unsure
	InputUnreadable Cause = 7
	SettingsChanged Cause = 8 // it ran with another key: see Options.Rekeyed
)

// Reason is why a task ran: the first difference to its newest trace.
type Reason struct {
	Cause       Cause
	Observation Observation // InputDiffers, NeedsUndecided, InputUnreadable: the recorded one
	New         digest.Hash // InputDiffers: the current value
	Subject     string      // ProductLost: which product; else the task whose run made the trace (set by Translate), "" for the task itself
}

// Reasons without details: nearly all of them, and shared.
var (
	neverBuilt  = &Reason{Cause: NeverBuilt}
	codeChanged = &Reason{Cause: CodeChanged}
	forced      = &Reason{Cause: Forced}
	rekeyed     = &Reason{Cause: SettingsChanged}
)

// Store keeps traces. Its methods except Add are called by one goroutine at a time.
type Store interface {
	// Traces returns the traces of a key, the one used last first.
	Traces(Key) []*Trace
	// Add stores a new trace. When Add returns, the trace survives a kill of the process.
	Add(Key, *Trace) error
	// Use records that a trace which is not the first of its key holds again.
	Use(Key, *Trace)
}

// World answers what the engine does not know.
type World interface {
	// Observe returns the current hash for a leaf observation.
	Observe(kind Kind, subject string) (digest.Hash, error)
	// Resolve returns the task that an Outline or Content subject means, or nil.
	Resolve(subject string) *Task
	// Twins returns the tasks that differ from a task only by something that a run can ask for (its platform),
	// including the task itself, in a fixed order; nil if there are none. The tasks that it needs have their twins in
	// the same order, or none.
	Twins(*Task) []*Task
	// Translate turns a trace of one task into a trace of its twin, with the name of the first task in Why.Subject. It
	// returns nil if that is impossible.
	Translate(t *Trace, from, to *Task) *Trace
	// Available reports whether the products of a trace can be read; if not, lost is the missing
	// one.
	Available(*Trace) (lost string, ok bool)
	// Planned is called after the sweep with the number of tasks that will run, or will run if something
	// else changes.
	Planned(tasks int)
	// Started and Finished are called without locks around each run, from its goroutine. For an adopted result only
	// Finished is called.
	Started(*Task)
	Finished(*Result)
	// Suspended is called without locks when a run begins (true) or stops (false) waiting for another task. The first
	// call comes before the slot is free for others.
	Suspended(t *Task, on []*Task, begins bool)
}

// Options of a build.
type Options struct {
	Workers  int              // slots; at least 1
	Extra    int              // additional slots, one for each task that runs Outside, at most this many
	Hurry    int              // additional slots for tasks that somebody waits for, at most this many
	Memory   int64            // bytes that running tasks may need together; 0 sets no limit
	Force    func(*Task) bool // which tasks run although their traces hold; nil: none
	FailFast bool             // start nothing more after the first failure
	DryRun   bool             // sweep only, run nothing
	Build    uint64
	Control  *Control                  // influences the build; may be nil
	First    func(*Task, *Reason) bool // which tasks of those that will run go first; called after the sweep; may be nil
	NoRuns   bool                      // adopt results of other builds, run nothing
	Shared   Elsewhere                 // finds results of other builds; may be nil
	Away     Away                      // other machines that run tasks; may be nil
	Holds    func(*Task, *Trace) bool  // which traces are known to hold: neither what they observed is looked at nor whether their products are there; may be nil

	// Rekeyed reports that a task without a trace was done with another key before. Nil: none was.
	Rekeyed func(*Task) bool

	// Unsure reports, in a dry run, that what a leaf observation has may be another after tasks that would run: its task is undecided. Nil:
	// none is.
	Unsure func(*Observation) bool

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
	Shared    State = 6 // a twin's run gave the result; the trace is new
	Adopted   State = 7 // another build gave the result
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
