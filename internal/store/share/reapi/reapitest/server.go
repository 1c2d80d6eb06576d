// Package reapitest has a server of the Remote Execution API's caches in memory, for tests. It can lie.
package reapitest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	repb "github.com/bazelbuild/remote-apis/build/bazel/remote/execution/v2"
	"github.com/bazelbuild/remote-apis/build/bazel/semver"
	"github.com/klauspost/compress/zstd"
	"google.golang.org/genproto/googleapis/bytestream"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Lie is what a server does wrong.
type Lie int

// Lies. Those up to SaysNothing change bytes or answers; from Delays on, the server fails.
const (
	Honest Lie = iota
	FlipsBlobs
	CutsBlobs
	LengthensBlobs
	GivesOtherBlobs
	EmptiesBlobs
	FlipsResults
	CutsResults
	GivesOtherResults
	EmptiesResults
	PointsResultsAway // to a blob that is not there
	HugeResults       // to one that has a size which cannot be
	ClaimsAll         // that no blob is missing
	ClaimsNone        // that all are
	LosesBlobs        // has them until they are asked for
	RepeatsChunks
	SwapsChunks
	NeverEnds
	BadPacking
	Bombs // unpacks to far more than it is to be
	SaysNothing
	Delays // until the client gives up
	Refuses
	Full // takes nothing
	WrongCapabilities
	Lies // how many there are
)

// Server is a server on a loopback address.
type Server struct {
	Address string // grpc://...
	Zstd    bool   // set it before the first call
	Old     bool   // it speaks version 1 of the API; set it before the first call

	lie   atomic.Int32
	told  atomic.Int64 // how often it lied
	slow  atomic.Int64 // nanoseconds
	calls atomic.Int64
	after func() // is called once, with the call of number at
	at    int64
	wants string // the Authorization header that is wanted

	mu      sync.Mutex
	blobs   map[string][]byte
	results map[string]*repb.ActionResult

	grpc *grpc.Server
	done chan struct{}

	repb.UnimplementedContentAddressableStorageServer
	repb.UnimplementedActionCacheServer
	repb.UnimplementedCapabilitiesServer
	bytestream.UnimplementedByteStreamServer
}

// Start starts a server. wants is the Authorization header that each call has to have; "": none.
func Start(wants string, opts ...grpc.ServerOption) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := newServer(wants)
	s.serve(l, func(g *grpc.Server) { repb.RegisterCapabilitiesServer(g, s) }, opts...)
	return s, nil
}

func newServer(wants string) *Server {
	return &Server{wants: wants, blobs: map[string][]byte{}, results: map[string]*repb.ActionResult{}}
}

// serve answers on a listener. more registers what else is served.
func (s *Server) serve(l net.Listener, more func(*grpc.Server), opts ...grpc.ServerOption) {
	s.Address = "grpc://" + l.Addr().String()
	g, done := grpc.NewServer(append(opts, grpc.UnaryInterceptor(s.unary), grpc.StreamInterceptor(s.stream))...), make(chan struct{})
	repb.RegisterContentAddressableStorageServer(g, s)
	repb.RegisterActionCacheServer(g, s)
	bytestream.RegisterByteStreamServer(g, s)
	more(g)
	s.grpc, s.done = g, done
	go func() {
		defer close(done)
		g.Serve(l)
	}()
}

// Stop ends the server, in the middle of whatever it does.
func (s *Server) Stop() {
	s.grpc.Stop()
	<-s.done
}

// Tell makes the server lie from now on.
func (s *Server) Tell(l Lie) { s.lie.Store(int32(l)) }

// Slow makes each answer take that long from now on.
func (s *Server) Slow(by time.Duration) { s.slow.Store(int64(by)) }

// Calls is how many calls there were.
func (s *Server) Calls() int64 { return s.calls.Load() }

// After makes the server call f after that many more calls. The server must not be in use yet.
func (s *Server) After(calls int64, f func()) { s.at, s.after = s.calls.Load()+calls, f }

// Wipe forgets everything.
func (s *Server) Wipe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.blobs)
	clear(s.results)
}

// Size is how many blobs and results there are.
func (s *Server) Size() (blobs, results int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.blobs), len(s.results)
}

// Spoil replaces a blob's bytes.
func (s *Server) Spoil(sum [sha256.Size]byte, with []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blobs[hex.EncodeToString(sum[:])] = with
}

// Told is how often the server had occasion to lie.
func (s *Server) Told() int64 { return s.told.Load() }

func (s *Server) lies(l Lie) bool {
	if Lie(s.lie.Load()) != l {
		return false
	}
	s.told.Add(1)
	return true
}

func (s *Server) admit(ctx context.Context) error {
	if n := s.calls.Add(1); s.after != nil && n == s.at {
		s.after()
	}
	time.Sleep(time.Duration(s.slow.Load()))
	switch {
	case s.lies(Delays):
		<-ctx.Done()
		return ctx.Err()
	case s.lies(Refuses):
		return status.Error(codes.Unavailable, "not now")
	}
	if s.wants != "" && !slices.Contains(metadataOf(ctx, "authorization"), s.wants) {
		return status.Error(codes.Unauthenticated, "who are you")
	}
	return nil
}

