package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// smallSize is the size of a small asset in bytes.
const smallSize = 1 << 10

// fillSmall writes small assets, in folders of a hundred.
func (b *bench) fillSmall(assets string) error {
	for i := range b.assets {
		dir := filepath.Join(assets, fmt.Sprintf("d%03d", i/100))
		if i%100 == 0 {
			if err := os.MkdirAll(dir, 0o777); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("a%d.dat", i)), noise(uint64(i), smallSize), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// cold measures, for each place, a checkout that stores its results there and then fetches them after its state was
// removed. loop, which may be nil, is run in turns with that.
func (b *bench) cold(name, toml string, fill func(string) error, loop func(place) (took, error)) (map[string]took, error) {
	runs, dirs := map[string][]took{}, map[string]string{}
	places := append([]place{noCache}, b.places...)
	for i := range places {
		p := &places[i]
		if p.name == "folder" {
			p.folder = filepath.Join(b.dir, name+"-folder")
		}
		dir, err := b.project(fmt.Sprintf("%s-%d", name, i), *p, toml, fill)
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		dirs[p.name] = dir
		if *p != noCache {
			if _, err := b.build(dir, *p); err != nil {
				return nil, err
			}
		}
	}
	for range b.runs {
		for _, p := range places {
			if err := forget(dirs[p.name]); err != nil {
				return nil, err
			}
			t, err := b.build(dirs[p.name], p)
			if err != nil {
				return nil, err
			}
			runs[p.name] = append(runs[p.name], t)
			if loop == nil || p.remote == "" {
				continue
			}
			if t, err = loop(p); err != nil {
				return nil, err
			}
			runs[p.name+loops] = append(runs[p.name+loops], t)
		}
	}
	all := map[string]took{}
	for name, list := range runs {
		all[name] = median(list)
	}
	return all, nil
}

// hits measures a first build of many small assets.
func (b *bench) hits() error {
	all, err := b.cold("hits", "", b.fillSmall, nil)
	if err != nil {
		return err
	}
	fmt.Printf("\n%d assets of %d bytes, first build\n", b.assets, smallSize)
	rows := [][]string{{"", "wall", "processor", "assets a second"}}
	for _, p := range append([]place{noCache}, b.places...) {
		t := all[p.name]
		rows = append(rows, []string{p.name, seconds(t.wall), seconds(t.cpu), fmt.Sprintf("%.0f", float64(b.assets)/t.wall.Seconds())})
	}
	table(rows)
	return nil
}

// idle measures builds in which nothing changed, with and without a cache, in turns.
func (b *bench) idle() error {
	at := b.places[1]
	dir, err := b.project("idle", at, "", b.fillSmall)
	if err != nil {
		return err
	}
	if _, err := b.build(dir, at); err != nil {
		return err
	}
	runs := map[string][]took{}
	for i := range 10 * b.runs {
		pair := []place{at, noCache}
		if i%2 > 0 {
			slices.Reverse(pair)
		}
		for _, p := range pair {
			t, err := b.build(dir, p)
			if err != nil {
				return err
			}
			runs[p.name] = append(runs[p.name], t)
		}
	}
	fmt.Printf("\n%d assets, nothing changed, %d builds each\n", b.assets, 10*b.runs)
	with, without := median(runs[at.name]), median(runs[noCache.name])
	ms := func(t took) []string {
		return []string{fmt.Sprintf("%.1f ms", t.wall.Seconds()*1000), fmt.Sprintf("%.1f ms", t.cpu.Seconds()*1000)}
	}
	table([][]string{{"", "wall", "processor"},
		append([]string{"KILN_CACHE=off"}, ms(without)...),
		append([]string{"with a server"}, ms(with)...),
		{"more", fmt.Sprintf("%+.1f%%", 100*(with.wall.Seconds()/without.wall.Seconds()-1)),
			fmt.Sprintf("%+.1f%%", 100*(with.cpu.Seconds()/without.cpu.Seconds()-1))}})
	return nil
}
