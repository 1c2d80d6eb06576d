// Package written encodes a job so that a kiln on another machine can run it, and the log of that run.
//
// A [Job] contains everything that a processor can learn from its processor.Job: what is fixed before it runs, and
// answers to questions that it may ask. A run ends with a [Log] of what the processor asked and made, in order. The log
// is a pure function of the job: it contains no clock, path, user or host. If the processor asked something to which
// the job has no answer, the log says so, the run has no result, and the caller adds the answer and runs the job again.
//
// docs/formats/execution.md describes both formats.
package written

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/varint"
	"github.com/kiln-pipeline/kiln/processor"
)

// Names in the folder of a run.
const (
	JobFile   = "job"    // a Job
	LogFile   = "result" // a Log
	InFolder  = "in"     // contents of source files and products, each by its SHA-256
	OutFolder = "out"    // contents of products, each by its SHA-256
	Code      = "code"   // the files of a script or module, and programs, by their paths below the project folder
)

// Command is the hidden command that runs a job.
const Command = "run-job"

// Content is the bytes of a file.
type Content struct {
	SHA256 [sha256.Size]byte
	Size   int64
}

// Name is its file name in InFolder and OutFolder.
func (c Content) Name() string { return fmt.Sprintf("%x", c.SHA256) }

// Job is an encoded job.
type Job struct {
	Version   string      // of the kiln that wants it
	Kiln      digest.Hash // the code of the kiln that should run it
	Processor string
	Own       *Own // the processor's declaration, if the project declares it; nil: it is compiled in
	Part      string
	Platform  string
	Asset     processor.Asset
	Settings  string   // canonical text
	Inputs    []string // globs of source files on which it depends by hand
	Project   *Folders // where programs find the project if they are traced; nil: such a program has to run at the client
	Answers   map[string]Answer
}

// Own is the part of a processor's declaration in the project file that decides what its jobs make.
type Own struct {
	Script, Wasm string // path of its file, below Code; one of them is given, or Program
	Program      *Program
	Folder       bool
	Version      int
	Extensions   []string
	Timeout      time.Duration
	Memory       int64
}

// Program is what it says of an external program.
type Program struct {
	Args, Env []string
	Output    string
	Outputs   []Named // extensions of further products
	Network   bool
	Settings  []Named // Go types of the settings
	Traced    bool    // what it reads is traced; else it sees the inputs of its job, and nothing else
}

// Above is how many folders are above the project folder that a worker makes. So a path that leads out of it does not lead to something of
// the worker; it is asked for by a path that begins with "../", from the project folder.
const Above = 24

// Folders are where a traced program finds the project: the worker makes a project folder like the client's, with only what the answers
// have. All are paths below that folder, with forward slashes; what is elsewhere at the client is named by its absolute path.
type Folders struct {
	Roots                 []string // source roots; a later one overlays an earlier one
	Scratch               string   // where scratch folders are, so that relative paths out of one are the same
	Built, State, Shipped []string // as command.Kiln
}

// Named is a text with a name.
type Named struct{ Name, Text string }

// Kind of a call of a processor.Job's method.
type Kind uint8

// Kinds of calls. Up to ID they are questions, each with an answer that the job holds; the others have an effect alone.
const (
	Open      Kind = iota + 1 // Names: a path. Content; Names: where it is below the project folder, for a program that is traced
	Source                    // Content
	Exists                    // Names: a path. Yes; Content and Names as for Open, for a program that is traced
	Glob                      // Names: a pattern. Names
	Find                      // Names: an asset. Asset
	Reference                 // Names: an asset and a product; Yes: it is required. The answer is that of Find
	Env                       // Names: a variable. Names: the value; none if it is not set
	Products                  // Names: assets. Products
	Parts                     // Names: parts. Products
	ToPack                    // Products, in one list
	Request                   // Requests. Products
	Read                      // Product. Content
	Settings                  // Names: an asset and a processor. Names: canonical settings and given ones, as JSON; none if there are none
	Assets                    // Names: a pattern. Names: the list of processor.Listed, as JSON
	Try                       // Names: asset, platform and processor of a processor.Ask. Yes, and Products in one list
	Tool                      // Names: a program, or a file by its path. Names: where it is, its hash, more of a Folder; Content, if of the project
	Needed                    // Products on which the job depends by hand, in one list
	ID                        // Names: a product of the asset. Names: its resource id; none if it has none
	Platform
	Adopt  // Product, Output
	Create // Output, Content
	Warn   // Problem
	Memory // Number: bytes
	Roots  // it looked where the source roots are

	kinds
)

// IsQuestion reports whether calls of a kind have answers.
func (k Kind) IsQuestion() bool { return k >= Open && k <= ID }

// Call is a call of a method.
type Call struct {
	Kind     Kind
	Names    []string
	Yes      bool
	Product  *processor.Product
	Requests []Asked
	Output   *processor.Output
	Content  Content
	Problem  *processor.Problem
	Number   int64
}

// Asked is a processor.Request.
type Asked struct {
	Processor, Name string
	Settings        string // JSON, "" for none
	Path            string
	Product         *processor.Product
	Bytes           *Content // in OutFolder
	Extension       string
}

// Key identifies a question in Job.Answers.
func (c *Call) Key() string {
	e := &encoder{}
	e.call(c)
	return string(e.Buf)
}

// Question returns the call with a key.
func Question(key string) (Call, error) {
	d := &decoder{varint.Decoder{Buf: []byte(key)}}
	c := d.call()
	return c, d.close()
}

// Folder follows the hash in the answer to [Tool] if that is a folder of the project. If it is about the names in it, they follow,
// each after the first letter of its fs.FileMode: "-" or "d".
const Folder = "folder"

// Executable follows in the answers to [Open] and [Exists] where a file is, and in that to [Tool] the hash of a file of the project, if the
// file may be executed.
const Executable = "executable"

// Answer answers a question. Which fields are set depends on the kind.
type Answer struct {
	Missing  string // the text of an fs.ErrNotExist; "": there is an answer
	Content  Content
	Yes      bool
	Names    []string
	Asset    processor.Asset
	Products [][]processor.Product
}

// Outcome of a run.
type Outcome uint8

const (
	Done  Outcome = 1 // the processor succeeded, with all answers
	Needs Outcome = 2 // it asked something to which the job has no answer
	Local Outcome = 3 // it failed, or asked for something that only the client has: the job has to run there
	Other Outcome = 4 // it did not run: the job is for another kiln. Reason: this one's version
)

// Log is the result of a run.
type Log struct {
	Outcome Outcome
	Reason  string // Local: the reason; Other: the version of the kiln that was to run it
	Calls   []Call
}

// Limits of what is decoded, in bytes.
const maxFile = 256 << 20

// ErrFormat means that bytes are not a job, or not a log.
var ErrFormat = errors.New("written: not a job, or not the result of one")

// ErrOther means that bytes are a job, or a log, of a kiln that writes these in another way.
var ErrOther = errors.New("written: by another version of Kiln")
