package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/base/secret"
	"github.com/kiln-pipeline/kiln/internal/make/build"
)

func newShellCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "shell ASSET",
		Short: "Open a shell where the command of an asset failed",
		Long: `Build an asset once more and, if an external command fails, open a shell in a copy of the folder that it ran in. run.sh
there runs the command again. The folder stays in .kiln/kept until the next kiln shell, or kiln build --keep.`,
		GroupID:           groupLook,
		Example:           "  kiln shell shaders/water.glsl",
		Args:              exactly("ASSET"),
		ValidArgsFunction: a.assetIDs(1),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.shell(cmd.Context(), args[0]) },
	}
}

// clearKept deletes the folders kept earlier.
func clearKept(p *build.Project) error { return os.RemoveAll(p.KeptDir()) }

// kept lists the kept folders, relative to the project folder.
func kept(p *build.Project) (dirs []string) {
	entries, _ := os.ReadDir(p.KeptDir())
	for _, e := range entries {
		if rel, err := filepath.Rel(p.Dir, filepath.Join(p.KeptDir(), e.Name())); err == nil {
			dirs = append(dirs, filepath.ToSlash(rel))
		}
	}
	return dirs
}

func (a *app) shell(ctx context.Context, name string) error {
	if err := a.build(ctx, buildFlags{onError: "fail", changedBy: "stat", keep: true}, []string{name}); err != nil && err != exitFailed {
		return err
	}
	p, err := a.open()
	if err != nil {
		return err
	}
	dirs := kept(p)
	if len(dirs) == 0 {
		return wrongUsage("`kiln why` says how it was built", "no command of %q failed", name)
	}
	program := a.getenv("SHELL")
	switch {
	case runtime.GOOS == "windows":
		program = a.getenv("COMSPEC")
	case program == "":
		program = "sh"
	}
	dir := path.Join(dirs[0], "in")
	fmt.Fprintf(a.errs, "a shell in %s; ../run.sh runs the command, exit ends the shell\n", dir)
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = secret.Environ()
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = filepath.Join(p.Dir, filepath.FromSlash(dir)), a.in, a.out, a.errs
	return cmd.Run()
}
