package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/project"
)

// The exit codes are a contract.
const (
	exitGood        exitCode = 0
	exitFailed      exitCode = 1 // an asset failed, or a check found something
	exitWrong       exitCode = 2 // error in the command line or the project file
	exitBusy        exitCode = 3 // another kiln uses the project
	exitInternal    exitCode = 4
	exitInterrupted exitCode = 130
)

// exitCode is an error that ends the command without output: everything was reported already.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// usageError is a wrong command line.
type usageError struct {
	text string
	hint string
}

func (u *usageError) Error() string { return u.text }

// wrongUsage returns an error of the command line. hint says what to do instead, and may be empty.
func wrongUsage(hint, format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...), hint}
}

// brokenError is a bug in Kiln.
type brokenError struct {
	text  string
	stack string
}

func (b *brokenError) Error() string { return b.text }

func internalError(v any, stack []byte) error { return &brokenError{fmt.Sprint(v), string(stack)} }

// fail reports an error, if necessary, and returns the exit code.
func (a *app) fail(err error) int {
	var code exitCode
	var usage *usageError
	var broken *brokenError
	switch {
	case err == nil:
		return int(exitGood)
	case errors.As(err, &code):
		return int(code)
	case errors.Is(err, context.Canceled):
		a.complain("interrupted", "")
		return int(exitInterrupted)
	case pipeClosed(err):
		return int(exitGood) // the reader closed the pipe
	case errors.As(err, &usage):
		a.complain(usage.text, usage.hint)
		return int(exitWrong)
	case errors.As(err, &broken):
		a.report(broken)
		return int(exitInternal)
	}
	if m := project.LinkMessage(a.projectDir(), err); m != nil {
		err = m
	}
	if file := a.noSuchFile(err); file != "" {
		err = diag.Errorf(diag.NothingKnown, diag.Pos{}, "there is no file %q", file).WithHint("check the name; it is looked for from the folder you are in")
	}
	return a.failWith(diag.Messages(err, codeOf(err)))
}

// noSuchFile returns the file of the command line that does not exist, if that is the error.
func (a *app) noSuchFile(err error) string {
	var path *fs.PathError
	if !errors.As(err, &path) || !errors.Is(err, fs.ErrNotExist) || path.Op != "open" && path.Op != "stat" {
		return ""
	}
	for _, arg := range a.args {
		if _, value, ok := strings.Cut(arg, "="); arg == path.Path || ok && value == path.Path {
			return path.Path
		}
	}
	return ""
}

// codeOf is the code for an error that is not a message: an error of the disk, or a bug.
func codeOf(err error) diag.Code {
	var path *fs.PathError
	var no syscall.Errno
	if errors.As(err, &path) || errors.As(err, &no) {
		return diag.OutputUnwritable
	}
	return diag.Internal
}

// failWith shows messages and returns the exit code of the worst.
func (a *app) failWith(l diag.List) int {
	a.tell(l)
	code := exitWrong
	for _, m := range l {
		switch {
		case m.Severity != diag.Error:
		case m.Code == diag.ProjectBusy:
			return int(exitBusy)
		case m.Code == diag.Internal:
			return int(exitInternal)
		case m.Code == diag.OutputUnwritable:
			code = exitFailed
		}
	}
	return int(code)
}

// complain writes a line about what is wrong with the command line, and a line about what to do.
func (a *app) complain(text, hint string) {
	if a.json {
		a.emit(complaint{"error", text, hint})
		return
	}
	fmt.Fprintf(a.errs, "%s: %s\n", a.paint(a.errs, red, "kiln"), text)
	if hint != "" {
		fmt.Fprintf(a.errs, "  %s\n", hint)
	}
}

// complaint is an error that is not a message about a file, as JSON.
type complaint struct {
	Type string `json:"type"`
	Text string `json:"text"`
	Hint string `json:"hint,omitempty"`
}

// report asks the user to report a bug.
func (a *app) report(b *brokenError) {
	a.complain("internal error: "+b.text, "this is a bug in Kiln: please report it with what follows")
	fmt.Fprintf(a.errs, "\nkiln %s, called with: %s\n\n%s", a.cfg.Version.Text(), strings.Join(a.args, " "), b.stack)
}

// projectDir is the folder of the project, or else the one that the command line names.
func (a *app) projectDir() string {
	if dir, err := project.Find(a.dir); err == nil {
		return dir
	}
	return a.dir
}
