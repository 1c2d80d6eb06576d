package reapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	repb "github.com/bazelbuild/remote-apis/build/bazel/remote/execution/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/kiln-pipeline/kiln/internal/store/share"
)

// Running commands on the server's workers; the package comment is about caches.

// Input is a file for a command.
type Input struct {
	Blob       share.Blob // its Hash is not used
	Executable bool
	Open       func() (io.ReadCloser, error)
}

// Action is a command that a worker runs in a folder with exactly the inputs.
type Action struct {
	Args       []string
	Inputs     map[string]Input // by path, with forward slashes
	Output     string           // path of the file that is the result
	Folder     string           // path of a folder for further files that it writes
	Properties map[string]string
	Timeout    time.Duration              // of its run, and of all that is sent before and fetched after
	Queue      time.Duration              // that it may wait for a worker
	Stage      func(stage, worker string) // called when it is queued, running (the worker may not be known yet), fetching; may be nil
}

func (a *Action) at(stage, worker string) {
	if a.Stage != nil {
		a.Stage(stage, worker)
	}
}

// Ran is the result of an action.
type Ran struct {
	Output []byte        // content of Action.Output; nil: it was not written
	Code   int           // exit code of the command
	Stderr []byte        // standard error, as far as it is in the server's answer
	Worker string        // the worker that ran it; "" if the server does not say
	Took   time.Duration // on the worker; 0 if the server does not say
	Queued time.Duration // before that
	Cached bool          // it did not run: an equal action did before
	Sent   int64         // bytes that the server lacked
}

// encoded is an action as messages of the API.
type encoded struct {
	digest share.Blob
	inputs map[share.Blob]func() (io.ReadCloser, error) // all blobs that the server needs
}

func messageBlob(m proto.Message) (share.Blob, []byte, error) {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	return share.Blob{SHA256: sha256.Sum256(data), Size: int64(len(data))}, data, err
}

func (e *encoded) add(m proto.Message) (*repb.Digest, error) {
	b, data, err := messageBlob(m)
	e.inputs[b] = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	e.digest = b
	return digestOf(b), err
}

// encode encodes an action.
func (a *Action) encode() (*encoded, error) {
	e := &encoded{inputs: map[share.Blob]func() (io.ReadCloser, error){}}
	platform := &repb.Platform{}
	for _, name := range slices.Sorted(maps.Keys(a.Properties)) {
		platform.Properties = append(platform.Properties, &repb.Platform_Property{Name: name, Value: a.Properties[name]})
	}
	command, err := e.add(&repb.Command{Arguments: a.Args, OutputPaths: slices.Sorted(slices.Values([]string{a.Output, a.Folder}))})
	if err != nil {
		return nil, err
	}
	paths := slices.Sorted(maps.Keys(a.Inputs))
	for _, path := range paths {
		if !fs.ValidPath(path) || path == "." {
			return nil, fmt.Errorf("%q is not a path of an input", path)
		}
		in := a.Inputs[path]
		e.inputs[share.Blob{SHA256: in.Blob.SHA256, Size: in.Blob.Size}] = in.Open
	}
	root, err := e.folder(a, paths, "")
	if err != nil {
		return nil, err
	}
	_, err = e.add(&repb.Action{
		CommandDigest: command, InputRootDigest: root, Platform: platform, Timeout: durationpb.New(a.Timeout),
	})
	return e, err
}

// folder adds a folder with the sorted paths that are below it.
func (e *encoded) folder(a *Action, paths []string, prefix string) (*repb.Digest, error) {
	d := &repb.Directory{}
	for i := 0; i < len(paths); {
		name, _, deeper := strings.Cut(paths[i][len(prefix):], "/")
		if !deeper {
			in := a.Inputs[paths[i]]
			d.Files = append(d.Files, &repb.FileNode{Name: name, Digest: digestOf(in.Blob), IsExecutable: in.Executable})
			i++
			continue
		}
		below := prefix + name + "/"
		n := i
		for n < len(paths) && strings.HasPrefix(paths[n], below) {
			n++
		}
		sub, err := e.folder(a, paths[i:n], below)
		if err != nil {
			return nil, err
		}
		d.Directories = append(d.Directories, &repb.DirectoryNode{Name: name, Digest: sub})
		i = n
	}
	slices.SortFunc(d.Directories, func(x, y *repb.DirectoryNode) int { return strings.Compare(x.Name, y.Name) })
	return e.add(d)
}

