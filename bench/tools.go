package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
)

// tool is a build system that is measured.
type tool interface {
	name() string

	// find returns the version of the installed tool, or an error that says what to install.
	find() (string, error)

	// prepare writes the tool's description of the project. It is called again when files were added or removed. Its
	// time is not measured.
	prepare(p *project) error

	// command returns the command line that builds, run in the project's folder, with a number of jobs at once. 0 means
	// one per core; kiln then uses its default, and runs one more program. ninja's default is also higher, and gains
	// nothing on two cores.
	command(jobs int) []string

	// output returns the folder of products, and joinName the name of a join in it. A copy has the name of its source.
	output(p *project) string
	joinName(folder int) string

	// isJoin returns an error unless data is a join of the parts of which want is the concatenation.
	isJoin(data, want []byte) error

	// sweeps reports whether products are deleted with their sources.
	sweeps() bool

	// more returns the number of products of sources that only this tool has.
	more(p *project) int

	// built compares the tool's output with the number of jobs that had to run, and the number that had to fail.
	built(said []byte, want, failed int) error

	// takes reports whether it takes part in a scenario.
	takes(step string) bool
}

// allTools returns the tools for -peers, in the order of the tables. The others are compared with ninja.
func allTools(kilnFile string) []tool {
	k := kiln{file: kilnFile}
	return []tool{k, kilnCommand{k}, ninja{}, samurai{}, gnuMake{}, tup{}}
}

// reference is the tool that all others are compared with.
const reference = "ninja"

// kiln copies in its own process, and joins a folder by packing a model.
type kiln struct{ file string }

func (kiln) name() string { return "kiln" }

func (k kiln) find() (string, error) {
	out, err := exec.Command(k.file, "version").Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", k.file, err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line, nil
}

func (kiln) prepare(p *project) error {
	const manifest = "[project]\nname = \"bench\"\n"
	if p.everyday {
		return prepareEveryday(p, manifest)
	}
	return prepareKiln(p, manifest)
}

// prepareEveryday adds what real projects have: a rule that matches nothing, a failing job, warnings, and parcels with
// four fifths of the assets.
func prepareEveryday(p *project, manifest string) error {
	dir := filepath.Join(p.dir, "assets", "everyday")
	if _, err := os.Lstat(dir); err == nil {
		return nil
	}
	err := os.Mkdir(dir, 0o777)
	for i := range warned {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, fmt.Sprintf("warned%d.gltf", i)),
			[]byte(`{"asset":{"version":"2.0"},"extensionsUsed":["ACME_fur"],"extensionsRequired":["ACME_fur"]}`), 0o666))
	}
	manifest += "\n[[rules]]\nmatch = \"nowhere/**\"\nprocessor = \"copy\"\n"
	for i := range 4 {
		manifest += fmt.Sprintf("\n[[parcels]]\nname = \"part%d\"\nassets = [\"????[%d%d]/*.bin\"]\n", i, 2*i, 2*i+1)
	}
	return errors.Join(err,
		os.WriteFile(filepath.Join(dir, "broken.gltf"), []byte("{"), 0o666),
		os.WriteFile(filepath.Join(p.dir, "kiln.toml"), []byte(manifest), 0o666))
}

// warned is the number of assets with a warning in an everyday project.
const warned = 5

func prepareKiln(p *project, manifest string) error {
	for f := range p.folders() {
		name := filepath.Join(p.dir, "assets", folderName(f), "join.gltf")
		if _, err := os.Lstat(name); err == nil {
			break // added or removed files are not in joins
		}
		if err := os.WriteFile(name, gltfJoin(f, p.assetSize()), 0o666); err != nil {
			return err
		}
	}
	return writeOnce(filepath.Join(p.dir, "kiln.toml"), manifest)
}

// writeOnce writes a file if it does not exist: Kiln would otherwise check its project file because of the new time.
func writeOnce(name, text string) error {
	if _, err := os.Lstat(name); err == nil {
		return nil
	}
	return os.WriteFile(name, []byte(text), 0o666)
}

func (k kiln) command(jobs int) []string {
	if jobs == 0 {
		return []string{k.file, "build", "-q"}
	}
	return []string{k.file, "build", "-q", "-j", strconv.Itoa(jobs)}
}

func (kiln) output(p *project) string       { return filepath.Join(p.dir, "build", "pc") }
func (kiln) joinName(f int) string          { return folderName(f) + "/join.gltf.glb" }
func (kiln) isJoin(data, want []byte) error { return isGLB(data, want) }
func (kiln) sweeps() bool                   { return true }

func (kiln) more(p *project) int {
	if p.everyday {
		return warned
	}
	return 0
}

func (kiln) takes(string) bool { return true }

