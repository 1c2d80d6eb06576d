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

// keeper is a job that has a folder for what a program that fails ran in; "" if that is not wanted. The
// contract of a processor says nothing of that.
type keeper interface{ Kept() string }

// runFile runs the program of a kept folder again.
const runFile = "run.sh"

// keep copies the folders of a run, links to source files as files, for somebody to look at, with a script
// that runs the program there again, without a box. What cannot be copied is left out: the run has failed
// already.
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

// inRoot is a word for a shell, with the folder of the run written as $root.
func inRoot(word, base string) string {
	parts := strings.Split(word, base)
	for i := range parts {
		parts[i] = quoted(parts[i])
	}
	return strings.Join(parts, `"$root"`)
}

func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// copyFile copies what a path leads to, if that is a file.
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