func (s *Server) unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if err := s.admit(ctx); err != nil {
		return nil, err
	}
	return next(ctx, req)
}

func (s *Server) stream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if err := s.admit(ss.Context()); err != nil {
		return err
	}
	return next(srv, ss)
}

// GetCapabilities is part of the protocol, as all that follows.
func (s *Server) GetCapabilities(context.Context, *repb.GetCapabilitiesRequest) (*repb.ServerCapabilities, error) {
	cache := &repb.CacheCapabilities{
		DigestFunctions:               []repb.DigestFunction_Value{repb.DigestFunction_SHA256},
		ActionCacheUpdateCapabilities: &repb.ActionCacheUpdateCapabilities{UpdateEnabled: true},
	}
	if s.lies(WrongCapabilities) {
		cache.DigestFunctions = []repb.DigestFunction_Value{repb.DigestFunction_MD5}
	}
	if s.Zstd {
		cache.SupportedCompressors = []repb.Compressor_Value{repb.Compressor_ZSTD}
		cache.SupportedBatchUpdateCompressors = cache.SupportedCompressors
	}
	high := &semver.SemVer{Major: 2, Minor: 3}
	if s.Old {
		high.Major = 1
	}
	return &repb.ServerCapabilities{CacheCapabilities: cache, HighApiVersion: high}, nil
}

// blob is what is given for a digest.
func (s *Server) blob(d *repb.Digest) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.blobs[d.GetHash()]
	if d.GetSizeBytes() == 0 {
		ok = true
	}
	b = bytes.Clone(b)
	switch {
	case !ok || s.lies(LosesBlobs):
		return nil, false
	case s.lies(FlipsBlobs) && len(b) > 0:
		b[len(b)/2] ^= 1
	case s.lies(CutsBlobs) && len(b) > 0:
		b = b[:len(b)-1]
	case s.lies(LengthensBlobs):
		b = append(b, 0)
	case s.lies(EmptiesBlobs):
		b = nil
	case s.lies(GivesOtherBlobs):
		for hash, other := range s.blobs {
			if hash != d.GetHash() {
				return bytes.Clone(other), true
			}
		}
	}
	return b, true
}

