package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/explain"
	"github.com/kiln-pipeline/kiln/internal/make/sharing"
	"github.com/kiln-pipeline/kiln/internal/make/task"
)

func newCacheCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cache",
		Short: "Share the results of jobs with other checkouts and machines",
		Long: `Share the results of jobs with other checkouts and machines: through a folder, or a server that speaks the Remote
Execution API. What somebody else has built already is fetched in place of being built. It is off until kiln.toml has [cache],
KILN_CACHE names a folder, or kiln cache on was run; KILN_CACHE=off turns it off.`,
		GroupID: groupMake,
		Example: "  kiln cache on\n  kiln cache check\n  kiln cache explain sprites/tank.png",
		Args:    a.onlyKnownCommands,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	sub := func(use, short string, args cobra.PositionalArgs, run func(ctx context.Context, args []string) error) {
		cmd.AddCommand(&cobra.Command{Use: use, Short: short, Args: args, Example: "  kiln cache " + strings.ToLower(strings.Fields(use)[0]),
			RunE: func(c *cobra.Command, args []string) error { return run(c.Context(), args) }})
	}
	sub("on [DIR]", "Share results in a folder, for all projects of this user that name no other place", atMost(1), a.cacheOn)
	sub("off", "Undo kiln cache on", atMost(0), a.cacheOff)
	sub("stats", "Show what the cache holds", atMost(0), a.cacheStats)
	sub("check", "Check that the cache can be used", atMost(0), a.cacheCheck)
	sub("push [PATTERN...]", "Store the results of this checkout in the cache", nil, a.cachePush)
	sub("pull [PATTERN...]", "Fetch results from the cache, and build nothing", nil, a.cachePull)
	sub("explain ASSET", "Show why the cache has an asset's result, or does not", exactly("ASSET"), a.cacheExplain)
	cmd.AddCommand(a.newCacheKeyCommand())
	return cmd
}

func (a *app) newCacheKeyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "key", Short: "Make keys that results of the cache are signed with", Args: a.onlyKnownCommands,
		Example: "  kiln cache key new team.key",
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use: "new FILE", Short: "Make a secret key, and the public key that belongs to it",
		Long: `Make a secret key in FILE, and the public key that belongs to it beside it: the name ends in .pub in place of .key. Both are files
of minisign. The key has the password in KILN_KEY_PASSWORD, or none. Files that exist are not replaced.`,
		Example: "  kiln cache key new team.key",
		Args:    exactly("FILE"),
		RunE:    func(_ *cobra.Command, args []string) error { return a.cacheKeyNew(args[0]) },
	})
	return cmd
}

func (a *app) cacheKeyNew(file string) error {
	password := a.getenv(sharing.PasswordVariable)
	pair, err := sharing.NewKeys(file, password)
	if err != nil {
		return err
	}
	if a.json {
		return a.emit(map[string]any{"type": "key", "file": pair.Secret, "public_file": pair.Public, "public": pair.Key, "password": password != ""})
	}
	without := ", which has no password: keep the file secret"
	if password != "" {
		without = ", which has the password in " + sharing.PasswordVariable
	}
	_, err = fmt.Fprintf(a.out, "secret key: %s%s\npublic key file: %s\npublic key: %s\nput the public key into `keys` of [cache] in kiln.toml, and set %s=%s "+
		"where results are stored\n", pair.Secret, without, pair.Public, pair.Key, sharing.KeyVariable, pair.Secret)
	return err
}

func (a *app) cacheOn(_ context.Context, args []string) error {
	dir, err := sharing.DefaultFolder()
	if len(args) > 0 {
		dir = args[0]
		if !filepath.IsAbs(dir) && a.wd != "" {
			dir = filepath.Join(a.wd, dir)
		}
		dir, err = filepath.Abs(dir)
	}
	if err == nil {
		err = sharing.SetUserFolder(dir)
	}
	if err != nil {
		return err
	}
	if a.json {
		return a.emit(map[string]any{"type": "cache", "folder": dir})
	}
	_, err = fmt.Fprintf(a.out, "results are shared in %s\n", dir)
	return err
}

