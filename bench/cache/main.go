// Command cache measures the costs and savings of a shared cache, and prints the tables of
// docs/internals/performance.md:
//
//	go build -o /tmp/kiln ./cmd/kiln && go run ./bench/cache -kiln /tmp/kiln [-only hits|products|idle]
//	go run ./testbed cache -- go run ./bench/cache -kiln /tmp/kiln      # also with a bazel-remote
//
// It makes projects in temporary folders. One checkout builds and stores its results, and others fetch them: from a
// folder, from the server of Kiln's tests, which runs in this process and keeps everything in memory, and from the
// server in KILN_TESTBED_CACHE. Everything is on one machine, so a server takes processor time from kiln. Wall time and
// processor time are those of kiln alone, each the median of all runs. Runs are in turns, so that other load on the
// machine affects all of them.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/kiln-pipeline/kiln/internal/store/share/reapi/reapitest"
)

func main() {
	if len(os.Args) == 4 && os.Args[1] == makeFlag {
		exit(makeProduct(os.Args[2], os.Args[3]))
		return
	}
	if len(os.Args) == 4 && os.Args[1] == loopFlag {
		exit(readAll(os.Args[2], os.Args[3]))
		return
	}
	b := bench{}
	flag.StringVar(&b.kiln, "kiln", "kiln", "the `PROGRAM` to measure")
	flag.IntVar(&b.runs, "runs", 5, "`RUNS` of each")
	flag.IntVar(&b.assets, "assets", 10_000, "`ASSETS` of the project of small files, of a kilobyte each")
	flag.Int64Var(&b.bytes, "bytes", 1<<30, "`BYTES` of the products of the project of large ones, of 16 MiB each")
	only := flag.String("only", "", "one part: hits, products or idle")
	dir := flag.String("dir", "", "a `FOLDER` to work in; a temporary one if there is none")
	flag.Parse()
	exit(b.run(*dir, *only))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/cache:", err)
		os.Exit(1)
	}
}

type bench struct {
	kiln   string
	runs   int
	assets int
	bytes  int64

	dir    string
	places []place
}

// place is where results are shared.
type place struct{ name, folder, remote string }

// noCache is a place that shares nothing.
var noCache = place{name: "no cache"}

func (b *bench) run(dir, only string) (err error) {
	if b.kiln, err = exec.LookPath(b.kiln); err == nil {
		b.kiln, err = filepath.Abs(b.kiln)
	}
	if err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp(dir, "kiln-cache-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	server, err := reapitest.Start("")
	if err != nil {
		return err
	}
	defer server.Stop()
	packing, err := reapitest.Start("")
	if err != nil {
		return err
	}
	defer packing.Stop()
	packing.Zstd = true
	b.places = []place{{name: "folder"}, {name: "server in memory", remote: server.Address}, {name: "the same, zstd", remote: packing.Address}}
	if real := os.Getenv("KILN_TESTBED_CACHE"); real != "" {
		b.places = append(b.places, place{name: "bazel-remote", remote: real})
	}
	fmt.Printf("%s, %d processors, load %s\n", runtime.GOARCH, runtime.NumCPU(), load())
	for _, part := range []struct {
		name string
		do   func() error
	}{{"hits", b.hits}, {"products", b.products}, {"idle", b.idle}} {
		if only != "" && only != part.name {
			continue
		}
		if err := part.do(); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	fmt.Printf("\nload at the end %s\n", load())
	return nil
}

// load returns the load of the machine, if the system reports it.
func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(data))[:3], " ")
}

// took is the time of one build.
type took struct{ wall, cpu time.Duration }

// build runs kiln in a project.
func (b *bench) build(dir string, at place, args ...string) (t took, err error) {
	cmd := exec.Command(b.kiln, append([]string{"build"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "KILN_CACHE="+cmp.Or(at.folder, "off"), "KILN_CACHE_MODE=read-write")
	if at.remote != "" {
		cmd.Env = append(cmd.Env, "KILN_CACHE=")
	}
	start := time.Now()
	out, err := cmd.CombinedOutput()
	t = took{time.Since(start), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	if err == nil && strings.Contains(string(out), "warning") {
		err = errors.New("a warning")
	}
	if err != nil {
		return t, fmt.Errorf("%s, %s: %w: %s", dir, at.name, err, out)
	}
	return t, nil
}

// project makes a checkout: a kiln.toml with a cache, and the files that fill writes into its folder.
func (b *bench) project(name string, at place, toml string, fill func(assets string) error) (string, error) {
	dir := filepath.Join(b.dir, name)
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Join(dir, "assets"), 0o777); err != nil {
		return "", err
	}
	toml = "[project]\nname = \"bench\"\n" + toml
	if at.remote != "" {
		toml += fmt.Sprintf("[cache]\nremote = %q\n", at.remote)
	}
	if err := os.WriteFile(filepath.Join(dir, "kiln.toml"), []byte(toml), 0o666); err != nil {
		return "", err
	}
	return dir, fill(filepath.Join(dir, "assets"))
}

// forget removes the state and outputs of a checkout.
func forget(dir string) error {
	return errors.Join(os.RemoveAll(filepath.Join(dir, ".kiln")), os.RemoveAll(filepath.Join(dir, "build")))
}

// median returns the median of several runs, for each number separately.
func median(all []took) took {
	of := func(get func(took) time.Duration) time.Duration {
		list := make([]time.Duration, len(all))
		for i := range all {
			list[i] = get(all[i])
		}
		slices.Sort(list)
		return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
	}
	return took{of(func(t took) time.Duration { return t.wall }), of(func(t took) time.Duration { return t.cpu })}
}

// table prints rows.
func table(rows [][]string) {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, r := range rows {
		fmt.Fprintln(t, strings.Join(r, "\t")+"\t")
	}
	t.Flush()
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
