package reapitest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	repb "github.com/bazelbuild/remote-apis/build/bazel/remote/execution/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Farm is a server that also executes actions: with workers that run the command of an action as a process, in a folder with the inputs
// and nothing else. Workers can be killed, and the server restarted.
type Farm struct {
	*Server
	Lacks map[string]string // properties that no worker has
	Env   []string          // of commands

	dir      string
	listener net.Listener
	number   atomic.Int64
	ran      atomic.Int64 // actions
	starts   atomic.Int64
	cpu      atomic.Int64 // nanoseconds
	started  atomic.Pointer[func(int64) bool]
	mute     atomic.Bool // an operation whose worker was killed never ends
	queue    chan *operation
	quit     chan struct{}
	done     sync.WaitGroup

	mu      sync.Mutex
	ops     map[string]*operation
	running map[int]*operation // by worker

	repb.UnimplementedExecutionServer
	longrunningpb.UnimplementedOperationsServer
}

// operation is an action that is wanted.
type operation struct {
	name   string
	action *repb.Action
	key    string
	ctx    context.Context
	cancel context.CancelCauseFunc
	queued *timestamppb.Timestamp
	worker string        // once a worker has it
	begun  chan struct{} // closed then
	ended  chan struct{}
	result *repb.ActionResult // once it ended
	err    error
}

var (
	errKilled    = status.Error(codes.Unavailable, "the worker was lost")
	errCancelled = status.Error(codes.Canceled, "the operation was cancelled")
	errRestarted = status.Error(codes.Unavailable, "the scheduler was restarted")
)

// StartFarm starts a server with workers. What they work in is below dir.
func StartFarm(dir string, workers int) (*Farm, error) {
	f := &Farm{
		dir: dir, queue: make(chan *operation, 1<<16), quit: make(chan struct{}), ops: map[string]*operation{}, running: map[int]*operation{},
	}
	f.Server = newServer("")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f.listen(l)
	for i := range workers {
		f.done.Go(func() { f.work(i) })
	}
	return f, nil
}

func (f *Farm) listen(l net.Listener) {
	f.listener = l
	f.serve(l, func(s *grpc.Server) {
		repb.RegisterCapabilitiesServer(s, f)
		repb.RegisterExecutionServer(s, f)
		longrunningpb.RegisterOperationsServer(s, f)
	})
}

// again returns a second listener for the socket of one, so that no other program gets its address when the first is closed.
func again(l net.Listener) (net.Listener, error) {
	file, err := l.(*net.TCPListener).File()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return net.FileListener(file)
}

// Restart ends the server, with all operations, and starts it again at the same address. What it stores stays.
func (f *Farm) Restart() error {
	l, unsupported := again(f.listener)
	f.Server.Stop()
	f.mu.Lock()
	for _, op := range f.ops {
		op.cancel(errRestarted)
	}
	f.mu.Unlock()
	if unsupported != nil { // on Windows
		var err error
		if l, err = net.Listen("tcp", strings.TrimPrefix(f.Address, "grpc://")); err != nil {
			return err
		}
	}
	f.listen(l)
	return nil
}

// Stop ends the server and its workers.
func (f *Farm) Stop() {
	f.Server.Stop()
	f.mu.Lock()
	for _, op := range f.ops {
		op.cancel(errRestarted)
	}
	f.mu.Unlock()
	close(f.quit)
	f.done.Wait()
}

// Ran is how many actions workers ran to their end.
func (f *Farm) Ran() int64 { return f.ran.Load() }

// CPU is the processor time of all these.
func (f *Farm) CPU() time.Duration { return time.Duration(f.cpu.Load()) }

// Mute has operations whose worker is killed from now on never end, as if nobody noticed.
func (f *Farm) Mute(on bool) { f.mute.Store(on) }

// Started has f called when the process of an action has started, with how many started so far. If it returns true, the worker is killed,
// with the process; another one takes its place.
func (f *Farm) Started(call func(n int64) (kill bool)) { f.started.Store(&call) }

// Operations is how many operations there are that did not end.
func (f *Farm) Operations() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.ops)
}

// GetCapabilities says that actions are executed.
func (f *Farm) GetCapabilities(ctx context.Context, req *repb.GetCapabilitiesRequest) (*repb.ServerCapabilities, error) {
	c, err := f.Server.GetCapabilities(ctx, req)
	if err == nil && !f.lies(WrongCapabilities) {
		c.ExecutionCapabilities = &repb.ExecutionCapabilities{ExecEnabled: true, DigestFunction: repb.DigestFunction_SHA256}
	}
	return c, err
}