func (a *app) cacheOff(context.Context, []string) error {
	if err := sharing.SetUserFolder(""); err != nil {
		return err
	}
	if a.json {
		return a.emit(map[string]any{"type": "cache", "folder": ""})
	}
	_, err := fmt.Fprintln(a.out, "results are shared only where kiln.toml or KILN_CACHE says so")
	return err
}

// place returns where the project's results are shared, or a message that they are not.
func (a *app) place() (*build.Project, *sharing.Place, error) {
	p, err := a.open()
	if err != nil {
		return nil, nil, err
	}
	place := p.CachePlace()
	if place == nil {
		return nil, nil, diag.Errorf(diag.CacheWrong, diag.Pos{}, "this project shares its results with nobody").
			WithHint("`kiln cache on`, KILN_CACHE=DIR, or [cache] in kiln.toml says where")
	}
	return p, place, nil
}

type cacheStatsLine struct {
	Type    string `json:"type"`
	Origin  string `json:"origin"`
	Folder  string `json:"folder,omitempty"`
	Server  string `json:"server,omitempty"`
	Mode    string `json:"mode"`
	Entries int    `json:"entries"`
	Blobs   int    `json:"blobs"`
	Bytes   int64  `json:"bytes"`
	Limit   int64  `json:"limit"`
	Oldest  string `json:"oldest,omitempty"`
	Trust   string `json:"trust,omitempty"`
	Keys    int    `json:"keys,omitempty"`
	Signs   string `json:"signs,omitempty"`
}

func (a *app) cacheStats(context.Context, []string) error {
	_, place, err := a.place()
	if err != nil {
		return err
	}
	l := cacheStatsLine{Type: "cache", Origin: place.Origin, Folder: place.Folder, Server: place.Remote, Mode: "read"}
	if place.Writes() {
		l.Mode = "read-write"
	}
	if place.Signed {
		l.Trust, l.Keys, l.Signs = "signed", place.Keys(), place.Signer()
	}
	c, err := place.Open()
	if err != nil {
		return cacheFails(err)
	}
	defer c.Close()
	if c.Folder != nil {
		usage, err := place.Usage(c.Folder)
		if err != nil {
			return err
		}
		l.Entries, l.Blobs, l.Bytes, l.Limit = usage.Entries, usage.Blobs, usage.Bytes, c.Folder.Limit()
		if !usage.Oldest.IsZero() {
			l.Oldest = usage.Oldest.UTC().Format("2006-01-02")
		}
	}
	if a.json {
		return a.emit(l)
	}
	if c.Folder != nil {
		fmt.Fprintf(a.out, "folder %s: %s of %s, %s, %s\n", l.Folder, diag.Size(l.Bytes), diag.Size(l.Limit),
			count(l.Entries, "entry", "entries"), count(l.Blobs, "blob", "blobs"))
	}
	if l.Server != "" {
		fmt.Fprintf(a.out, "server %s: what it holds it alone knows\n", l.Server)
	}
	_, err = fmt.Fprintf(a.out, "mode %s, by %s\n", l.Mode, l.Origin)
	if trust := place.Trust(); err == nil && trust != "" {
		_, err = fmt.Fprintln(a.out, trust)
	}
	return err
}

func cacheFails(err error) error {
	return diag.Errorf(diag.CacheFails, diag.Pos{}, "%v", err).WithHint("`kiln cache check` says more")
}

func (a *app) cacheCheck(ctx context.Context, _ []string) error {
	_, place, err := a.place()
	if err != nil {
		return err
	}
	failed := false
	for _, x := range place.Check(ctx) {
		failed = failed || !x.OK
		if a.json {
			err = a.emit(struct {
				Type string `json:"type"`
				sharing.Checked
			}{"cache", x})
		} else {
			state := "ok"
			if !x.OK {
				state = "fails: " + x.Wrong
			}
			_, err = fmt.Fprintf(a.out, "%s: %s\n", x.Name, state)
			for _, s := range x.Says {
				fmt.Fprintf(a.out, "  %s\n", s)
			}
		}
		if err != nil {
			return err
		}
	}
	if failed {
		return exitFailed
	}
	return nil
}

