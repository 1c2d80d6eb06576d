// Package reapi keeps shared results on a server that speaks the Remote Execution API, version 2. An entry is an action
// result: its standard output is the value, and its output files are the blobs that it needs. Blobs are in the
// content-addressed storage, by their SHA-256. For the cache, nothing is executed and there is no action: a key is the
// hash of an entry's inputs.
//
// The server is not trusted: every blob is hashed before it counts, nothing is read beyond the size that a blob or an
// entry may have, and every call has a timeout.
package reapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	repb "github.com/bazelbuild/remote-apis/build/bazel/remote/execution/v2"
	"google.golang.org/genproto/googleapis/bytestream"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/kiln-pipeline/kiln/internal/store/share"
)

// Limits.
const (
	callTimeout  = 15 * time.Second // of a call that moves little
	connects     = 3 * time.Second  // until there is a connection
	slowest      = 256 << 10        // bytes a second that a transfer may be slow at least
	maxMessage   = 4 << 20          // that servers take
	batchBytes   = 4<<20 - 256<<10  // of blobs in one message
	inBatch      = 1 << 20          // a larger blob is streamed
	chunk        = 1 << 20          // of a stream
	manyDigests  = 8192             // in one question
	batchesAhead = 8                // in flight
	streamsAhead = 8                // read at once: more of them take memory, and make none faster
	window       = 4 << 20          // bytes of a stream that may be on their way
	windows      = 16 << 20         // and of all streams
)

// keySize replaces the size of an action, which servers require.
const keySize = 50

// Client is a share.Cache.
type Client struct {
	conn     *grpc.ClientConn
	instance string
	timeout  time.Duration
	connects time.Duration
	reached  atomic.Int32 // 1: there was a connection; -1: there was none in time
	asked    atomic.Bool  // the server asked for a certificate

	cas   repb.ContentAddressableStorageClient
	ac    repb.ActionCacheClient
	caps  repb.CapabilitiesClient
	bytes bytestream.ByteStreamClient
	exec  repb.ExecutionClient
	ops   longrunningpb.OperationsClient

	reads, writes *batcher
	streams       chan struct{} // has one for each that is read

	storingMu sync.Mutex
	storing   map[share.Blob]*storing

	offerMu sync.Mutex
	offered *Offer // nil: not asked yet
}

var _ share.Cache = (*Client)(nil)

// Dial prepares a connection to a server: grpc://HOST:PORT/INSTANCE, or grpcs for TLS. Nothing is sent
// yet.
func Dial(address string, as Credentials) (*Client, error) {
	u, err := parse(address)
	if err != nil {
		return nil, err
	}
	if err := as.permit(address, u); err != nil {
		return nil, err
	}
	c := &Client{instance: strings.Trim(u.Path, "/"), timeout: callTimeout, connects: connects}
	opts := []grpc.DialOption{
		grpc.WithUserAgent("kiln"),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: 2 * connects}),
		grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(windows),
		grpc.WithUnaryInterceptor(c.reachUnary), grpc.WithStreamInterceptor(c.reachStream),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage+1<<20), grpc.MaxCallSendMsgSize(maxMessage+1<<20)),
	}
	transport := insecure.NewCredentials()
	if u.Scheme == "grpcs" {
		cfg, err := as.tls()
		if err != nil {
			return nil, err
		}
		own := append(cfg.Certificates, tls.Certificate{}) // none, if the server wants another
		cfg.GetClientCertificate = func(wanted *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			c.asked.Store(true)
			if wanted.SupportsCertificate(&own[0]) == nil {
				return &own[0], nil
			}
			return &own[len(own)-1], nil
		}
		transport = credentials.NewTLS(cfg)
	}
	if as.sends() {
		if u.Scheme != "grpcs" && !loopback(u.Hostname()) {
			return nil, errors.New("a password or a token is not sent without encryption: write grpcs:// in place of grpc://")
		}
		opts = append(opts, grpc.WithPerRPCCredentials(&header{as: as}))
	}
	conn, err := grpc.NewClient("dns:///"+u.Host, append(opts, grpc.WithTransportCredentials(transport))...)
	if err != nil {
		return nil, err
	}
	c.conn = conn
	c.cas, c.ac = repb.NewContentAddressableStorageClient(conn), repb.NewActionCacheClient(conn)
	c.caps, c.bytes = repb.NewCapabilitiesClient(conn), bytestream.NewByteStreamClient(conn)
	c.exec, c.ops = repb.NewExecutionClient(conn), longrunningpb.NewOperationsClient(conn)
	c.streams = make(chan struct{}, streamsAhead)
	c.reads, c.writes = &batcher{send: c.readBatch}, &batcher{send: c.writeBatch}
	return c, nil
}

