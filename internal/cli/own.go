package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/extend/own"
	"github.com/kiln-pipeline/kiln/internal/make/written"
)

// Commands that every kiln does itself, in any project: they need no processors, or have to work while the project's own kiln cannot be
// compiled. `new` writes the source of this very kiln.
var alone = []string{"init", "new", "help", "completion", "version", "clean", written.Command, cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd}

// Commands that run until they are ended: during them, an own kiln whose source is edited is compiled, and started
// again.
var lasting = []string{"watch", "serve"}

// errOwnChanged ends a command whose kiln must be started again.
var errOwnChanged = errors.New("the project's own kiln changed")

// handOver runs the command in the project's own kiln. ok is false if there is none, or if this is it: then the
// returned context ends when that kiln must be started again.
func (a *app) handOver(ctx context.Context, root *cobra.Command) (_ context.Context, exit int, ok bool) {
	f, err := a.known(root)
	if err != nil || len(f.Args()) == 0 || slices.Contains(alone, f.Arg(0)) {
		return ctx, 0, false
	}
	a.dir, _ = f.GetString("directory")
	if sets, _ := f.GetStringArray("set"); a.takeSets(sets) != nil {
		return ctx, 0, false // the command reports it
	}
	dir, err := project.Find(a.dir)
	if err != nil {
		return ctx, 0, false
	}
	k := own.Find(dir, project.Given{Set: a.cfg.Set}, outside())
	if k == nil {
		return ctx, 0, false
	}
	a.json, _ = f.GetBool("json")
	a.quiet, _ = f.GetBool("quiet")
	a.color, _ = f.GetString("color")
	if k.IsThis() {
		if slices.Contains(lasting, f.Arg(0)) && k.Kept() {
			ctx = a.follow(ctx, k)
		}
		return ctx, 0, false
	}
	return ctx, a.become(ctx, k), true
}

// become runs the project's own kiln in place of this one. Another kiln may delete the program just before, but hardly
// several times.
func (a *app) become(ctx context.Context, k *own.Kiln) int {
	for try := 1; ; try++ {
		program, err := k.Program(ctx, func() { a.tellCompiling(k) })
		if err != nil {
			if ctx.Err() != nil {
				err = context.Canceled
			}
			return a.fail(err)
		}
		exit, err := own.Run(program, a.args)
		if err == nil {
			return exit
		}
		if !errors.Is(err, os.ErrNotExist) || try == 5 {
			return a.fail(wrongUsage("remove the folder .kiln/kiln", "the project's own kiln cannot be started: %v", err))
		}
	}
}

func (a *app) tellCompiling(k *own.Kiln) {
	if !a.quiet && !a.json {
		fmt.Fprintf(a.errs, "compiling the project's own kiln, %s\n", k.Folder())
	}
}

// follow checks regularly whether the source of this kiln was edited. If it was, and compiles, the context ends and
// a.next is set; if it does not compile, that is reported, and this kiln continues.
func (a *app) follow(ctx context.Context, k *own.Kiln) context.Context {
	this, err := os.Executable()
	if err != nil {
		return ctx
	}
	ctx, cancel := context.WithCancelCause(ctx)
	seen := k.State()
	go func() {
		for tick := time.NewTicker(2 * time.Second); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			now := k.State()
			if now == seen {
				continue
			}
			program, err := k.Program(ctx, func() { a.tellCompiling(k) })
			seen = k.State()
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				a.fail(err)
			case !sameFile(program, this):
				a.next = k
				cancel(errOwnChanged)
				return
			}
		}
	}()
	return ctx
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// startAgain runs the project's current kiln in place of this one, after the command has ended.
func (a *app) startAgain(ctx context.Context) int {
	if !a.quiet && !a.json {
		fmt.Fprintln(a.errs, "the project's own kiln changed: starting again with it")
	}
	return a.become(ctx, a.next)
}
