package command

import (
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/kiln-pipeline/kiln/processor"
)

// keeper is a job with a folder for copies of failed runs; "" if they are not wanted. It is not part of the contract of processors.
type keeper interface{ Kept() string }

// runFile runs the program of a kept folder again.
const runFile = "run.sh"

// keep copies the folders of a run, links to source files as files, for inspection, with a script that runs the program there again,
// without a sandbox. Files that cannot be copied are skipped, because the run has failed already.
func keep(job processor.Job, v *view, cmd *exec.Cmd) {
	k, ok := job.(keeper)
	if !ok || k.Kept() == "" {
		return
	}
	to := k.Kept()
	os.RemoveAll(to)
	filepath.WalkDir(v.dir, func(name string, e fs.DirEntry, err error) error {
		rel, rerr := filepath.Rel(v.dir, name)
		if err != nil || rerr != nil {
			return nil
		}
		if e.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o777)
		}
		copyFile(name, filepath.Join(to, rel))
		return nil
	})
	base := strings.TrimSuffix(v.path(homeFolder), string(filepath.Separator)+homeFolder)
	var b strings.Builder
	b.WriteString("#!/bin/sh\n# Runs the command that failed once more, in this folder.\n")
	b.WriteString("root=$(cd \"$(dirname \"$0\")\" && pwd)\ncd \"$root/" + viewFolder + "\" || exit\nexec env -i")
	for _, value := range cmd.Env {
		b.WriteString(" \\\n  " + inRoot(value, base))
	}
	b.WriteString(" \\\n  " + quoted(cmd.Path))
	for _, arg := range cmd.Args[1:] {
		b.WriteString(" " + inRoot(arg, base))
	}
	b.WriteString("\n")
	os.WriteFile(filepath.Join(to, runFile), []byte(b.String()), 0o777)
}

// inRoot is a word for a shell, with $root instead of the folder of the run.
func inRoot(word, base string) string {
	parts := strings.Split(word, base)
	for i := range parts {
		parts[i] = quoted(parts[i])
	}
	return strings.Join(parts, `"$root"`)
}

func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// copyFile copies the target of a path, if that is a file.
func copyFile(from, to string) {
	info, err := os.Stat(from)
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	in, err := os.Open(from)
	if err != nil {
		return
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, info.Mode().Perm()|0o600)
	if err != nil {
		return
	}
	io.Copy(out, in)
	out.Close()
}
