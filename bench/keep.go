package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// kept is a line of a file of measurements, for a plot of sizes that were measured separately.
type kept struct {
	Size int       `json:"size"`
	Step string    `json:"step"`
	Tool string    `json:"tool"`
	Runs []measure `json:"runs"`
}

// load adds the measurements of other sizes from a file. Sizes are never mixed, so a ratio is always from one run.
func (r *results) load(file string, sizes []int) ([]int, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || file == "" {
		return sizes, nil
	}
	if err != nil {
		return nil, err
	}
	var lines []kept
	if err := json.Unmarshal(data, &lines); err != nil {
		return nil, err
	}
	all := slices.Clone(sizes)
	for _, k := range lines {
		if !slices.Contains(sizes, k.Size) {
			r.runs[resultKey{k.Size, k.Step, k.Tool}] = k.Runs
			all = append(all, k.Size)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

func (r *results) save(file string) error {
	if file == "" {
		return nil
	}
	var lines []kept
	for k, runs := range r.runs {
		lines = append(lines, kept{k.size, k.step, k.tool, runs})
	}
	slices.SortFunc(lines, func(a, b kept) int {
		if a.Size != b.Size {
			return a.Size - b.Size
		}
		return strings.Compare(a.Step+" "+a.Tool, b.Step+" "+b.Tool)
	})
	data, err := json.MarshalIndent(lines, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o666)
}