// reach waits until there is a connection, but not for long: a server that a firewall hides refuses nothing, and a name that nobody
// resolves is not an error for half a minute.
func (c *Client) reach(ctx context.Context, conn *grpc.ClientConn) error {
	state := conn.GetState()
	if state == connectivity.Ready {
		c.reached.Store(1)
		return nil
	}
	late := status.Errorf(codes.Unavailable, "no connection within %v s", c.connects.Seconds())
	ctx, cancel := context.WithTimeoutCause(ctx, c.connects, late)
	defer cancel()
	for conn.Connect(); state == connectivity.Idle || state == connectivity.Connecting; state = conn.GetState() {
		if !conn.WaitForStateChange(ctx, state) {
			if context.Cause(ctx) == late {
				c.reached.CompareAndSwap(0, -1)
			}
			return context.Cause(ctx)
		}
	}
	if state == connectivity.Ready {
		c.reached.Store(1)
	}
	return nil // ready, or the call itself says why not
}

// Hurry limits the time until there is a connection. It is called before the first call.
func (c *Client) Hurry(most time.Duration) { c.connects = most }

// Reached reports whether there was a connection, or none in time. Both are false if none was needed or the server refused it.
func (c *Client) Reached() (yes, late bool) { return c.reached.Load() > 0, c.reached.Load() < 0 }

func (c *Client) reachUnary(
	ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, next grpc.UnaryInvoker, o ...grpc.CallOption,
) error {
	if err := c.reach(ctx, conn); err != nil {
		return err
	}
	return c.certified(next(ctx, method, req, reply, conn, o...))
}

func (c *Client) reachStream(
	ctx context.Context, d *grpc.StreamDesc, conn *grpc.ClientConn, method string, next grpc.Streamer, o ...grpc.CallOption,
) (grpc.ClientStream, error) {
	if err := c.reach(ctx, conn); err != nil {
		return nil, err
	}
	stream, err := next(ctx, d, conn, method, o...)
	return stream, c.certified(err)
}

// certified adds to the error of a connection that never came about that the server had asked for a certificate: whether its own message
// about that arrives before the connection ends is left to chance.
func (c *Client) certified(err error) error {
	s, _ := status.FromError(err)
	if s.Code() != codes.Unavailable || !c.asked.Load() || c.reached.Load() > 0 || advice(s.Message()) != "" {
		return err
	}
	return status.Error(codes.Unavailable, s.Message()+" ("+refusedCertificate+")")
}

// IsAddress reports whether a text is the address of a server, without a user or a password in it.
func IsAddress(text string) bool {
	u, err := parse(text)
	return err == nil && u.User == nil
}

// parse takes an address apart. Its host has a port.
func parse(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.Scheme != "grpc" && u.Scheme != "grpcs" {
		return nil, fmt.Errorf("%q is not the address of a server: it begins with grpc:// or grpcs://", address)
	}
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), map[string]string{"grpc": "80", "grpcs": "443"}[u.Scheme])
	}
	return u, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// call adds a timeout to a call that transfers size bytes.
func (c *Client) call(ctx context.Context, size int64) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.timeout+time.Duration(size)*time.Second/slowest)
}

// missOf turns the answer that something does not exist into a miss.
func missOf(err error) error {
	if status.Code(err) == codes.NotFound {
		return fs.ErrNotExist
	}
	return err
}

// Reason returns the text of a server's error, for display.
func Reason(err error) string {
	s, ok := status.FromError(err)
	if !ok {
		return err.Error()
	}
	text := s.Message()
	for _, before := range []string{"transport: Error while dialing: ", "transport: "} {
		if _, after, ok := strings.Cut(text, before); ok {
			text = strings.TrimSuffix(after, `"`)
			break
		}
	}
	switch s.Code() {
	case codes.Unavailable:
		return "it cannot be reached: " + text + advice(text)
	case codes.DeadlineExceeded:
		return "it does not answer in time"
	case codes.Unauthenticated, codes.PermissionDenied:
		return "it refuses: " + text + "; it may want KILN_CACHE_TOKEN, or KILN_CACHE_USER and KILN_CACHE_PASSWORD"
	}
	return s.Code().String() + ": " + text
}

const (
	refusedCertificate = "after it asked for a certificate"
	wantsCertificate   = "it wants a certificate of the client that it knows: KILN_CACHE_CERT and KILN_CACHE_CERT_KEY name its files"
)

// advices say which setting may be behind an error of TLS, of which gRPC leaves only the text. The first that is in the text counts.
var advices = []struct{ in, advice string }{
	{"signed by unknown authority", "if that is an authority of your own, KILN_CACHE_CA names the file of its certificate"},
	{"has expired or is not yet valid", "the server needs another certificate, or this machine's clock is wrong"},
	{"certificate is valid for", "the server's address has to be a name in its certificate"},
	{"doesn't contain any IP SANs", "the server's address has to be a name in its certificate"},
	{"not valid for any names", "the server's address has to be a name in its certificate"},
	{"remote error: tls:", wantsCertificate},
	{refusedCertificate, wantsCertificate},
	{"does not look like a TLS handshake", "it may be a server without encryption: grpc:// in place of grpcs://"},
	{"error reading server preface", "it may be a server with encryption: grpcs:// in place of grpc://"},
}