// Run has a worker run an action, unless the server has the result of an equal one. If ctx ends first, the operation is
// cancelled. A failure of the command is not an error.
func (c *Client) Run(ctx context.Context, a *Action) (*Ran, error) {
	e, err := a.encode()
	if err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	if ran, err := c.known(bounded, a, e); err == nil {
		return ran, nil
	} else if !share.IsMiss(err) {
		return nil, err
	}
	lost := false // what an equal action made
	sent := int64(0)
	for try := 0; ; try++ {
		bounded, cancel := context.WithTimeout(ctx, a.Timeout)
		defer cancel()
		n, err := c.upload(bounded, e)
		if sent += n; err != nil {
			return nil, err
		}
		r, err := c.execute(ctx, a, e, lost)
		if err == nil {
			var ran *Ran
			if ran, err = c.ran(ctx, a, r.GetResult()); err == nil {
				ran.Cached, ran.Sent = r.GetCachedResult(), sent
				return ran, nil
			}
		}
		// The server lost inputs that it had, or result files of an equal action, or a worker.
		lost = share.IsMiss(err)
		again := lost || slices.Contains([]codes.Code{codes.FailedPrecondition, codes.Unavailable}, status.Code(err))
		if try > 0 || ctx.Err() != nil || !again {
			return nil, err
		}
	}
}

// known asks for the result of an equal action.
func (c *Client) known(ctx context.Context, a *Action, e *encoded) (*Ran, error) {
	call, cancel := c.call(ctx, 0)
	defer cancel()
	r, err := c.ac.GetActionResult(call, &repb.GetActionResultRequest{
		InstanceName: c.instance, ActionDigest: digestOf(e.digest), InlineStderr: true, InlineOutputFiles: []string{a.Output},
		DigestFunction: repb.DigestFunction_SHA256,
	})
	if err != nil {
		return nil, missOf(err)
	}
	ran, err := c.ran(ctx, a, r)
	if err != nil {
		return nil, err
	}
	if ran.Code != 0 || ran.Output == nil {
		return nil, fs.ErrNotExist // the cause may have been the worker
	}
	ran.Cached = true
	return ran, nil
}

// IsNoWorker reports whether a server says of an action that no worker suits it.
func IsNoWorker(err error) bool { return status.Code(err) == codes.FailedPrecondition }

// upload stores what the server lacks of an action, and returns how many bytes that was.
func (c *Client) upload(ctx context.Context, e *encoded) (sent int64, err error) {
	missing, err := c.Missing(ctx, slices.Collect(maps.Keys(e.inputs)))
	if err != nil {
		return 0, err
	}
	done := make(chan error, len(missing))
	slots := make(chan struct{}, batchesAhead)
	for _, b := range missing {
		sent += b.Size
		go func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			done <- c.storeOnce(ctx, b, e.inputs[b])
		}()
	}
	for range missing {
		err = errors.Join(err, <-done)
	}
	return sent, err
}

// storing is a blob under way.
type storing struct {
	ended chan struct{}
	err   error
}