var summary = regexp.MustCompile(`(?m)^(\d+) assets? built, \d+ up to date(?:, (\d+) failed)?[,\w ]* in [\d.]+ s`)

func (kiln) built(said []byte, want, failed int) error {
	m := summary.FindSubmatch(said)
	if m == nil {
		return fmt.Errorf("no summary in what kiln said: %s", bytes.TrimSpace(said))
	}
	if n, _ := strconv.Atoi(string(m[1])); n != want && n != want-failed { // a failed job may have run now or before
		return fmt.Errorf("built %d assets, not %d", n, want)
	}
	if n, _ := strconv.Atoi(string(m[2])); n != failed {
		return fmt.Errorf("%d failed, not %d: %s", n, failed, bytes.TrimSpace(said))
	}
	return nil
}

// kilnCommand copies with cp, like the other tools. A command declares its inputs for all its assets together, so the
// joins, one job in 101, are made without a command.
type kilnCommand struct{ kiln }

func (kilnCommand) name() string { return "kiln cp" }

func (kilnCommand) prepare(p *project) error {
	return prepareKiln(p, `[project]
name = "bench"

[[processors]]
name    = "cp"
command = ["cp", "{in}", "{out}"]

[[rules]]
match     = "**/*.bin"
processor = "cp"
`)
}

// takes is only true for clean builds: what does not run is the same as for kiln.
func (kilnCommand) takes(step string) bool { return step == "clean" }

// peer is the common part of the other tools: cp and cat, into a folder out, with every file in a manifest.
type peer struct{}

func (peer) output(p *project) string { return filepath.Join(p.dir, "out") }
func (peer) joinName(f int) string    { return folderName(f) + "/join" }
func (peer) sweeps() bool             { return false }
func (peer) more(*project) int        { return 0 }
func (peer) takes(string) bool        { return true }

func (peer) built([]byte, int, int) error { return nil }

func (peer) isJoin(data, want []byte) error {
	if !bytes.Equal(data, want) {
		return errors.New("is not the bytes of its hundred files")
	}
	return nil
}

// findPeer runs a program to get its version.
func findPeer(program, debian string) (string, error) {
	out, err := exec.Command(program, "--version").Output()
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("not installed (Debian package %s)", debian)
	}
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line, nil
}

// copies calls each with every file that is copied.
func (p *project) copies(each func(name string)) {
	for i := range p.versions {
		each(assetName(i))
	}
	if p.extra != nil {
		each(extraName(p.extra.folder))
	}
	if p.everyday {
		each(emptyName)
	}
}

// joinInputs returns the assets of a folder, below prefix.
func joinInputs(prefix string, folder int) string {
	var names []string
	for i := folder * folderSize; i < (folder+1)*folderSize; i++ {
		names = append(names, prefix+assetName(i))
	}
	return strings.Join(names, " ")
}

// writeFile writes a manifest, which is about 10 MB at 100,000 assets.
func writeFile(name string, write func(w *bufio.Writer)) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	write(w)
	return errors.Join(w.Flush(), f.Close())
}

// atOnce returns the number of jobs for a peer.
func atOnce(jobs int) string {
	if jobs == 0 {
		jobs = runtime.NumCPU()
	}
	return strconv.Itoa(jobs)
}

type ninja struct{ peer }

func (ninja) name() string          { return "ninja" }
func (ninja) find() (string, error) { return findPeer("ninja", "ninja-build") }

func (ninja) prepare(p *project) error {
	return writeFile(filepath.Join(p.dir, "build.ninja"), func(w *bufio.Writer) {
		fmt.Fprint(w, "rule cp\n  command = cp $in $out\nrule cat\n  command = cat $in > $out\n")
		p.copies(func(name string) { fmt.Fprintf(w, "build out/%s: cp assets/%s\n", name, name) })
		for f := range p.folders() {
			fmt.Fprintf(w, "build out/%s/join: cat %s\n", folderName(f), joinInputs("assets/", f))
		}
	})
}