func (s *Server) keep(d *repb.Digest, b []byte) error {
	sum := sha256.Sum256(b)
	if hex.EncodeToString(sum[:]) != d.GetHash() || int64(len(b)) != d.GetSizeBytes() {
		return status.Error(codes.InvalidArgument, "these are not the bytes of that digest")
	}
	if s.lies(Full) {
		return status.Error(codes.ResourceExhausted, "full")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blobs[d.GetHash()] = bytes.Clone(b)
	return nil
}

func (s *Server) has(d *repb.Digest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.blobs[d.GetHash()]
	return ok || d.GetSizeBytes() == 0
}

func (s *Server) FindMissingBlobs(_ context.Context, req *repb.FindMissingBlobsRequest) (*repb.FindMissingBlobsResponse, error) {
	r := &repb.FindMissingBlobsResponse{}
	for _, d := range req.GetBlobDigests() {
		if !s.lies(ClaimsAll) && (s.lies(ClaimsNone) || !s.has(d)) {
			r.MissingBlobDigests = append(r.MissingBlobDigests, d)
		}
	}
	return r, nil
}

func (s *Server) BatchReadBlobs(_ context.Context, req *repb.BatchReadBlobsRequest) (*repb.BatchReadBlobsResponse, error) {
	r := &repb.BatchReadBlobsResponse{}
	if s.lies(SaysNothing) {
		return r, nil
	}
	for _, d := range req.GetDigests() {
		x := &repb.BatchReadBlobsResponse_Response{Digest: d, Status: &rpcstatus.Status{}}
		b, ok := s.blob(d)
		switch {
		case !ok:
			x.Status = status.New(codes.NotFound, "").Proto()
		case s.lies(BadPacking):
			x.Compressor, x.Data = repb.Compressor_ZSTD, []byte("this is not zstd")
		case s.lies(Bombs):
			x.Compressor, x.Data = repb.Compressor_ZSTD, pack(make([]byte, 64<<20))
		case slices.Contains(req.GetAcceptableCompressors(), repb.Compressor_ZSTD):
			x.Compressor, x.Data = repb.Compressor_ZSTD, pack(b)
		default:
			x.Data = b
		}
		r.Responses = append(r.Responses, x)
	}
	return r, nil
}

func (s *Server) BatchUpdateBlobs(_ context.Context, req *repb.BatchUpdateBlobsRequest) (*repb.BatchUpdateBlobsResponse, error) {
	r := &repb.BatchUpdateBlobsResponse{}
	if s.lies(SaysNothing) {
		return r, nil
	}
	for _, x := range req.GetRequests() {
		data := x.GetData()
		var err error
		if x.GetCompressor() == repb.Compressor_ZSTD {
			data, err = unpack(data)
		}
		if err == nil {
			err = s.keep(x.GetDigest(), data)
		}
		r.Responses = append(r.Responses, &repb.BatchUpdateBlobsResponse_Response{Digest: x.GetDigest(), Status: status.Convert(err).Proto()})
	}
	return r, nil
}

func (s *Server) GetActionResult(_ context.Context, req *repb.GetActionResultRequest) (*repb.ActionResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.results[req.GetActionDigest().GetHash()]
	if !ok {
		return nil, status.Error(codes.NotFound, "")
	}
	value := bytes.Clone(r.GetStdoutRaw())
	if len(value) == 0 && !s.lies(PointsResultsAway) {
		return r, nil // of an action
	}
	switch {
	case s.lies(FlipsResults):
		value[len(value)/2] ^= 1
	case s.lies(CutsResults):
		value = value[:len(value)-1]
	case s.lies(EmptiesResults):
		return &repb.ActionResult{}, nil
	case s.lies(PointsResultsAway):
		return &repb.ActionResult{StdoutDigest: &repb.Digest{Hash: strings.Repeat("ab", 32), SizeBytes: 100}}, nil
	case s.lies(HugeResults):
		return &repb.ActionResult{StdoutDigest: &repb.Digest{Hash: strings.Repeat("ab", 32), SizeBytes: 1 << 60}}, nil
	case s.lies(GivesOtherResults):
		for key, other := range s.results {
			if key != req.GetActionDigest().GetHash() {
				return other, nil
			}
		}
	}
	return &repb.ActionResult{StdoutRaw: value, OutputFiles: r.GetOutputFiles()}, nil
}

func (s *Server) UpdateActionResult(_ context.Context, req *repb.UpdateActionResultRequest) (*repb.ActionResult, error) {
	if s.lies(Full) {
		return nil, status.Error(codes.ResourceExhausted, "full")
	}
	for _, f := range req.GetActionResult().GetOutputFiles() {
		if !s.has(f.GetDigest()) {
			return nil, status.Error(codes.NotFound, "a blob of the result is not there")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results[req.GetActionDigest().GetHash()] = req.GetActionResult()
	return req.GetActionResult(), nil
}

// resource takes the name of a stream apart.
func resource(name string) (d *repb.Digest, packed bool, err error) {
	parts := strings.Split(name, "/")
	if len(parts) < 3 {
		return nil, false, status.Error(codes.InvalidArgument, name)
	}
	size, err := strconv.ParseInt(parts[len(parts)-1], 10, 64)
	if err != nil {
		return nil, false, status.Error(codes.InvalidArgument, name)
	}
	return &repb.Digest{Hash: parts[len(parts)-2], SizeBytes: size}, strings.Contains(name, "compressed-blobs/zstd"), nil
}

func (s *Server) Read(req *bytestream.ReadRequest, to bytestream.ByteStream_ReadServer) error {
	d, packed, err := resource(req.GetResourceName())
	if err != nil {
		return err
	}
	b, ok := s.blob(d)
	if !ok {
		return status.Error(codes.NotFound, "")
	}
	switch {
	case packed && s.lies(Bombs):
		b = pack(make([]byte, 256<<20))
	case s.lies(BadPacking):
		b = []byte("this is not zstd")
	case s.lies(SaysNothing):
		return nil
	case packed:
		b = pack(b)
	}
	chunks := slices.Collect(slices.Chunk(b, 64<<10))
	switch {
	case len(chunks) > 1 && s.lies(RepeatsChunks):
		chunks = slices.Insert(chunks, 1, chunks[1])
	case len(chunks) > 1 && s.lies(SwapsChunks):
		chunks[0], chunks[1] = chunks[1], chunks[0]
	}
	for _, x := range chunks {
		if err := to.Send(&bytestream.ReadResponse{Data: x}); err != nil {
			return err
		}
	}
	for s.lies(NeverEnds) {
		if err := to.Send(&bytestream.ReadResponse{Data: make([]byte, 64<<10)}); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) Write(from bytestream.ByteStream_WriteServer) error {
	var data []byte
	name := ""
	for {
		m, err := from.Recv()
		if err != nil && err != io.EOF {
			return err
		}
		if name == "" {
			name = m.GetResourceName()
		}
		if data = append(data, m.GetData()...); err == io.EOF || m.GetFinishWrite() {
			break
		}
	}
	sent := int64(len(data))
	d, packed, err := resource(name)
	if err == nil && packed {
		data, err = unpack(data)
	}
	if err == nil {
		err = s.keep(d, data)
	}
	if err != nil {
		return err
	}
	if s.lies(SaysNothing) {
		return from.SendAndClose(&bytestream.WriteResponse{})
	}
	return from.SendAndClose(&bytestream.WriteResponse{CommittedSize: sent})
}

var (
	packer   = sync.OnceValue(func() *zstd.Encoder { e, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1)); return e })
	unpacker = sync.OnceValue(func() *zstd.Decoder { d, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1)); return d })
)

func pack(b []byte) []byte { return packer().EncodeAll(b, nil) }

func unpack(b []byte) ([]byte, error) {
	b, err := unpacker().DecodeAll(b, nil)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, fmt.Sprint(err))
	}
	return b, nil
}