// Execute runs an action.
func (f *Farm) Execute(req *repb.ExecuteRequest, to repb.Execution_ExecuteServer) error {
	action := &repb.Action{}
	if err := f.message(req.GetActionDigest(), action); err != nil {
		return err
	}
	if err := f.suits(action); err != nil {
		return err
	}
	op := &operation{
		name: fmt.Sprint("operation-", f.number.Add(1)), action: action, key: req.GetActionDigest().GetHash(),
		begun: make(chan struct{}), ended: make(chan struct{}), queued: timestamppb.Now(),
	}
	op.ctx, op.cancel = context.WithCancelCause(context.Background())
	f.mu.Lock()
	f.ops[op.name] = op
	f.mu.Unlock()
	f.queue <- op
	if err := to.Send(op.at(repb.ExecutionStage_QUEUED)); err != nil {
		return err
	}
	for waiting, begun := true, op.begun; waiting; {
		select {
		case <-begun:
			if err := to.Send(op.at(repb.ExecutionStage_EXECUTING)); err != nil {
				return err
			}
			begun = nil
		case <-op.ended:
			waiting = false
		case <-to.Context().Done():
			return to.Context().Err() // it goes on without whoever asked, unless it is cancelled
		}
	}
	response := &repb.ExecuteResponse{Result: op.result, Status: status.Convert(op.err).Proto()}
	packed, err := anypb.New(response)
	if err != nil {
		return err
	}
	return to.Send(&longrunningpb.Operation{Name: op.name, Done: true, Result: &longrunningpb.Operation_Response{Response: packed}})
}

// at is what is sent of an operation that is not done.
func (op *operation) at(stage repb.ExecutionStage_Value) *longrunningpb.Operation {
	x := &repb.ExecuteOperationMetadata{Stage: stage}
	if stage == repb.ExecutionStage_EXECUTING {
		x.PartialExecutionMetadata = &repb.ExecutedActionMetadata{Worker: op.worker}
	}
	m, err := anypb.New(x)
	if err != nil {
		panic(err) // of the message alone
	}
	return &longrunningpb.Operation{Name: op.name, Metadata: m}
}

// suits refuses an action for which there is no worker.
func (f *Farm) suits(a *repb.Action) error {
	for _, p := range a.GetPlatform().GetProperties() {
		if value, ok := f.Lacks[p.GetName()]; ok && value == p.GetValue() {
			return status.Errorf(codes.FailedPrecondition, "there is no worker with %s = %q", p.GetName(), value)
		}
	}
	return nil
}

// CancelOperation ends an operation.
func (f *Farm) CancelOperation(_ context.Context, req *longrunningpb.CancelOperationRequest) (*emptypb.Empty, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if op := f.ops[req.GetName()]; op != nil {
		op.cancel(errCancelled)
	}
	return &emptypb.Empty{}, nil
}

// message reads a stored message.
func (f *Farm) message(d *repb.Digest, m proto.Message) error {
	b, ok := f.blob(d)
	if !ok {
		return status.Errorf(codes.FailedPrecondition, "blob %s is missing", d.GetHash())
	}
	return proto.Unmarshal(b, m)
}

// work is a worker.
func (f *Farm) work(i int) {
	for {
		select {
		case <-f.quit:
			return
		case op := <-f.queue:
			f.mu.Lock()
			f.running[i] = op
			f.mu.Unlock()
			op.worker = fmt.Sprintf("worker-%d", i)
			close(op.begun)
			op.result, op.err = f.run(i, op)
			killed := context.Cause(op.ctx) == errKilled
			if cause := context.Cause(op.ctx); cause != nil {
				op.result, op.err = nil, cause
			}
			f.mu.Lock()
			delete(f.running, i)
			delete(f.ops, op.name)
			f.mu.Unlock()
			if !killed || !f.mute.Load() {
				close(op.ended)
			}
		}
	}
}

