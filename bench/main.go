// Command bench measures Kiln and other build systems on the same project and in turns, and prints tables and a plot:
//
//	go run ./bench
//
// Every ratio is from one run on one machine. The products of a tool are compared with the expected ones, and a wrong
// build has no numbers. Peers that are not installed are listed and left out. docs/internals/performance.md describes
// what is measured and how.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

type options struct {
	sizes   []int
	runs    int
	heavy   int
	jobs    int
	peers   []string
	only    []string
	dir     string
	svg     string
	keep    string
	kiln    string
	million bool
	full    bool
	lay     bool
}

func main() {
	runtime.LockOSThread() // see dieWithParent
	if len(os.Args) > 3 && os.Args[1] == meterFlag {
		if err := runMeter(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	o, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	if len(o.sizes) == 0 && !o.million {
		if err := retell(o, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := bench(ctx, o, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var o options
	fl := flag.NewFlagSet("bench", flag.ExitOnError)
	sizes := fl.String("sizes", "1000,10000,100000", "numbers of `assets`, each a multiple of 100; none: only print and plot what -keep has")
	fl.IntVar(&o.runs, "runs", 5, "runs of each scenario")
	fl.IntVar(&o.heavy, "heavy", 0, "runs of what takes as long as a clean build (default 3, and 1 from 100,000 assets on)")
	fl.IntVar(&o.jobs, "j", 0, "jobs at once, for all tools; 0 gives the peers one a core, and leaves it to kiln")
	peers := fl.String("peers", "kiln,kiln cp,ninja,samurai,make,tup", "`tools` that take part")
	only := fl.String("only", "", "`scenarios` to run: "+strings.Join(stepNames(), ",")+" (default all)")
	fl.StringVar(&o.dir, "dir", os.TempDir(), "where to work; there should be 25 KB an asset and tool")
	fl.StringVar(&o.svg, "svg", "", "write a plot to `FILE`")
	fl.StringVar(&o.keep, "keep", "", "keep what was measured in `FILE`, beside what it has of other sizes, which is plotted too")
	fl.StringVar(&o.kiln, "kiln", "", "measure this `program` instead of building the one of the tree")
	fl.BoolVar(&o.million, "million", false, "build nothing-changed at 1,000,000 assets too, which takes hours with peers other than ninja")
	fl.BoolVar(&o.full, "full", false, "let the peers do from 100,000 assets on, too, what is a clean build again for them")
	fl.BoolVar(&o.lay, "lay", false, "give ninja what its clean build would have made at any size, as from 1,000,000 assets on: for what comes after")
	quick := fl.Bool("quick", false, "1,000 assets, one run: that all is right, and no more")
	fl.Parse(args)
	if *quick {
		*sizes, o.runs, o.heavy = "1000", 1, 1
	}
	for word := range strings.FieldsFuncSeq(*sizes, func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(word)
		if err != nil || n < folderSize || n%folderSize != 0 || n > 9_999_900 {
			return o, fmt.Errorf("-sizes: %q is not a multiple of %d", word, folderSize)
		}
		o.sizes = append(o.sizes, n)
	}
	if o.runs < 1 || o.jobs < 0 || o.heavy < 0 {
		return o, fmt.Errorf("-runs is at least 1, -j and -heavy at least 0")
	}
	o.peers = strings.Split(*peers, ",")
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	for _, name := range o.only {
		if !slices.Contains(stepNames(), name) {
			return o, fmt.Errorf("-only: there is no %q, but %s", name, strings.Join(stepNames(), ", "))
		}
	}
	return o, nil
}

func stepNames() []string {
	var names []string
	for _, st := range allSteps() {
		names = append(names, st.name)
	}
	return names
}

func bench(ctx context.Context, o options, out, log io.Writer) (err error) {
	dir, err := os.MkdirTemp(o.dir, "kiln-bench-")
	if err != nil {
		return err
	}
	v := newVolumes(filepath.Join(dir, "volumes"))
	defer func() {
		if cerr := v.close(); cerr != nil && err == nil {
			err = cerr
		} else if cerr == nil {
			os.RemoveAll(dir)
		}
	}()
	if o.kiln == "" {
		o.kiln = filepath.Join(dir, "kiln")
		build := exec.Command("go", "build", "-o", o.kiln, "github.com/kiln-pipeline/kiln/cmd/kiln")
		build.Env = append(os.Environ(), "CGO_ENABLED=0") // as in releases; with a C library the start takes 1.5 ms longer
		if said, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("go build: %w %s", err, said)
		}
	}
	tools, err := choose(o, out)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\nMachine: %s, %d cores, %s; %s. Jobs at once: %s.\n\n",
		machine(), runtime.NumCPU(), runtime.GOOS, v.kind(), jobsAtOnce(o.jobs))
	r := newResults()
	if o.million {
		o.sizes = append(o.sizes, million)
	}
	plotted, err := r.load(o.keep, o.sizes)
	if err != nil {
		return err
	}
	var names []string
	for _, t := range tools {
		names = append(names, t.name())
	}
	for i, size := range o.sizes {
		s := &session{
			size: size, jobs: o.jobs, runs: o.runs, heavy: o.heavy, full: o.full, lay: o.lay, only: o.only,
			tools: tools, volumes: v, results: r, log: log,
		}
		if s.heavy == 0 {
			s.heavy = 3
			if size >= large {
				s.heavy = 1
			}
		}
		if o.million && i == len(o.sizes)-1 {
			s.only, s.heavy = []string{"noop"}, 1
		}
		before := loadAverage()
		err := s.all(ctx)
		if serr := r.save(o.keep); err != nil || serr != nil {
			return errors.Join(err, serr) // measurements before an interruption are kept
		}
		r.table(out, size, names)
		fmt.Fprintf(out, "Load average before and after: %s; %s.\n\n", before, loadAverage())
	}
	r.verdict(out)
	if o.svg != "" {
		if err := writePlot(o.svg, r, plotted, append(names, floorName)); err != nil {
			return err
		}
	}
	return r.err()
}

// retell prints kept measurements, and measures nothing.
func retell(o options, out io.Writer) error {
	r := newResults()
	sizes, err := r.load(o.keep, nil)
	if err != nil {
		return err
	}
	if len(sizes) == 0 {
		return fmt.Errorf("there is nothing to print: -keep %q has no measurements", o.keep)
	}
	for _, size := range sizes {
		r.table(out, size, o.peers)
	}
	r.verdict(out)
	if o.svg == "" {
		return nil
	}
	return writePlot(o.svg, r, sizes, append(o.peers, floorName))
}

// choose finds the tools, and prints which ones are not installed.
func choose(o options, out io.Writer) ([]tool, error) {
	var tools []tool
	for _, name := range o.peers {
		all := allTools(o.kiln)
		i := slices.IndexFunc(all, func(t tool) bool { return t.name() == strings.TrimSpace(name) })
		if i < 0 {
			return nil, fmt.Errorf("-peers: there is no %q", name)
		}
		version, err := all[i].find()
		if err != nil {
			fmt.Fprintf(out, "- %s: left out: %v\n", name, err)
			continue
		}
		fmt.Fprintf(out, "- %s: %s\n", name, version)
		tools = append(tools, all[i])
	}
	if len(tools) == 0 {
		return nil, fmt.Errorf("there is no tool to measure")
	}
	return tools, nil
}

func jobsAtOnce(n int) string {
	if n == 0 {
		return fmt.Sprintf("kiln as it likes, the others %d", runtime.NumCPU())
	}
	return strconv.Itoa(n)
}
