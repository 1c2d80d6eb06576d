package secret

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const helperEnv = "SECRET_HELPER"

func TestMain(m *testing.M) {
	switch os.Getenv(helperEnv) {
	case "":
		os.Exit(m.Run())
	case "hide": // hides its secrets, says so, and waits
		Hide()
		if err := Exposed(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(os.Getenv("KILN_CACHE_TOKEN"), os.Getenv("GITHUB_TOKEN"), os.Getenv("PROXY"), os.Getenv("LAST_KEY"))
		os.Stdin.Read(make([]byte, 1))
	case "read": // reads what another process of the same user has, without capabilities, as programs in the sandbox
		runtime.LockOSThread()
		var none [2]unix.CapUserData
		if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
			fmt.Println(err)
		}
		fmt.Print(read(os.Args[1]))
	}
}

// read tries what is not to be possible, and names what is.
func read(pid string) (open string) {
	for _, name := range []string{"environ", "mem", "maps", "auxv", "cwd", "fd/0", "root"} {
		path := "/proc/" + pid + "/" + name
		if f, err := os.Open(path); err == nil {
			f.Close()
			open += name + " "
		} else if errors.Is(err, fs.ErrNotExist) {
			open += name + " is missing "
		}
	}
	number, _ := strconv.Atoi(pid)
	if err := unix.PtraceSeize(number); err == nil {
		open += "ptrace "
	}
	return open
}

// TestHide: other processes of the user no longer see the values of secrets, and this one still has them.
func TestHide(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = []string{helperEnv + "=hide", "KILN_CACHE_TOKEN=s3cret1", "HOME=/home/ann", "GITHUB_TOKEN=s3cret2",
		"RUNNER_TRACKING_ID=github_7",
		"PROXY=http://ann:s3cret3@proxy.example.com", "EMPTY_KEY=", "PWD=/pwd", "LAST_KEY=s3cret4"}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	line := make([]byte, 200)
	n, _ := out.Read(line)
	if got, want := string(line[:n]), "s3cret1 s3cret2 http://ann:s3cret3@proxy.example.com s3cret4\n"; got != want {
		t.Fatalf("the process itself has %q, not %q", got, want)
	}
	pid := strconv.Itoa(cmd.Process.Pid)
	environ, err := os.ReadFile("/proc/" + pid + "/environ")
	if os.Getuid() == 0 { // as whom this test can read it
		if err != nil {
			t.Fatal(err)
		}
		for _, kept := range []string{"HOME=/home/ann\x00", "RUNNER_TRACKING_ID=github_7\x00",
			"PWD=/pwd\x00", "KILN_CACHE_TOKEN=\x00", "EMPTY_KEY=\x00"} {
			if !bytes.Contains(environ, []byte(kept)) {
				t.Errorf("the environment has no %q: %q", kept, environ)
			}
		}
	} else if err == nil {
		t.Errorf("another process can open its environment")
	}
	if bytes.Contains(environ, []byte("s3cret")) {
		t.Errorf("the environment has a secret: %q", environ)
	}
	spy := exec.Command(exe, pid)
	spy.Env = []string{helperEnv + "=read"}
	if said, err := spy.CombinedOutput(); err != nil || strings.TrimSpace(string(said)) != "" {
		t.Errorf("another process reaches %s%v", said, err)
	}
}

func TestEnviron(t *testing.T) {
	t.Setenv("KILN_CACHE_TOKEN", "x")
	t.Setenv("KILN_CACHE_SERVER", "grpc://y")
	t.Setenv("GITHUB_TOKEN", "z")
	env := Environ()
	if slices.Contains(env, "KILN_CACHE_TOKEN=x") || !slices.Contains(env, "KILN_CACHE_SERVER=grpc://y") ||
		!slices.Contains(env, "GITHUB_TOKEN=z") {
		t.Errorf("%q", env)
	}
}

func TestIs(t *testing.T) {
	for _, v := range []string{"KILN_CACHE_USER=a", "AWS_SECRET_ACCESS_KEY=a", "npm_config_auth=a", "HTTPS_PROXY=http://a:b@c", "DB_PASSWORD=x"} {
		if name, value, _ := strings.Cut(v, "="); !is(name, value) {
			t.Error(v)
		}
	}
	for _, v := range []string{"HOME=/a", "PWD=/a", "PATH=/a:/b", "KILN_CACHE_SERVER=grpcs://a/b@c", "KEYBOARD=us", "TERM=xterm", "X_KEY="} {
		if name, value, _ := strings.Cut(v, "="); is(name, value) {
			t.Error(v)
		}
	}
}