// storeOnce stores a blob, or waits for another action of this client that stores it: the first actions of a build all
// need the same program.
func (c *Client) storeOnce(ctx context.Context, b share.Blob, open func() (io.ReadCloser, error)) error {
	b.Hash = share.Blob{}.Hash
	c.storingMu.Lock()
	s := c.storing[b]
	if s == nil {
		s = &storing{ended: make(chan struct{})}
		if c.storing == nil {
			c.storing = map[share.Blob]*storing{}
		}
		c.storing[b] = s
		c.storingMu.Unlock()
		s.err = c.Store(ctx, b, open)
		c.storingMu.Lock()
		delete(c.storing, b)
		c.storingMu.Unlock()
		close(s.ended)
		return s.err
	}
	c.storingMu.Unlock()
	select {
	case <-s.ended:
		if s.err != nil && ctx.Err() == nil { // only the other action may have been cancelled
			return c.Store(ctx, b, open)
		}
		return s.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// workerName is a worker's name on one line. Buildbarn's are JSON: {"host":"a","thread":"1"} is a/1.
func workerName(name string) string {
	var fields map[string]string
	if json.Unmarshal([]byte(name), &fields) != nil {
		return name
	}
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		parts = append(parts, fields[key])
	}
	return strings.Join(parts, "/")
}

// ran reads what a result says.
func (c *Client) ran(ctx context.Context, a *Action, r *repb.ActionResult) (*Ran, error) {
	ran := &Ran{Code: int(r.GetExitCode()), Stderr: r.GetStderrRaw(), Worker: workerName(r.GetExecutionMetadata().GetWorker())}
	m := r.GetExecutionMetadata()
	if from, to := m.GetExecutionStartTimestamp(), m.GetExecutionCompletedTimestamp(); from.IsValid() && to.IsValid() {
		ran.Took = max(0, to.AsTime().Sub(from.AsTime()))
	}
	if from, to := m.GetQueuedTimestamp(), m.GetWorkerStartTimestamp(); from.IsValid() && to.IsValid() {
		ran.Queued = max(0, to.AsTime().Sub(from.AsTime()))
	}
	for _, f := range r.GetOutputFiles() {
		if f.GetPath() != a.Output {
			continue
		}
		if len(f.GetContents()) > 0 {
			ran.Output = f.GetContents()
			return ran, nil
		}
		var err error
		ran.Output, err = c.valueBlob(ctx, f.GetDigest())
		return ran, err
	}
	return ran, nil
}

// errTooLong ends an operation that was queued or ran for too long.
var errTooLong = status.Error(codes.DeadlineExceeded, "no worker was done in time")

// execute has the server execute an action, and waits for its end: for a.Queue while the server reports that it is
// queued, then for a.Timeout.
func (c *Client) execute(ctx context.Context, a *Action, e *encoded, again bool) (*repb.ExecuteResponse, error) {
	call, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(a.Timeout, func() { cancel(errTooLong) })
	defer timer.Stop()
	stream, err := c.exec.Execute(call, &repb.ExecuteRequest{
		InstanceName: c.instance, ActionDigest: digestOf(e.digest), SkipCacheLookup: again, DigestFunction: repb.DigestFunction_SHA256,
	})
	if err != nil {
		return nil, err
	}
	name, stage := "", repb.ExecutionStage_UNKNOWN
	for {
		op, err := stream.Recv()
		switch {
		case err != nil && call.Err() != nil:
			if name != "" {
				c.cancelOperation(name)
			}
			return nil, context.Cause(call)
		case errors.Is(err, io.EOF):
			return nil, status.Error(codes.Unavailable, "the server ended the operation without a result")
		case err != nil:
			return nil, err
		}
		name = op.GetName()
		if op.GetDone() {
			a.at("fetching", "")
			return responseOf(op)
		}
		m := &repb.ExecuteOperationMetadata{}
		if op.GetMetadata().UnmarshalTo(m) != nil || m.GetStage() == stage {
			continue
		}
		switch stage = m.GetStage(); stage {
		case repb.ExecutionStage_QUEUED:
			timer.Reset(a.Queue)
			a.at("queued", "")
		case repb.ExecutionStage_EXECUTING:
			timer.Reset(a.Timeout)
			a.at("running", workerName(m.GetPartialExecutionMetadata().GetWorker()))
		}
	}
}

// responseOf returns the result of a finished operation.
func responseOf(op *longrunningpb.Operation) (*repb.ExecuteResponse, error) {
	if s := op.GetError(); s != nil {
		return nil, status.Error(codes.Code(s.GetCode()), s.GetMessage())
	}
	r := &repb.ExecuteResponse{}
	if err := op.GetResponse().UnmarshalTo(r); err != nil {
		return nil, err
	}
	if s := r.GetStatus(); codes.Code(s.GetCode()) != codes.OK {
		return nil, status.Error(codes.Code(s.GetCode()), s.GetMessage())
	}
	return r, nil
}

// cancelTimeout is the timeout of a request to cancel an operation.
const cancelTimeout = 2 * time.Second

// cancelOperation asks the server to cancel an operation. Not all servers support that.
func (c *Client) cancelOperation(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), cancelTimeout)
	defer cancel()
	c.ops.CancelOperation(ctx, &longrunningpb.CancelOperationRequest{Name: name})
}

// apiVersion is the version of the Remote Execution API that Kiln speaks.
const apiVersion = 2

// Executes asks a server whether it executes actions. The error is the reason why not.
func (c *Client) Executes(ctx context.Context) error {
	ctx, cancel := c.call(ctx, 0)
	defer cancel()
	caps, err := c.caps.GetCapabilities(ctx, &repb.GetCapabilitiesRequest{InstanceName: c.instance})
	if err != nil {
		return err
	}
	x := caps.GetExecutionCapabilities()
	high := caps.GetHighApiVersion()
	switch {
	case high != nil && high.GetMajor() < apiVersion:
		return fmt.Errorf("the server speaks version %d.%d of the Remote Execution API, and Kiln version %d",
			high.GetMajor(), high.GetMinor(), apiVersion)
	case !x.GetExecEnabled():
		return errors.New("the server does not execute actions: it is a cache alone")
	case len(x.GetDigestFunctions()) > 0 && !slices.Contains(x.GetDigestFunctions(), repb.DigestFunction_SHA256),
		len(x.GetDigestFunctions()) == 0 && x.GetDigestFunction() != repb.DigestFunction_SHA256 &&
			x.GetDigestFunction() != repb.DigestFunction_UNKNOWN:
		return errors.New("the server does not execute actions whose digests are SHA-256")
	}
	return nil
}
