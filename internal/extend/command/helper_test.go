package command

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/kiln-pipeline/kiln/processor/processortest"
)

// helperEnv makes the test binary a program for the tests to run: they need no shell, and
// so they are the same on every system.
const helperEnv = "KILN_COMMAND_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) == "1" {
		if err := helper(os.Args[1], os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(99)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// helper is the program; mode says what it does.
func helper(mode string, args []string) error {
	switch mode {
	case "copy": // IN OUT...
		data, err := os.ReadFile(args[0])
		for _, out := range args[1:] {
			if err == nil {
				err = os.WriteFile(out, append([]byte(filepath.Base(out)+": "), data...), 0o600)
			}
		}
		return err
	case "args": // OUT...: its own arguments, a line each
		return os.WriteFile(args[0], []byte(strings.Join(args, "\n")), 0o600)
	case "env": // OUT
		env := slices.Sorted(slices.Values(os.Environ()))
		return os.WriteFile(args[0], []byte(strings.Join(env, "\n")), 0o600)
	case "stdin": // OUT: what is on standard input
		return keepStdin(args[0])
	case "tree": // OUT: all that is in the current folder
		return os.WriteFile(args[0], tree(), 0o600)
	case "say": // OUT STDOUT STDERR CODE
		os.WriteFile(args[0], nil, 0o600)
		os.Stdout.WriteString(args[1])
		os.Stderr.WriteString(args[2])
		code, err := strconv.Atoi(args[3])
		if err != nil {
			return err
		}
		os.Exit(code)
	case "spam": // BYTES: to standard output, then fails
		n, err := strconv.Atoi(args[0])
		if err != nil {
			return err
		}
		fmt.Println("the first line")
		for n > 0 {
			k, _ := os.Stdout.WriteString(strings.Repeat("0123456789abcde\n", 1<<12))
			n -= k
		}
		fmt.Println("the last line")
		os.Exit(1)
	case "dep": // OUT DEP TEXT
		if err := os.WriteFile(args[0], nil, 0o600); err != nil {
			return err
		}
		return os.WriteFile(args[1], []byte(args[2]), 0o600)
	case "link": // OUT TARGET
		return os.Symlink(args[1], args[0])
	case "folder": // OUT
		return os.Mkdir(args[0], 0o700)
	case "elsewhere": // OUT: makes its folder a link to another one
		if err := os.RemoveAll(filepath.Dir(args[0])); err != nil {
			return err
		}
		return os.Symlink(args[1], filepath.Dir(args[0]))
	case "nothing":
	case "cat": // OUT IN...: those that are there
		var all []byte
		for _, in := range args[1:] {
			data, _ := os.ReadFile(in)
			all = append(all, data...)
		}
		return os.WriteFile(args[0], all, 0o600)
	case "need": // OUT IN...: all must be there
		for _, in := range args[1:] {
			if _, err := os.ReadFile(in); err != nil {
				return err
			}
		}
		return os.WriteFile(args[0], nil, 0o600)
	case "list": // OUT IN FOLDER
		entries, err := os.ReadDir(args[2])
		var all string
		for _, e := range entries {
			all += e.Name() + "\n"
		}
		return errors.Join(err, os.WriteFile(args[0], []byte(all), 0o600))
	case "ask": // OUT IN PATH...: which of these are there?
		var all string
		for _, p := range args[2:] {
			if _, err := os.Stat(p); err == nil {
				all += "yes "
			} else {
				all += "no "
			}
		}
		return os.WriteFile(args[0], []byte(all), 0o600)
	case "child": // MODE ARGUMENT...: a child of a child does it
		exe, err := os.Executable()
		if err != nil {
			return err
		}
		return exec.Command(exe, args...).Run()
	case "race": // OUT IN FILE DEP ADDRESS: reads the file, and waits until the test has changed it
		_, err := os.ReadFile(args[2])
		if errors.Is(err, syscall.EISDIR) {
			_, err = os.ReadDir(args[2])
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := started(args[4]); err != nil {
			return err
		}
		return errors.Join(os.WriteFile(args[0], nil, 0o600), os.WriteFile(args[3], []byte("x: "+args[2]), 0o600))
	case "overwrite": // FILE OUT
		return errors.Join(os.WriteFile(args[0], []byte("spoilt"), 0o600), os.WriteFile(args[1], nil, 0o600))
	case "remove": // FILE OUT
		return errors.Join(os.RemoveAll(args[0]), os.WriteFile(args[1], nil, 0o600))
	case "connect": // ADDRESS OUT
		c, err := net.Dial("tcp", args[0])
		if err == nil {
			c.Close()
		}
		return errors.Join(err, os.WriteFile(args[1], nil, 0o600))
	case "many": // OUT IN COUNT: opens as many files that are not there
		n, err := strconv.Atoi(args[2])
		for i := range n {
			os.ReadFile("many/" + strconv.Itoa(i))
		}
		return errors.Join(err, os.WriteFile(args[0], nil, 0o600))
	case "hold": // OUT MEBIBYTES: and writes how many bytes that made, if the system tells
		n, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		touch(n << 20)
		return os.WriteFile(args[0], fmt.Append(nil, ownPeak()), 0o600)
	case "nurse": // OUT MEBIBYTES: a child of its own holds that much
		exe, err := os.Executable()
		if err != nil {
			return err
		}
		return exec.Command(exe, "hold", args[0], args[1]).Run()
	case "crash":
		panic("crash") // exit code 2
	case "hang": // ADDRESS: with a child that hangs too
		if err := child("wait", args[0]); err != nil {
			return err
		}
		return wait(args[0])
	case "leave": // ADDRESS OUT: with a child that stays
		if err := child("wait", args[0]); err != nil {
			return err
		}
		if err := started(args[0]); err != nil {
			return err
		}
		return os.WriteFile(args[1], nil, 0o600)
	case "wait": // ADDRESS
		return wait(args[0])
	default:
		return systemHelper(mode, args)
	}
	return nil
}

func keepStdin(out string) error {
	data, err := io.ReadAll(os.Stdin)
	return errors.Join(err, os.WriteFile(out, data, 0o600))
}

// touch takes memory, all of it.
func touch(bytes int) {
	b := make([]byte, bytes)
	for i := 0; i < len(b); i += 4 << 10 {
		b[i] = 1
	}
	runtime.KeepAlive(b)
}

// child starts the helper again, with the same standard output.
func child(mode string, args ...string) error {
	cmd := exec.Command(os.Args[0], append([]string{mode}, args...)...)
	if exe, err := os.Executable(); err == nil {
		cmd = exec.Command(exe, append([]string{mode}, args...)...)
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Start()
}

// wait tells the test that it runs, and stays until it is killed or the test ends.
func wait(address string) error {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	fmt.Fprintln(c, os.Getpid())
	io.Copy(io.Discard, c)
	return nil
}

// started waits until the test has seen the child: it says so by closing a connection of ours.
func started(address string) error {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	fmt.Fprintln(c, "waits")
	io.Copy(io.Discard, c)
	return nil
}

// tree lists the current folder: path, size and time of each file, and time of each folder.
func tree() []byte {
	var b strings.Builder
	fs.WalkDir(os.DirFS("."), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		size := "folder"
		if !e.IsDir() {
			size = strconv.FormatInt(info.Size(), 10)
		}
		fmt.Fprintf(&b, "%s %s %s\n", name, size, info.ModTime().UTC().Format("2006-01-02"))
		return nil
	})
	return []byte(b.String())
}

// helperConfig is a command that runs the helper.
func helperConfig(args ...string) Config {
	return Config{
		Name:       "helped",
		Command:    append([]string{"helper"}, args...),
		Extensions: []string{".txt"},
		Output:     ".bin",
		Network:    true,                              // for the tests that wait for each other; TestNetwork has none
		Env:        []string{helperEnv, "GOCOVERDIR"}, // a binary of go test -cover complains without the second
	}
}

// helperCase is a job for it.
func helperCase(t *testing.T) processortest.Case {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{helperEnv: "1"}
	if testing.CoverMode() != "" {
		env["GOCOVERDIR"] = t.TempDir()
	}
	return processortest.Case{
		Asset: "a/water.txt",
		Files: map[string][]byte{"a/water.txt": []byte("deep")},
		Env:   env,
		Tools: map[string]string{"helper": exe},
	}
}