func advice(text string) string {
	for _, a := range advices {
		if strings.Contains(text, a.in) {
			return "; " + a.advice
		}
	}
	return ""
}

func digestOf(b share.Blob) *repb.Digest {
	return &repb.Digest{Hash: fmt.Sprintf("%x", b.SHA256), SizeBytes: b.Size}
}

func keyDigest(key share.Key) *repb.Digest {
	return &repb.Digest{Hash: key.String(), SizeBytes: keySize}
}

// Offer is what a server supports.
type Offer struct {
	Zstd, ZstdInBatches bool
	Updates             bool  // it stores entries
	Batch               int64 // maximum bytes of blobs in one message
	Version             string
}

// Offered asks a server once what it supports.
func (c *Client) Offered(ctx context.Context) (*Offer, error) {
	c.offerMu.Lock()
	defer c.offerMu.Unlock()
	if c.offered != nil {
		return c.offered, nil
	}
	ctx, cancel := c.call(ctx, 0)
	defer cancel()
	caps, err := c.caps.GetCapabilities(ctx, &repb.GetCapabilitiesRequest{InstanceName: c.instance})
	if err != nil {
		return nil, err
	}
	cache := caps.GetCacheCapabilities()
	if cache == nil || !slices.Contains(cache.GetDigestFunctions(), repb.DigestFunction_SHA256) {
		return nil, errors.New("the server has no cache whose digests are SHA-256")
	}
	o := &Offer{
		Zstd:          slices.Contains(cache.GetSupportedCompressors(), repb.Compressor_ZSTD),
		ZstdInBatches: slices.Contains(cache.GetSupportedBatchUpdateCompressors(), repb.Compressor_ZSTD),
		Updates:       cache.GetActionCacheUpdateCapabilities().GetUpdateEnabled(),
		Batch:         batchBytes,
	}
	if most := cache.GetMaxBatchTotalSizeBytes(); most > 0 {
		o.Batch = min(o.Batch, most)
	}
	if high := caps.GetHighApiVersion(); high != nil {
		o.Version = fmt.Sprintf("%d.%d", high.GetMajor(), high.GetMinor())
	}
	c.offered = o
	return o, nil
}

// Get reads an entry.
func (c *Client) Get(ctx context.Context, key share.Key) ([]byte, error) {
	call, cancel := c.call(ctx, 0)
	defer cancel()
	r, err := c.ac.GetActionResult(call, &repb.GetActionResultRequest{
		InstanceName: c.instance, ActionDigest: keyDigest(key), InlineStdout: true, DigestFunction: repb.DigestFunction_SHA256,
	})
	if err != nil {
		return nil, missOf(err)
	}
	if len(r.GetStdoutRaw()) > 0 {
		return r.GetStdoutRaw(), nil
	}
	return c.valueBlob(ctx, r.GetStdoutDigest())
}

// Put writes an entry.
func (c *Client) Put(ctx context.Context, key share.Key, value []byte, blobs []share.Blob) error {
	if len(value) > share.MaxValue {
		return errors.New("reapi: the entry is too large")
	}
	r := &repb.ActionResult{StdoutRaw: value}
	seen := map[share.Blob]bool{}
	for _, b := range blobs {
		if !seen[b] {
			seen[b] = true
			r.OutputFiles = append(r.OutputFiles, &repb.OutputFile{Path: b.Hash.String(), Digest: digestOf(b)})
		}
	}
	ctx, cancel := c.call(ctx, int64(len(value)))
	defer cancel()
	_, err := c.ac.UpdateActionResult(ctx, &repb.UpdateActionResultRequest{
		InstanceName: c.instance, ActionDigest: keyDigest(key), ActionResult: r, DigestFunction: repb.DigestFunction_SHA256,
	})
	return err
}

// Missing asks which blobs are not there.
func (c *Client) Missing(ctx context.Context, blobs []share.Blob) (missing []share.Blob, err error) {
	for part := range slices.Chunk(blobs, manyDigests) {
		req := &repb.FindMissingBlobsRequest{InstanceName: c.instance, DigestFunction: repb.DigestFunction_SHA256}
		for _, b := range part {
			req.BlobDigests = append(req.BlobDigests, digestOf(b))
		}
		call, cancel := c.call(ctx, 0)
		r, err := c.cas.FindMissingBlobs(call, req)
		cancel()
		if err != nil {
			return nil, err
		}
		gone := map[string]bool{}
		for _, d := range r.GetMissingBlobDigests() {
			gone[d.GetHash()] = true
		}
		for _, b := range part {
			if gone[digestOf(b).Hash] {
				missing = append(missing, b)
			}
		}
	}
	return missing, nil
}

// Now measures how long an answer takes.
func (c *Client) Now(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	_, err := c.Get(ctx, share.Key{1})
	if share.IsMiss(err) {
		err = nil
	}
	return time.Since(began), err
}

// tlsConfig is the minimum configuration of TLS.
func tlsConfig() *tls.Config { return &tls.Config{MinVersion: tls.VersionTLS12} }