// run runs an action in a folder of its own.
func (f *Farm) run(i int, op *operation) (*repb.ActionResult, error) {
	if err := op.ctx.Err(); err != nil {
		return nil, err
	}
	began := timestamppb.Now()
	command := &repb.Command{}
	if err := f.message(op.action.GetCommandDigest(), command); err != nil {
		return nil, err
	}
	dir := filepath.Join(f.dir, fmt.Sprintf("worker-%d", i), op.name)
	syscall.ForkLock.RLock() // a process that starts now would have the program open for writing until it runs: "text file busy"
	err := f.lay(op.action.GetInputRootDigest(), dir)
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(op.ctx, op.action.GetTimeout().AsDuration())
	defer cancel()
	args := command.GetArguments()
	c := exec.CommandContext(ctx, filepath.Join(dir, args[0]), args[1:]...)
	c.Args[0] = args[0]
	c.Dir, c.Env = dir, f.Env
	if c.Env == nil {
		c.Env = []string{"TMPDIR=" + f.dir}
	}
	var stderr bytes.Buffer
	c.Stderr = &stderr
	started := timestamppb.Now()
	if err = c.Start(); err == nil {
		if call := f.started.Load(); call != nil && (*call)(f.starts.Add(1)) {
			op.cancel(errKilled)
		}
		err = c.Wait()
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, status.Error(codes.DeadlineExceeded, "the command took too long")
	}
	if c.ProcessState == nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	f.ran.Add(1)
	f.cpu.Add(int64(c.ProcessState.UserTime() + c.ProcessState.SystemTime()))
	r := &repb.ActionResult{ExitCode: int32(c.ProcessState.ExitCode()), StderrRaw: stderr.Bytes()}
	r.ExecutionMetadata = &repb.ExecutedActionMetadata{
		Worker: op.worker, QueuedTimestamp: op.queued, WorkerStartTimestamp: began,
		ExecutionStartTimestamp: started, ExecutionCompletedTimestamp: timestamppb.Now(),
	}
	for _, path := range command.GetOutputPaths() {
		if err := f.take(r, dir, path); err != nil {
			return nil, err
		}
	}
	if r.ExitCode == 0 {
		f.Server.mu.Lock()
		f.results[op.key] = r
		f.Server.mu.Unlock()
	}
	return r, nil
}

// lay lays out a folder.
func (f *Farm) lay(d *repb.Digest, dir string) error {
	root := &repb.Directory{}
	if err := f.message(d, root); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, sub := range root.GetDirectories() {
		if err := f.lay(sub.GetDigest(), filepath.Join(dir, sub.GetName())); err != nil {
			return err
		}
	}
	for _, file := range root.GetFiles() {
		if err := f.layFile(file, filepath.Join(dir, file.GetName())); err != nil {
			return err
		}
	}
	return nil
}

// layFile lays out a file. Programs are large, and linked to one copy on disk.
func (f *Farm) layFile(file *repb.FileNode, to string) error {
	data := func() ([]byte, error) {
		b, ok := f.blob(file.GetDigest())
		if !ok {
			return nil, status.Errorf(codes.FailedPrecondition, "blob %s is missing", file.GetDigest().GetHash())
		}
		return b, nil
	}
	if !file.GetIsExecutable() {
		b, err := data()
		if err != nil {
			return err
		}
		return os.WriteFile(to, b, 0o444)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	one := filepath.Join(f.dir, file.GetDigest().GetHash()+filepath.Ext(to))
	if _, err := os.Stat(one); errors.Is(err, fs.ErrNotExist) {
		b, err := data()
		if err != nil {
			return err
		}
		if err := os.WriteFile(one, b, 0o555); err != nil {
			return err
		}
	}
	return os.Link(one, to)
}

// take stores an output.
func (f *Farm) take(r *repb.ActionResult, dir, path string) error {
	info, err := os.Stat(filepath.Join(dir, path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || !info.IsDir() {
		d, kerr := f.keepFile(filepath.Join(dir, path))
		r.OutputFiles = append(r.OutputFiles, &repb.OutputFile{Path: path, Digest: d})
		return errors.Join(err, kerr)
	}
	tree := &repb.Tree{Root: &repb.Directory{}}
	entries, err := os.ReadDir(filepath.Join(dir, path))
	for _, e := range entries {
		d, kerr := f.keepFile(filepath.Join(dir, path, e.Name()))
		if kerr != nil {
			return kerr
		}
		tree.Root.Files = append(tree.Root.Files, &repb.FileNode{Name: e.Name(), Digest: d})
	}
	data, merr := proto.Marshal(tree)
	d, kerr := f.keepBytes(data)
	r.OutputDirectories = append(r.OutputDirectories, &repb.OutputDirectory{Path: path, TreeDigest: d})
	return errors.Join(err, merr, kerr)
}

func (f *Farm) keepFile(path string) (*repb.Digest, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return f.keepBytes(data)
}

func (f *Farm) keepBytes(data []byte) (*repb.Digest, error) {
	sum := sha256.Sum256(data)
	d := &repb.Digest{Hash: hex.EncodeToString(sum[:]), SizeBytes: int64(len(data))}
	return d, f.keep(d, data)
}
