package wasm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/kiln-pipeline/kiln/processor"
)

// maxCommand is the maximum description of a program, and maxGiven the maximum input for it, in bytes.
const (
	maxCommand = 1 << 20
	maxGiven   = 256 << 20
)

// command is processor.Command as a guest writes it, in JSON. Standard input and the files follow each other in its
// memory.
type command struct {
	Args    []string    `json:"args"`
	Tools   []string    `json:"tools"`
	Inputs  []string    `json:"inputs"`
	Traced  bool        `json:"traced"`
	Env     []string    `json:"env"`
	Codes   []int       `json:"codes"`
	Timeout float64     `json:"timeout"` // in seconds
	Network bool        `json:"network"`
	Stdin   int64       `json:"stdin"` // number of bytes
	Files   []givenFile `json:"files"`
}

type givenFile struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

// hostRun takes a command as JSON, and the bytes of its standard input and its files. It returns a list: the program's
// exit code, the handles of standard output and standard error, and for each file its path and its handle.
func (r *run) hostRun(s []uint64) {
	c := r.command(r.view(s[0], s[1], maxCommand), r.view(s[2], s[3], maxGiven))
	resume := r.pause()
	made, err := r.job.Run(r.ctx, c)
	resume()
	if err != nil {
		result(s, r.failed(err))
		return
	}
	text := fmt.Appendf(nil, "%d\x00%d\x00%d\x00", made.Code, r.open(&object{text: made.Stdout}), r.open(&object{text: made.Stderr}))
	for _, path := range slices.Sorted(maps.Keys(made.Files)) {
		text = fmt.Appendf(text, "%s\x00%d\x00", path, r.open(&object{text: made.Files[path]}))
	}
	result(s, r.open(&object{text: text}))
}

// command decodes a guest's description of a program.
func (r *run) command(text, data []byte) processor.Command {
	var c command
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		r.abuse("got a command that is not as it should be: %v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		r.abuse("got a command that more follows")
	}
	if !(c.Timeout >= 0 && c.Timeout <= 24*60*60) {
		r.abuse("got a timeout of %v seconds; it has at most a day", c.Timeout)
	}
	next := func(n int64) []byte {
		if n < 0 || n > int64(len(data)) {
			r.abuse("got a command with %d bytes of files or standard input, of which %d follow", n, len(data))
		}
		part := bytes.Clone(data[:n])
		data = data[n:]
		return part
	}
	p := processor.Command{
		Args: c.Args, Tools: c.Tools, Inputs: c.Inputs, Traced: c.Traced, Env: c.Env, Codes: c.Codes, Network: c.Network,
		Timeout: time.Duration(math.Round(c.Timeout*1000)) * time.Millisecond, Stdin: next(c.Stdin), Files: map[string][]byte{},
	}
	for _, f := range c.Files {
		p.Files[f.Path] = next(f.Size)
	}
	if len(data) > 0 {
		r.abuse("got %d bytes more than the command's files and standard input have", len(data))
	}
	return p
}