// lay writes what a build would have made, and the log that ninja keeps of it. The log is of version 5: a line for each
// output with the start and end of the build, the time of the output, its path, and the hash of its command.
func (ninja) lay(p *project) error {
	put := func(w *bufio.Writer, name, command string, data []byte) error {
		at := filepath.Join(p.dir, "out", name)
		if err := os.WriteFile(at, data, 0o666); err != nil {
			return err
		}
		info, err := os.Stat(at)
		if err == nil {
			_, err = fmt.Fprintf(w, "0\t1\t%d\tout/%s\t%x\n", info.ModTime().UnixNano(), name, murmur64(command))
		}
		return err
	}
	var err error
	lerr := writeFile(filepath.Join(p.dir, ".ninja_log"), func(w *bufio.Writer) {
		fmt.Fprint(w, "# ninja log v5\n")
		for f := 0; f < p.folders() && err == nil; f++ {
			err = os.MkdirAll(filepath.Join(p.dir, "out", folderName(f)), 0o777)
			var all []byte
			for i := f * folderSize; i < (f+1)*folderSize && err == nil; i++ {
				n := len(all)
				all = p.content(all, i)
				err = put(w, assetName(i), fmt.Sprintf("cp assets/%s out/%[1]s", assetName(i)), all[n:])
			}
			if join := folderName(f) + "/join"; err == nil {
				err = put(w, join, fmt.Sprintf("cat %s > out/%s", joinInputs("assets/", f), join), all)
			}
		}
	})
	if err = errors.Join(err, lerr); err != nil {
		return err
	}
	cmd := exec.Command("ninja", "-n")
	cmd.Dir = p.dir
	said, err := cmd.CombinedOutput()
	if err == nil && !bytes.Contains(said, []byte("no work to do")) {
		err = fmt.Errorf("it does not take what was laid out for what it built: %.300s", said)
	}
	return err
}

// murmur64 is MurmurHash64A by Austin Appleby with ninja's seed, for little-endian machines.
func murmur64(s string) uint64 {
	const m, seed = 0xc6a4a7935bd1e995, 0xDECAFBADDECAFBAD
	h := seed ^ uint64(len(s))*m
	for ; len(s) >= 8; s = s[8:] {
		k := binary.LittleEndian.Uint64([]byte(s[:8])) * m
		h = (h ^ (k^k>>47)*m) * m
	}
	if len(s) > 0 {
		var last [8]byte
		copy(last[:], s)
		h = (h ^ binary.LittleEndian.Uint64(last[:])) * m
	}
	h = (h ^ h>>47) * m
	return h ^ h>>47
}

func (ninja) command(jobs int) []string {
	return []string{"ninja", "--quiet", "-j", atOnce(jobs)}
}

// samurai reads ninja's manifest.
type samurai struct{ ninja }

func (samurai) name() string          { return "samurai" }
func (samurai) find() (string, error) { return findPeer("samu", "samurai") }

func (samurai) command(jobs int) []string {
	return []string{"samu", "-j", atOnce(jobs)}
}

type gnuMake struct{ peer }

func (gnuMake) name() string          { return "make" }
func (gnuMake) find() (string, error) { return findPeer("make", "make") }

func (gnuMake) prepare(p *project) error {
	return writeFile(filepath.Join(p.dir, "Makefile"), func(w *bufio.Writer) {
		fmt.Fprint(w, ".PHONY: all\nall:\n")
		p.copies(func(name string) {
			fmt.Fprintf(w, "all: out/%s\nout/%s: assets/%s | out/%s\n\tcp $< $@\n", name, name, name, filepath.Dir(name))
		})
		for f := range p.folders() {
			dir := folderName(f)
			fmt.Fprintf(w, "all: out/%s/join\nout/%s/join: %s | out/%s\n\tcat $^ > $@\nout/%s:\n\tmkdir -p $@\n",
				dir, dir, joinInputs("assets/", f), dir, dir)
		}
	})
}

// command turns off make's built-in rules, because make would try each of them on each file.
func (gnuMake) command(jobs int) []string {
	return []string{"make", "-s", "-rR", "-j", atOnce(jobs)}
}

// tup finds files itself, by a Tupfile in each folder, and deletes products that are no longer made.
type tup struct{ peer }

func (tup) name() string          { return "tup" }
func (tup) find() (string, error) { return findPeer("tup", "tup") }
func (tup) sweeps() bool          { return true }

func (tup) prepare(p *project) error {
	if _, err := os.Lstat(filepath.Join(p.dir, ".tup")); err == nil {
		return nil
	}
	for f := range p.folders() {
		dir := folderName(f)
		text := fmt.Sprintf(": foreach *.bin |> cp %%f %%o |> ../../out/%s/%%b\n: %s |> cat %%f > %%o |> ../../out/%s/join\n",
			dir, strings.ReplaceAll(joinInputs("", f), dir+"/", ""), dir)
		if err := os.WriteFile(filepath.Join(p.dir, "assets", dir, "Tupfile"), []byte(text), 0o666); err != nil {
			return err
		}
	}
	init := exec.Command("tup", "init")
	init.Dir = p.dir
	if out, err := init.CombinedOutput(); err != nil {
		return fmt.Errorf("tup init: %w: %s", err, out)
	}
	return nil
}

func (tup) command(jobs int) []string {
	return []string{"tup", "-j" + atOnce(jobs), "--quiet"}
}
