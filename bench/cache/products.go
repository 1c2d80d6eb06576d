package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/bytestream"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// makeFlag makes this program the processor that Kiln runs, which makes a large product.
const makeFlag = "-make"

// loopFlag makes this program the plain loop.
const loopFlag = "-loop"

// loops is appended to the name of the place for runs of the plain loop.
const loops = ", loop"

// largeSize is the size of a large product in bytes.
const largeSize = 16 << 20

// noise returns random bytes that are unique and cannot be compressed.
func noise(seed uint64, n int) []byte {
	var key [32]byte
	copy(key[:], strconv.FormatUint(seed, 10))
	b := make([]byte, n)
	rand.NewChaCha8(key).Read(b)
	return b
}

// makeProduct makes the product of a source file that contains a number.
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

// products measures a first build of few assets with large products. It is compared with a plain loop that reads the
// same streams from the server and writes each product to a file. The protocol has no other client to compare with;
// every client does at least what this loop does.
func (b *bench) products() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	n := max(1, int(b.bytes/largeSize))
	toml := fmt.Sprintf("[[processors]]\nname = \"noise\"\nextensions = [\".seed\"]\noutput = \".bin\"\n"+
		"command = [%q, %q, \"{in}\", \"{out}\"]\n", self, makeFlag)
	all, err := b.cold("products", toml, func(assets string) error {
		for i := range n {
			if err := os.WriteFile(filepath.Join(assets, fmt.Sprintf("p%d.seed", i)), []byte(strconv.Itoa(i)), 0o666); err != nil {
				return err
			}
		}
		return nil
	}, func(p place) (took, error) { return b.loop(self, p, n) })
	if err != nil {
		return err
	}
	size := float64(n) * largeSize
	fmt.Printf("\n%d products of %d MiB, first build\n", n, largeSize>>20)
	rows := [][]string{{"", "wall", "processor", "MB a second", "plain loop", "processor", "MB a second", "reached"}}
	for _, p := range append([]place{noCache}, b.places...) {
		rate := func(t took) string { return fmt.Sprintf("%.0f", size/1e6/t.wall.Seconds()) }
		t := all[p.name]
		row := []string{p.name, seconds(t.wall), seconds(t.cpu), rate(t), "", "", "", ""}
		if loop, ok := all[p.name+loops]; ok {
			row = append(row[:4], seconds(loop.wall), seconds(loop.cpu), rate(loop), fmt.Sprintf("%.0f%%", 100*loop.wall.Seconds()/t.wall.Seconds()))
		}
		rows = append(rows, row)
	}
	table(rows)
	return nil
}

// loop runs readAll in another process.
func (b *bench) loop(self string, at place, n int) (t took, err error) {
	dir, err := os.MkdirTemp(b.dir, "loop-")
	if err != nil {
		return t, err
	}
	defer os.RemoveAll(dir)
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("blobs/%x/%d", sha256.Sum256(noise(uint64(i), largeSize)), largeSize)
	}
	list := filepath.Join(dir, "names")
	if err := os.WriteFile(list, []byte(strings.Join(names, "\n")), 0o666); err != nil {
		return t, err
	}
	cmd := exec.Command(self, loopFlag, at.remote, list)
	cmd.Stderr = os.Stderr
	start := time.Now()
	err = cmd.Run()
	return took{time.Since(start), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}, err
}

// readAll reads the streams in a list from a server, one after the other, and writes them to files beside the list.
func readAll(remote, list string) error {
	conn, err := grpc.NewClient(strings.TrimPrefix(remote, "grpc://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	names, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	for i, name := range strings.Fields(string(names)) {
		if err := read(bytestream.NewByteStreamClient(conn), name, filepath.Join(filepath.Dir(list), strconv.Itoa(i))); err != nil {
			return err
		}
	}
	return nil
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
