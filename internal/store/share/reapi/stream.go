package reapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	repb "github.com/bazelbuild/remote-apis/build/bazel/remote/execution/v2"
	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
	"google.golang.org/genproto/googleapis/bytestream"

	"github.com/kiln-pipeline/kiln/internal/store/share"
)

// worthPacking is the size from which on a blob is compressed for the transfer, in bytes.
const worthPacking = 1 << 10

var packer = sync.OnceValue(func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		panic(err) // only wrong options can cause this
	}
	return e
})

func compress(data []byte) []byte { return packer().EncodeAll(data, nil) }

// decompress decompresses at most the expected size.
func decompress(data []byte, size int64) ([]byte, error) {
	d, err := unpacker(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return io.ReadAll(io.LimitReader(d, size+1))
}

// unpackers are decoders of streams, with their memory.
var unpackers sync.Pool

// unpackStream is unpacker with a decoder that may have been used before. release has to be called at the end.
func unpackStream(from io.Reader) (d *zstd.Decoder, release func(), err error) {
	d, _ = unpackers.Get().(*zstd.Decoder)
	if d == nil {
		d, err = unpacker(from)
	} else {
		err = d.Reset(from)
	}
	if err != nil {
		return nil, nil, err
	}
	return d, func() {
		if d.Reset(nil) == nil {
			unpackers.Put(d)
		}
	}, nil
}

func unpacker(from io.Reader) (*zstd.Decoder, error) {
	return zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(64<<20), zstd.WithDecoderMaxMemory(1<<40))
}

// name is the resource name of a blob's stream.
func (c *Client) name(b share.Blob, before, kind string) string {
	name := fmt.Sprintf("%s%s/%x/%d", before, kind, b.SHA256, b.Size)
	if c.instance != "" {
		name = c.instance + "/" + name
	}
	return name
}

// Kinds of stream.
const (
	plainBlobs  = "blobs"
	packedBlobs = "compressed-blobs/zstd"
)

func (c *Client) readStream(ctx context.Context, b share.Blob, to io.Writer) error {
	offer, err := c.Offered(ctx)
	if err != nil {
		return err
	}
	kind := plainBlobs
	if offer.Zstd {
		kind = packedBlobs
	}
	select {
	case c.streams <- struct{}{}:
		defer func() { <-c.streams }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx, cancel := c.call(ctx, b.Size)
	defer cancel()
	stream, err := c.bytes.Read(ctx, &bytestream.ReadRequest{ResourceName: c.name(b, "", kind)})
	if err != nil {
		return missOf(err)
	}
	// Compressed data may be larger than the content, but not by much: this limits a stream that never ends.
	var from io.Reader = &incoming{stream: stream, left: b.Size + b.Size/16 + 1<<20}
	if offer.Zstd {
		d, release, err := unpackStream(from)
		if err != nil {
			return err
		}
		defer release()
		from = d
	}
	err = share.Receive(to, from, b)
	if err != nil && ctx.Err() == nil && isBadZstd(err) {
		err = fmt.Errorf("%s: %w", b.Hash.Short(), share.ErrDamaged)
	}
	return err
}

// isBadZstd reports whether an error is caused by the data, not by the transfer.
func isBadZstd(err error) bool {
	for _, bad := range []error{
		zstd.ErrReservedBlockType, zstd.ErrCompressedSizeTooBig, zstd.ErrBlockTooSmall, zstd.ErrUnexpectedBlockSize, zstd.ErrMagicMismatch,
		zstd.ErrWindowSizeExceeded, zstd.ErrWindowSizeTooSmall, zstd.ErrDecoderSizeExceeded, zstd.ErrUnknownDictionary,
		zstd.ErrFrameSizeExceeded, zstd.ErrFrameSizeMismatch, zstd.ErrCRCMismatch, io.ErrUnexpectedEOF, errEndless,
	} {
		if errors.Is(err, bad) {
			return true
		}
	}
	return false
}

// errEndless means that a stream is longer than possible.
var errEndless = errors.New("reapi: the stream is too long")

// mostEmpty is the maximum number of messages without data in a stream.
const mostEmpty = 1000

// incoming reads the messages of a stream.
type incoming struct {
	stream bytestream.ByteStream_ReadClient
	rest   []byte
	left   int64
	empty  int
}

func (r *incoming) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		m, err := r.stream.Recv()
		if err != nil {
			return 0, missOf(err) // io.EOF at the end
		}
		if r.rest = m.GetData(); len(r.rest) == 0 {
			if r.empty++; r.empty > mostEmpty {
				return 0, errEndless
			}
		}
		if r.left -= int64(len(r.rest)) + 16; r.left < 0 { // messages without data count too
			return 0, errEndless
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (c *Client) writeStream(ctx context.Context, b share.Blob, from io.Reader) error {
	offer, err := c.Offered(ctx)
	if err != nil {
		return err
	}
	before, kind := "uploads/"+uuid.NewString()+"/", plainBlobs
	ctx, cancel := c.call(ctx, b.Size)
	defer cancel()
	if offer.Zstd {
		kind = packedBlobs
		packed, stop := packing(io.LimitReader(from, b.Size+1))
		defer stop()
		from = packed
	} else {
		from = io.LimitReader(from, b.Size+1)
	}
	stream, err := c.bytes.Write(ctx)
	if err != nil {
		return err
	}
	n, err := sendAll(stream, c.name(b, before, kind), from)
	if err != nil {
		return err
	}
	r, err := stream.CloseAndRecv()
	switch {
	case err != nil:
		return err
	case r.GetCommittedSize() == -1, r.GetCommittedSize() == b.Size, r.GetCommittedSize() == n: // the last case: of the compressed data
		return nil
	}
	return fmt.Errorf("the server took %d bytes of blob %s, which has %d", r.GetCommittedSize(), b.Hash.Short(), b.Size)
}

// sendAll sends a stream. A server that has the blob already may end it early.
func sendAll(stream bytestream.ByteStream_WriteClient, name string, from io.Reader) (sent int64, err error) {
	buf := make([]byte, chunk)
	for {
		n, err := io.ReadFull(from, buf)
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return sent, err
		}
		m := &bytestream.WriteRequest{ResourceName: name, WriteOffset: sent, Data: buf[:n], FinishWrite: last}
		if err := stream.Send(m); errors.Is(err, io.EOF) {
			return sent, nil // CloseAndRecv returns the answer
		} else if err != nil {
			return sent, err
		}
		if sent += int64(n); last {
			return sent, nil
		}
		name = ""
	}
}

// packing compresses a reader. stop ends it.
func packing(from io.Reader) (packed io.Reader, stop func()) {
	r, w := io.Pipe()
	go func() {
		e, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
		if err == nil {
			_, err = io.Copy(e, from)
			err = errors.Join(err, e.Close())
		}
		w.CloseWithError(err) // nil means EOF
	}()
	return r, func() { r.CloseWithError(fs.ErrClosed) }
}

// valueBlob reads an entry that is not in the server's answer itself.
func (c *Client) valueBlob(ctx context.Context, d *repb.Digest) ([]byte, error) {
	var b share.Blob
	sum, err := hex.DecodeString(d.GetHash())
	if err != nil || len(sum) != len(b.SHA256) || d.GetSizeBytes() <= 0 || d.GetSizeBytes() > share.MaxValue {
		return nil, fs.ErrNotExist
	}
	b.SHA256, b.Size = [sha256.Size]byte(sum), d.GetSizeBytes()
	var data bytes.Buffer
	if err := c.Fetch(ctx, b, &data); err != nil {
		return nil, err
	}
	return data.Bytes(), nil
}
