package reapi

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"sync"

	repb "github.com/bazelbuild/remote-apis/build/bazel/remote/execution/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kiln-pipeline/kiln/internal/store/share"
)

// Many small blobs share a message. A message does not wait to be filled: while the maximum number of messages is in
// flight, callers queue up, and the next message takes as many as fit.

// moved is a blob to be sent or received in a message.
type moved struct {
	blob share.Blob
	data []byte
	err  error
	done chan struct{}
}

type batcher struct {
	send func(context.Context, []*moved)

	mu      sync.Mutex
	queue   []*moved
	flights int
}

// do sends or receives a blob. If ctx ends first, do returns at once, and the result is discarded.
func (b *batcher) do(ctx context.Context, m *moved) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.done = make(chan struct{})
	b.mu.Lock()
	b.queue = append(b.queue, m)
	if b.flights < batchesAhead {
		b.flights++
		go b.fly(context.WithoutCancel(ctx))
	}
	b.mu.Unlock()
	select {
	case <-m.done:
		return m.data, m.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// fly sends messages until the queue is empty.
func (b *batcher) fly(ctx context.Context) {
	for {
		b.mu.Lock()
		n, size := 0, int64(0)
		for n < len(b.queue) && n < manyDigests && (n == 0 || size+b.queue[n].blob.Size <= batchBytes) {
			size += b.queue[n].blob.Size + 200 // overhead
			n++
		}
		batch := b.queue[:n:n]
		if b.queue = b.queue[n:]; n == 0 {
			b.flights--
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
		b.send(ctx, batch)
		for _, m := range batch {
			close(m.done)
		}
	}
}

// fail sets the error of all.
func fail(batch []*moved, err error) {
	for _, m := range batch {
		m.err = err
	}
}

func total(batch []*moved) (size int64) {
	for _, m := range batch {
		size += m.blob.Size
	}
	return size
}

// readBatch reads blobs.
func (c *Client) readBatch(ctx context.Context, batch []*moved) {
	offer, err := c.Offered(ctx)
	if err != nil {
		fail(batch, err)
		return
	}
	req := &repb.BatchReadBlobsRequest{InstanceName: c.instance, DigestFunction: repb.DigestFunction_SHA256}
	if offer.Zstd {
		req.AcceptableCompressors = []repb.Compressor_Value{repb.Compressor_ZSTD}
	}
	asked := map[string]bool{}
	for _, m := range batch {
		if d := digestOf(m.blob); !asked[d.Hash] {
			asked[d.Hash] = true
			req.Digests = append(req.Digests, d)
		}
	}
	ctx, cancel := c.call(ctx, total(batch))
	defer cancel()
	r, err := c.cas.BatchReadBlobs(ctx, req)
	if err != nil {
		fail(batch, missOf(err))
		return
	}
	got := map[string]*repb.BatchReadBlobsResponse_Response{}
	for _, x := range r.GetResponses() {
		got[x.GetDigest().GetHash()] = x
	}
	for _, m := range batch {
		m.data, m.err = unpack(m.blob, got[digestOf(m.blob).Hash])
	}
}

func unpack(b share.Blob, r *repb.BatchReadBlobsResponse_Response) ([]byte, error) {
	if r == nil {
		return nil, fmt.Errorf("the server did not answer for blob %s", b.Hash.Short())
	}
	if code := codes.Code(r.GetStatus().GetCode()); code != codes.OK {
		return nil, missOf(status.Error(code, r.GetStatus().GetMessage()))
	}
	data := r.GetData()
	if r.GetCompressor() == repb.Compressor_ZSTD {
		var err error
		if data, err = decompress(data, b.Size); err != nil {
			return nil, fmt.Errorf("%s: %w", b.Hash.Short(), share.ErrDamaged)
		}
	}
	if int64(len(data)) != b.Size || sha256.Sum256(data) != b.SHA256 {
		return nil, fmt.Errorf("%s: %w", b.Hash.Short(), share.ErrDamaged)
	}
	return data, nil
}

// writeBatch writes blobs.
func (c *Client) writeBatch(ctx context.Context, batch []*moved) {
	offer, err := c.Offered(ctx)
	if err != nil {
		fail(batch, err)
		return
	}
	req := &repb.BatchUpdateBlobsRequest{InstanceName: c.instance, DigestFunction: repb.DigestFunction_SHA256}
	sent := map[string]bool{}
	for _, m := range batch {
		x := &repb.BatchUpdateBlobsRequest_Request{Digest: digestOf(m.blob), Data: m.data}
		if sent[x.Digest.Hash] {
			continue
		}
		sent[x.Digest.Hash] = true
		if offer.ZstdInBatches && len(m.data) > worthPacking {
			if packed := compress(m.data); len(packed) < len(m.data) {
				x.Data, x.Compressor = packed, repb.Compressor_ZSTD
			}
		}
		req.Requests = append(req.Requests, x)
	}
	ctx, cancel := c.call(ctx, total(batch))
	defer cancel()
	r, err := c.cas.BatchUpdateBlobs(ctx, req)
	if err != nil {
		fail(batch, err)
		return
	}
	got := map[string]error{}
	for _, x := range r.GetResponses() {
		got[x.GetDigest().GetHash()] = status.Error(codes.Code(x.GetStatus().GetCode()), x.GetStatus().GetMessage())
	}
	for _, m := range batch {
		var answered bool
		if m.err, answered = got[digestOf(m.blob).Hash]; !answered {
			m.err = fmt.Errorf("the server did not answer for blob %s", m.blob.Hash.Short())
		}
		m.data = nil
	}
}

// small reports whether a blob goes into a message with others.
func (c *Client) small(ctx context.Context, b share.Blob) (bool, error) {
	offer, err := c.Offered(ctx)
	return err == nil && b.Size <= min(inBatch, offer.Batch), err
}

// Fetch reads a blob.
func (c *Client) Fetch(ctx context.Context, b share.Blob, to io.Writer) error {
	small, err := c.small(ctx, b)
	switch {
	case err != nil:
		return err
	case !small:
		return c.readStream(ctx, b, to)
	}
	data, err := c.reads.do(ctx, &moved{blob: b})
	if err == nil {
		_, err = to.Write(data)
	}
	return err
}

// Store writes a blob. If it is small, its bytes are hashed before they are sent; otherwise the server
// checks the hash.
func (c *Client) Store(ctx context.Context, b share.Blob, open func() (io.ReadCloser, error)) error {
	small, err := c.small(ctx, b)
	if err != nil {
		return err
	}
	from, err := open()
	if err != nil {
		return err
	}
	defer from.Close()
	if !small {
		return c.writeStream(ctx, b, from)
	}
	data, err := io.ReadAll(io.LimitReader(from, b.Size+1))
	if err != nil {
		return err
	}
	if int64(len(data)) != b.Size || sha256.Sum256(data) != b.SHA256 {
		return fmt.Errorf("%s: %w", b.Hash.Short(), share.ErrDamaged)
	}
	_, err = c.writes.do(ctx, &moved{blob: b, data: data})
	return err
}
