package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/bytestream"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// makeFlag makes this program one that Kiln runs, which makes a large product.
const makeFlag = "-make"

// largeSize is how large a product is, in bytes.
const largeSize = 16 << 20

// noise are bytes that nothing else has, and that do not get smaller when they are packed.
func noise(seed uint64, n int) []byte {
	var key [32]byte
	copy(key[:], strconv.FormatUint(seed, 10))
	b := make([]byte, n)
	rand.NewChaCha8(key).Read(b)
	return b
}

// makeProduct makes the product of a source file that holds a number.
func makeProduct(in, out string) error {
	data, err := os.ReadFile(in)
	if err != nil {
		return err
	}
	seed, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		return err
	}
	return os.WriteFile(out, noise(seed, largeSize), 0o666)
}

// products measures a first build of few assets with large products, beside what a plain loop over the streams of the same server takes
// that writes each product to a file. The protocol has no client of its own to compare with: that loop does the least that any has to.
func (b *bench) products() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	n := max(1, int(b.bytes/largeSize))
	toml := fmt.Sprintf("[[processors]]\nname = \"noise\"\ncommand = [%q, %q, \"{in}\", \"{out}\"]\nextensions = [\".seed\"]\noutput = \".bin\"\n",
		self, makeFlag)
	all, err := b.cold("products", toml, func(assets string) error {
		for i := range n {
			if err := os.WriteFile(filepath.Join(assets, fmt.Sprintf("p%d.seed", i)), []byte(strconv.Itoa(i)), 0o666); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	size := float64(n) * largeSize
	fmt.Printf("\n%d products of %d MiB, first build\n", n, largeSize>>20)
	rows := [][]string{{"", "wall", "processor", "MB a second", "plain loop", "of it"}}
	for _, p := range append([]place{noCache}, b.places...) {
		t := all[p.name]
		row := []string{p.name, seconds(t.wall), seconds(t.cpu), fmt.Sprintf("%.0f", size/1e6/t.wall.Seconds()), "", ""}
		if p.remote != "" {
			loop, err := b.loop(p, n)
			if err != nil {
				return err
			}
			row[4], row[5] = fmt.Sprintf("%.0f", size/1e6/loop.Seconds()), fmt.Sprintf("%.0f%%", 100*loop.Seconds()/t.wall.Seconds())
		}
		rows = append(rows, row)
	}
	table(rows)
	return nil
}

// loop reads all products from a server, one after the other, and writes them to files.
func (b *bench) loop(at place, n int) (time.Duration, error) {
	conn, err := grpc.NewClient(strings.TrimPrefix(at.remote, "grpc://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("blobs/%x/%d", sha256.Sum256(noise(uint64(i), largeSize)), largeSize)
	}
	var all []took
	for range b.runs {
		dir, err := os.MkdirTemp(b.dir, "loop-")
		if err != nil {
			return 0, err
		}
		start := time.Now()
		for i, name := range names {
			if err := read(bytestream.NewByteStreamClient(conn), name, filepath.Join(dir, strconv.Itoa(i))); err != nil {
				return 0, err
			}
		}
		all = append(all, took{wall: time.Since(start)})
		os.RemoveAll(dir)
	}
	return median(all).wall, nil
}

func read(client bytestream.ByteStreamClient, name, to string) error {
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	defer f.Close()
	stream, err := client.Read(context.Background(), &bytestream.ReadRequest{ResourceName: name})
	if err != nil {
		return err
	}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := f.Write(m.GetData()); err != nil {
			return err
		}
	}
}
