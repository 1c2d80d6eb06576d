package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// buildbarn starts Buildbarn's servers: storage, scheduler, and machines with a runner and a worker each.
func buildbarn(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("buildbarn", flag.ContinueOnError)
	machines := flags.Int("machines", 1, "how many machines with workers")
	slots := flags.Int("slots", runtime.NumCPU(), "how many jobs run at once on each")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "kiln-testbed-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	programs, err := buildBuildbarn(ctx, dir)
	if err != nil {
		return err
	}
	isa := map[string]string{"amd64": "x86-64", "arm64": "arm-a64"}[runtime.GOARCH]
	at := map[string]string{"OSFAMILY": runtime.GOOS, "ISA": isa, "SLOTS": fmt.Sprint(*slots)}
	for _, name := range []string{"STORAGE", "SCHEDULER", "WORKERS"} {
		if at[name], err = freePort(); err != nil {
			return err
		}
	}
	b := &barn{programs: programs, at: at}
	defer b.stop()
	for _, server := range []string{"bb_storage", "bb_scheduler"} {
		if err := b.start(server, ""); err != nil {
			return err
		}
	}
	err = errors.Join(answers(ctx, "tcp", at["STORAGE"]), answers(ctx, "tcp", at["SCHEDULER"]), answers(ctx, "tcp", at["WORKERS"]))
	for i := 0; i < *machines && err == nil; i++ {
		err = b.machine(ctx, filepath.Join(dir, fmt.Sprintf("machine-%d", i)))
	}
	if err != nil {
		return err
	}
	if len(flags.Args()) > 0 {
		address := "grpc://" + at["STORAGE"]
		return with(ctx, flags.Args(), "KILN_EXECUTION="+address, "KILN_TESTBED_FARM="+address)
	}
	fmt.Printf("[execution]\nremote = \"grpc://%s\"\n", at["STORAGE"])
	<-ctx.Done()
	return nil
}

// barn is the running servers.
type barn struct {
	programs string
	at       map[string]string // environment variables with their addresses
	running  []*exec.Cmd
}

// machine starts a runner and a worker, with a folder for both.
func (b *barn) machine(ctx context.Context, dir string) error {
	for _, folder := range []string{"build", "cache"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o777); err != nil {
			return err
		}
	}
	if err := b.start("bb_runner", dir); err != nil {
		return err
	}
	if err := answers(ctx, "unix", filepath.Join(dir, "runner")); err != nil {
		return err
	}
	return b.start("bb_worker", dir)
}

// start starts a server with its configuration.
func (b *barn) start(server, dir string) error {
	_, here, _, _ := runtime.Caller(0)
	name := strings.TrimPrefix(server, "bb_")
	c := exec.Command(filepath.Join(b.programs, server), filepath.Join(filepath.Dir(here), "buildbarn", "config", name+".jsonnet"))
	c.Stderr = os.Stderr
	c.Env = append(os.Environ(), "DIR="+dir, "NAME="+filepath.Base(dir))
	for name, value := range b.at {
		c.Env = append(c.Env, name+"="+value)
	}
	err := c.Start()
	if err == nil {
		b.running = append(b.running, c)
	}
	return err
}

// stop ends all servers, workers first.
func (b *barn) stop() {
	for len(b.running) > 0 {
		c := b.running[len(b.running)-1]
		b.running = b.running[:len(b.running)-1]
		c.Process.Kill()
		c.Wait()
	}
}

// answers waits until a server accepts connections.
func answers(ctx context.Context, network, address string) error {
	for deadline := time.Now().Add(time.Minute); ; {
		conn, err := net.DialTimeout(network, address, time.Second)
		if err == nil {
			return conn.Close()
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return errors.Join(ctx.Err(), err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// buildBuildbarn compiles the servers, unless that was done before, and returns their folder.
func buildBuildbarn(ctx context.Context, temp string) (string, error) {
	_, here, _, _ := runtime.Caller(0)
	module := filepath.Join(filepath.Dir(here), "buildbarn")
	to, err := programsDir()
	if err != nil {
		return "", err
	}
	overlay, err := storageOverlay(ctx, module, temp)
	if err != nil {
		return "", err
	}
	for _, build := range [][]string{
		{filepath.Join(to, "bb_storage"), "-overlay", overlay, "./storage"},
		{filepath.Join(to, "bb_scheduler"), "github.com/buildbarn/bb-remote-execution/cmd/bb_scheduler"},
		{filepath.Join(to, "bb_runner"), "github.com/buildbarn/bb-remote-execution/cmd/bb_runner"},
		{filepath.Join(to, "bb_worker"), "./worker"},
	} {
		if err := goBuild(ctx, module, append([]string{"-o"}, build...)...); err != nil {
			return "", err
		}
	}
	return to, nil
}

// storageOverlay makes a changed copy of a package of bb_storage, with the type that plain Go's version of a function
// takes. Bazel uses another version of that function.
func storageOverlay(ctx context.Context, module, temp string) (string, error) {
	c := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "github.com/buildbarn/bb-storage/cmd/bb_storage")
	c.Dir, c.Stderr = module, os.Stderr
	dir, err := c.Output()
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(filepath.Join(string(bytes.TrimSpace(dir)), "main.go"))
	if err != nil {
		return "", err
	}
	before, after, ok := strings.Cut(string(source), "bytestream.RegisterByteStreamServer(")
	if !ok {
		return "", errors.New("bb_storage has no ByteStream service")
	}
	changed := before + "bytestream.RegisterByteStreamServer(" + strings.Replace(after, "s,", "s.(*grpc.Server),", 1)
	file := filepath.Join(temp, "storage.go")
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(module, "storage", "main.go"): file}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(temp, "overlay.json")
	return overlay, errors.Join(os.WriteFile(file, []byte(changed), 0o666), os.WriteFile(overlay, list, 0o666))
}