func (a *app) cachePush(ctx context.Context, patterns []string) error {
	p, _, err := a.place()
	if err != nil {
		return err
	}
	if err := a.lock(ctx, p, false); err != nil {
		return err
	}
	defer p.Unlock()
	done, err := p.Push(ctx, a.named(p, patterns))
	if err != nil {
		return err
	}
	if err := a.tell(done.Messages); err != nil {
		return err
	}
	if a.json {
		return a.emit(map[string]any{
			"type": "cache", "results": done.Results, "lost": done.Lost, "stale": done.Stale, "held_by_ignore": done.Held, "not_signed": done.Foreign,
			"uploaded": done.Uploaded,
		})
	}
	text := fmt.Sprintf("%s in the cache, %s stored", count(done.Results, "result is", "results are"), diag.Size(done.Uploaded))
	if done.Held > 0 {
		text += fmt.Sprintf("; not stored: %d held by ignore, which `kiln build --strict` builds", done.Held)
	}
	if done.Foreign > 0 {
		text += fmt.Sprintf("; not signed: %d that came from a cache, which `kiln build --force` builds", done.Foreign)
	}
	if done.Stale > 0 {
		text += fmt.Sprintf("; %d jobs and parts have no result yet: run `kiln build` first", done.Stale)
	}
	_, err = fmt.Fprintln(a.out, text)
	return err
}

func (a *app) cachePull(ctx context.Context, patterns []string) error {
	if _, _, err := a.place(); err != nil {
		return err
	}
	return a.build(ctx, buildFlags{changed: "stat", onError: "fail", pull: true}, patterns)
}

type cacheExplainLine struct {
	Type      string `json:"type"`
	Asset     string `json:"asset"`
	Part      string `json:"part,omitempty"`
	Platform  string `json:"platform"`
	Processor string `json:"processor"`
	Hint      string `json:"hint"`
	Result    string `json:"result,omitempty"`
	Lists     int    `json:"lists"`
	There     bool   `json:"there"`
	Same      int    `json:"same"`
	Differs   string `json:"differs,omitempty"`
	Unsigned  bool   `json:"unsigned,omitempty"`
}

func (a *app) cacheExplain(ctx context.Context, args []string) error {
	if _, _, err := a.place(); err != nil {
		return err
	}
	p, err := a.open()
	if err != nil {
		return err
	}
	jobs, err := p.ExplainCache(ctx, a.named(p, args), a.platforms)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		l := cacheExplainLine{"cache", j.Job.Asset, j.Job.Part, j.Job.Platform, j.Job.Processor, j.Hint, j.Result, j.Lists, j.There, j.Same, "", j.Unsigned}
		if j.Differs != nil {
			l.Differs = explain.Observation(*j.Differs)
		}
		if a.json {
			err = a.emit(l)
		} else {
			_, err = fmt.Fprintf(a.out, "%s [%s], %s: %s\n  key of what it looks at  %s\n",
				j.Job.Name(), l.Platform, l.Processor, explained(j), l.Hint)
			if l.Result != "" {
				fmt.Fprintf(a.out, "  key of its result        %s\n", l.Result)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func explained(j build.ExplainedJob) string {
	switch {
	case j.There:
		return "its result is in the cache"
	case j.Unsigned:
		return `the cache has an unsigned result, and trust = "signed" counts only signed ones`
	case j.Lists == 0:
		return "nobody stored a result of this job; `kiln inspect` shows what its key is made of"
	case j.Differs == nil:
		return "others looked at the same and saw the same, but the result was deleted"
	case j.Unknown:
		return unknownHere(j)
	}
	here := "is not there"
	if !j.Differs.Value.IsZero() {
		here = "is " + j.Differs.Value.Short()
	}
	return fmt.Sprintf("%s differs: it %s here, and others saw something else", explain.Observation(*j.Differs), here)
}

// unknownHere describes a job that waits for the products of another one that has no result here.
func unknownHere(j build.ExplainedJob) string {
	text := fmt.Sprintf("it needs %s, which is not known here yet", explain.Observation(*j.Differs))
	if j.Same > 0 {
		text = fmt.Sprintf("the first %s as others saw it; then ", count(j.Same, "thing is", "things are")) + text
	}
	if asset := explain.Asset(*j.Differs); asset != "" && asset != j.Job.Asset && !task.IsRequest(asset) {
		text += "; see `kiln cache explain " + asset + "`"
	}
	return text
}
