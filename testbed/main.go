// Testbed starts servers that Kiln uses, for tests by hand and for docs, and stops them again.
//
//	go run ./testbed cache [-cache_dir DIR] [-- COMMAND ARGS...]
//
// starts bazel-remote on free ports of this machine, waits until it answers, and prints the lines for kiln.toml. With a
// command, it runs the command with KILN_TESTBED_CACHE set to the server's address, and then stops the server; else the
// server ends with Ctrl-C.
//
//	go run ./testbed farm [-workers N] [-- COMMAND ARGS...]
//
// starts a small server of the Remote Execution API on this machine, with workers: the one that Kiln's tests use. It
// keeps everything in memory. With a command, it runs the command with KILN_EXECUTION set to the server's address.
//
//	go run ./testbed buildbarn [-machines N] [-slots N] [-- COMMAND ARGS...]
//
// does the same with the servers of Buildbarn, on Linux: storage, scheduler, and the runners and workers of N machines.
// KILN_TESTBED_FARM is the address as well, for tests.
//
//	go run ./testbed measure [-textures N]
//
// builds projects here and with workers on this machine, and prints a table of the times.
//
// The servers are tools of modules in the folders servers and buildbarn, so that their dependencies are not in Kiln's
// module. The first run compiles them, which takes some minutes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/kiln-pipeline/kiln/internal/store/share/reapi/reapitest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "testbed:", err)
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			os.Exit(exit.ExitCode())
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) > 0 && args[0] == "farm":
		return farm(ctx, args[1:])
	case len(args) > 0 && args[0] == "measure":
		return measure(ctx, args[1:])
	case len(args) > 0 && args[0] == "buildbarn":
		return buildbarn(ctx, args[1:])
	case len(args) == 0 || args[0] != "cache":
		return errors.New("usage: go run ./testbed cache [-cache_dir DIR] [-- COMMAND ARGS...]\n" +
			"       go run ./testbed farm [-workers N] [-- COMMAND ARGS...]\n" +
			"       go run ./testbed buildbarn [-machines N] [-slots N] [-- COMMAND ARGS...]\n" +
			"       go run ./testbed measure [-textures N]")
	}
	flags := flag.NewFlagSet("cache", flag.ContinueOnError)
	dir := flags.String("cache_dir", "", "keep what the server holds in `DIR`; without it, it is removed at the end")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if *dir == "" {
		temp, err := os.MkdirTemp("", "kiln-testbed-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(temp)
		*dir = temp
	}
	program, err := build(ctx)
	if err != nil {
		return err
	}
	address, wait, err := start(ctx, program, *dir)
	if err != nil {
		return err
	}
	defer wait()
	if len(flags.Args()) > 0 {
		return with(ctx, flags.Args(), "KILN_TESTBED_CACHE=grpc://"+address)
	}
	fmt.Printf("[cache]\nremote = \"grpc://%s\"\nmode   = \"read-write\"\n", address)
	<-ctx.Done()
	return nil
}

// with runs a command with environment variables.
func with(ctx context.Context, command []string, variables ...string) error {
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.Env = append(os.Environ(), variables...)
	return c.Run()
}

// farm starts a server with workers.
func farm(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("farm", flag.ContinueOnError)
	workers := flags.Int("workers", runtime.NumCPU(), "how many jobs run at once")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "kiln-testbed-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	f, err := reapitest.StartFarm(dir, *workers)
	if err != nil {
		return err
	}
	defer f.Stop()
	if len(flags.Args()) > 0 {
		return with(ctx, flags.Args(), "KILN_EXECUTION="+f.Address)
	}
	fmt.Printf("[execution]\nremote = %q\n", f.Address)
	<-ctx.Done()
	return nil
}

// build compiles bazel-remote, unless Go has already cached it. The module of servers is beside this file.
func build(ctx context.Context) (string, error) {
	_, here, _, _ := runtime.Caller(0)
	to, err := programsDir()
	if err != nil {
		return "", err
	}
	program := filepath.Join(to, "bazel-remote")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	return program, goBuild(ctx, filepath.Join(filepath.Dir(here), "servers"), "-o", program, "github.com/buchgr/bazel-remote/v2")
}

// programsDir returns the folder of compiled servers.
func programsDir() (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "kiln-testbed"), err
}

// goBuild compiles in a module.
func goBuild(ctx context.Context, module string, args ...string) error {
	c := exec.CommandContext(ctx, "go", append([]string{"build"}, args...)...)
	c.Dir, c.Stdout, c.Stderr = module, os.Stderr, os.Stderr
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	return c.Run()
}

// start starts the server, and returns its address when it answers. wait ends it.
func start(ctx context.Context, program, dir string) (address string, wait func(), err error) {
	grpc, err := freePort()
	if err != nil {
		return "", nil, err
	}
	http, err := freePort()
	if err != nil {
		return "", nil, err
	}
	c := exec.Command(program, "--dir", dir, "--max_size", "5", "--grpc_address", grpc, "--http_address", http, "--access_log_level", "none")
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		return "", nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Wait()
	}()
	wait = func() {
		c.Process.Kill() // its content may be truncated, which a cache tolerates
		<-ended
	}
	for deadline := time.Now().Add(time.Minute); ; {
		conn, err := net.DialTimeout("tcp", grpc, time.Second)
		if err == nil {
			conn.Close()
			return grpc, wait, nil
		}
		select {
		case <-ended:
			return "", nil, errors.New("bazel-remote ended before it answered")
		case <-ctx.Done():
			wait()
			return "", nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			wait()
			return "", nil, fmt.Errorf("bazel-remote does not answer at %s", grpc)
		}
	}
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
