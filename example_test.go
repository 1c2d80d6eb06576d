package kiln_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/kiln-pipeline/kiln"
)

// exampleProject makes a project of two files in a temporary folder.
func exampleProject() (dir string, remove func()) {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	save(filepath.Join(dir, "kiln.toml"), "[project]\nname = \"mygame\"\n[platforms.pc]\n")
	save(filepath.Join(dir, "assets", "waves.json"), `{"waves": 3}`)
	save(filepath.Join(dir, "assets", "credits.txt"), "Kiln")
	return dir, func() { os.RemoveAll(dir) }
}

func save(file, text string) {
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), os.WriteFile(file, []byte(text), 0o666)); err != nil {
		log.Fatal(err)
	}
}

func ExampleProject_Build() {
	dir, remove := exampleProject()
	defer remove()
	ctx := context.Background()

	p, err := kiln.Open(dir)
	if err != nil {
		for _, m := range kiln.Messages(err) {
			fmt.Println(m) // kiln.toml:3:1: error[K0003]: ...
		}
		return
	}
	sum, err := p.Build(ctx, kiln.BuildOptions{Platforms: []string{"pc"}})
	if err != nil {
		log.Fatal(err) // nothing was built, or ctx ended the build
	}
	fmt.Printf("%d built, %d up to date, %d failed\n", sum.Built, sum.Reused, sum.Failed)
	for _, m := range sum.Messages {
		fmt.Println(m.Code, m)
	}
	// Output: 2 built, 0 up to date, 0 failed
}

func ExampleProject_NeedsRebuild() {
	dir, remove := exampleProject()
	defer remove()
	ctx := context.Background()
	p, err := kiln.Open(dir)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := p.Build(ctx, kiln.BuildOptions{}); err != nil {
		log.Fatal(err)
	}
	save(filepath.Join(dir, "assets", "waves.json"), `{"waves": 40}`)

	stale, err := p.NeedsRebuild(ctx, kiln.BuildOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, job := range stale {
		fmt.Println(job.Asset, job.Platform, job.Processor)
		// job.Reason: waves.json changed: 4bf2a1d09c3e, now 1c77e0a35b20
	}
	// Output: waves.json pc data
}

func ExampleProject_Query() {
	dir, remove := exampleProject()
	defer remove()
	ctx := context.Background()
	p, err := kiln.Open(dir)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := p.Build(ctx, kiln.BuildOptions{}); err != nil {
		log.Fatal(err)
	}

	table, err := p.Query(ctx, "SELECT asset, sum(size) FROM products GROUP BY asset ORDER BY asset")
	if err != nil {
		log.Fatal(err)
	}
	for _, row := range table.Rows {
		fmt.Println(row...)
	}
	table, err = p.Query(ctx, "asset-files", "waves.json") // as: kiln query asset-files waves.json
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(table.Rows), "file")
	// Output:
	// credits.txt 4
	// waves.json 11
	// 1 file
}

func ExampleProject_Watch() {
	dir, remove := exampleProject()
	defer remove()
	p, err := kiln.Open(dir)
	if err != nil {
		log.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	err = p.Watch(ctx, kiln.WatchOptions{Platforms: []string{"pc"}}, func(u kiln.Update) {
		switch {
		case u.Err != nil:
			fmt.Println(u.Err) // a mistake in kiln.toml: the next change tries again
		case len(u.Paths) == 0:
			fmt.Printf("%d built\n", u.Built)
			save(filepath.Join(dir, "assets", "credits.txt"), "Kiln, again")
		default:
			fmt.Printf("%v changed, %v written\n", u.Paths, u.Changed)
			cancel()
		}
	})
	fmt.Println(err)
	// Output:
	// 2 built
	// [assets/credits.txt] changed, [pc/credits.txt] written
	// context canceled
}
