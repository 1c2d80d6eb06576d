package judge

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// Case is a parcel with the judgement that all readers must return.
type Case struct {
	Parcel  string // path
	Queries string // path of a file with the lines to answer
	Want    string
}

// Conformance returns the cases in a folder of NAME.parcel and NAME.txt. Files of queries are written to the folder
// scratch.
func Conformance(folder, scratch string) ([]Case, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.parcel"))
	if err != nil {
		return nil, err
	}
	var cases []Case
	for _, path := range paths {
		text, err := os.ReadFile(strings.TrimSuffix(path, ".parcel") + ".txt")
		if err != nil {
			return nil, err
		}
		var queries []string
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "find ") || strings.HasPrefix(line, "load ") {
				queries = append(queries, line[:strings.LastIndex(strings.TrimSpace(line), " ")])
			}
		}
		c, err := newCase(path, scratch, queries, string(text))
		if err != nil {
			return nil, err
		}
		cases = append(cases, c)
	}
	return cases, nil
}

// Damaged returns the samples, n damaged parcels of each, and their judgements by the Go reader.
func Damaged(scratch string, n int, seed uint64) ([]Case, error) {
	samples, err := Write(scratch)
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(seed, seed))
	var cases []Case
	for _, sample := range samples {
		good, err := os.ReadFile(sample)
		if err != nil {
			return nil, err
		}
		queries := Queries(good)
		for i := range n + 1 {
			path, b := sample, good
			if i > 0 {
				b = Damage(rng, good)
				path = fmt.Sprintf("%s.%d", sample, i)
				if err := os.WriteFile(path, b, 0o600); err != nil {
					return nil, err
				}
			}
			c, err := newCase(path, scratch, queries, Parcel(b, queries))
			if err != nil {
				return nil, err
			}
			cases = append(cases, c)
		}
	}
	return cases, nil
}

func newCase(path, scratch string, queries []string, want string) (Case, error) {
	c := Case{Parcel: path, Queries: filepath.Join(scratch, filepath.Base(path)+".queries"), Want: want}
	return c, os.WriteFile(c.Queries, []byte(strings.Join(queries, "\n")+"\n"), 0o600)
}

// Arguments returns the arguments with which a reader's program judges all cases.
func Arguments(cases []Case) []string {
	args := []string{"judge"}
	for _, c := range cases {
		args = append(args, c.Parcel, c.Queries)
	}
	return args
}

// CompareAll compares the output of a reader's program, with a line "== PARCEL" before each judgement, to the wanted
// judgements. It returns the differences.
func CompareAll(cases []Case, output string) []string {
	var wrong []string
	for _, c := range cases {
		_, after, _ := strings.Cut(output, "== "+c.Parcel+"\n")
		got, _, _ := strings.Cut(after, "== ")
		if what := Compare(c.Want, got); what != "" {
			wrong = append(wrong, fmt.Sprintf("%s: %s", filepath.Base(c.Parcel), what))
		}
	}
	return wrong
}
