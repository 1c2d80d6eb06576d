package contentdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dump is all that people can see, but for the list of builds.
func dump(t *testing.T, path string) string {
	t.Helper()
	r := reader(t, path)
	defer r.Close()
	var b strings.Builder
	for _, view := range views(t, r) {
		res, err := r.RunSQL(context.Background(), "SELECT * FROM "+view+" ORDER BY 1, 2, 3", 0)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n%s\n", view, table(res))
	}
	return b.String()
}

// generation is a project whose every record says which build wrote it.
func generation(n int64) []Asset {
	_, assets := many(40)
	for i := range assets {
		assets[i].Jobs[0].Built = n
		assets[i].Jobs[0].Products[0].Size = n
	}
	return assets
}

// generations asks which builds a reader sees records of: one, or it sees half a build.
func generations(t testing.TB, path string) string {
	r, err := OpenReadOnly(path)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer r.Close()
	res, err := r.RunSQL(context.Background(),
		"SELECT group_concat(DISTINCT j.built), group_concat(DISTINCT x.size), count(*) FROM job j JOIN product x USING (asset, platform)", 0)
	if err != nil {
		t.Error(err)
		return ""
	}
	return strings.Trim(fmt.Sprint(res.Rows[0]), "[]")
}

// settle waits until the writing goroutine has done all that was handed in.
func settle(b *Build) {
	done := make(chan struct{})
	b.ops <- func(*writer) error { close(done); return nil }
	<-done
}

func TestReaderSeesWholeBuilds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "content.db")
	db := open(t, path)
	for n := int64(1); n <= 4; n++ {
		b := begin(t, db, Start{Number: n, After: n - 1, Platforms: []string{"pc"}})
		for i, a := range generation(n) {
			b.Put(a)
			if i == 20 && n > 1 {
				settle(b)
				if got, want := generations(t, path), fmt.Sprintf("%d %d 40", n-1, n-1); got != want {
					t.Errorf("in the middle of build %d a reader sees %q, not %q", n, got, want)
				}
			}
		}
		finish(t, b)
		if got, want := generations(t, path), fmt.Sprintf("%d %d 40", n, n); got != want {
			t.Errorf("after build %d a reader sees %q, not %q", n, got, want)
		}
	}
}

func TestManyReadersWhileWriting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "content.db")
	db := open(t, path)
	build := func(n int64) {
		b := begin(t, db, Start{Number: n, After: n - 1, Platforms: []string{"pc"}})
		var all sync.WaitGroup
		assets := generation(n)
		for w := range 4 {
			all.Go(func() {
				for i := w; i < len(assets); i += 4 {
					b.Put(assets[i])
				}
			})
		}
		all.Wait()
		finish(t, b)
	}
	build(1)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			last := int64(1)
			for {
				select {
				case <-stop:
					return
				default:
				}
				var job, product, rows int64
				seen := generations(t, path)
				if n, _ := fmt.Sscan(seen, &job, &product, &rows); n != 3 || job != product || rows != 40 || job < last {
					t.Errorf("a reader sees %q after %d", seen, last)
					return
				}
				last = job
			}
		})
	}
	for n := int64(2); n < 12; n++ {
		build(n)
	}
	close(stop)
	readers.Wait()
}

func TestCancelledBuildIsNotSeen(t *testing.T) {
	path := knights(t)
	before := dump(t, path)
	db := open(t, path)
	if !db.Complete() {
		t.Error("a finished build is not complete")
	}
	b := begin(t, db, knightsStart(3, 2))
	if b.Everything() {
		t.Error("everything is asked for after a finished build")
	}
	b.Delete("sprites/hero.png")
	if err := b.Cancel(); err != nil {
		t.Fatal(err)
	}
	if db.Complete() {
		t.Error("complete after a build that did not finish")
	}
	if d := cmp.Diff(before, dump(t, path)); d != "" {
		t.Errorf("a build that was cancelled is seen:\n%s", d)
	}
	b = begin(t, db, knightsStart(4, 2))
	if !b.Everything() {
		t.Error("not everything is asked for")
	}
	b.Put(knightsAssets()[0])
	finish(t, b)
	if res, err := reader(t, path).Run(context.Background(), "assets", nil, 0); err != nil || len(res.Rows) != 1 {
		t.Errorf("what was not handed in is still there: %v %v", res, err)
	}
}

// A process that dies leaves its files as they are at that moment.
func TestCrashInTheMiddle(t *testing.T) {
	path := knights(t)
	before := dump(t, path)
	db := open(t, path)
	b := begin(t, db, knightsStart(3, 2))
	for _, a := range generation(3) {
		a.Jobs[0].Built = 3
		b.Put(a)
	}
	settle(b)
	after := filepath.Join(t.TempDir(), "content.db")
	for _, suffix := range []string{"", "-wal"} {
		copyFile(t, path+suffix, after+suffix)
	}
	if err := b.Cancel(); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before, dump(t, after)); d != "" {
		t.Errorf("half a build is seen:\n%s", d)
	}
	again, opened, err := Open(after)
	if err != nil || opened.Fresh {
		t.Fatal(opened, err)
	}
	defer again.Close()
	if again.Complete() {
		t.Error("complete after a crash")
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
}

func TestEverythingIsAskedFor(t *testing.T) {
	for _, c := range []struct {
		name  string
		start Start
		want  bool
	}{
		{"the next build", knightsStart(3, 2), false},
		{"a build that the file has not seen lies between", knightsStart(4, 3), true},
		{"the caller knows of no build", knightsStart(1, 0), true},
		{"the caller is behind", knightsStart(2, 1), true},
		{"the caller wants it", Start{Number: 3, After: 2, Everything: true}, true},
	} {
		db := open(t, knights(t))
		b := begin(t, db, c.start)
		if b.Everything() != c.want {
			t.Errorf("%s: %v", c.name, b.Everything())
		}
		finish(t, b)
		if n, err := number(db.conn, "SELECT max(number) FROM build"); err != nil || n != c.start.Number || !db.Complete() {
			t.Errorf("%s: last build is %d, %v, complete %v", c.name, n, err, db.Complete())
		}
	}
}

func TestPlatforms(t *testing.T) {
	path := knights(t)
	db := open(t, path)
	rows := func(sql string) string {
		res, err := reader(t, path).RunSQL(context.Background(), sql, 0)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(res.Rows)
	}
	// A build of one platform leaves the other's records as they are.
	one := knightsStart(3, 2)
	one.Building = []string{"pc"}
	b := begin(t, db, one)
	hero := knightsAssets()[0]
	hero.Jobs = hero.Jobs[:1]
	hero.Jobs[0].Built = 3
	b.Put(hero)
	b.Put(hero) // again, as a change in the middle of a build does
	finish(t, b)
	const heroJobs = "SELECT platform, state, built FROM jobs WHERE asset = 'sprites/hero.png' ORDER BY platform"
	if got, want := rows(heroJobs), "[[mobile up to date 1] [pc built 3]]"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
	// A build of all platforms drops what the asset does not have any more.
	b = begin(t, db, knightsStart(4, 3))
	b.Put(hero)
	finish(t, b)
	if got, want := rows(heroJobs), "[[pc up to date 3]]"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
	// A platform that the project has no more goes with all it had.
	fewer := knightsStart(5, 4)
	fewer.Platforms = []string{"mobile"}
	finish(t, begin(t, db, fewer))
	if got, want := rows("SELECT DISTINCT platform FROM jobs"), "[[mobile]]"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
	for _, table := range append([]string{"parcel", "parcel_product"}, jobTables...) {
		if strings.HasPrefix(table, "parcel") {
			if got := rows("SELECT count(*) FROM " + table); got != "[[0]]" {
				t.Errorf("%s has %s rows", table, got)
			}
		} else if got := rows("SELECT count(*) FROM " + table + " WHERE platform NOT IN (SELECT no FROM platform) AND asset > 0"); got != "[[0]]" {
			t.Errorf("%s has %s rows of no platform", table, got)
		}
	}
	b = begin(t, db, Start{Number: 6, After: 5, Platforms: []string{"mobile"}})
	b.Put(hero)
	if err := b.Finish(Summary{}); err == nil || !strings.Contains(err.Error(), `platform "pc" is not listed`) {
		t.Errorf("a job for an unknown platform: %v", err)
	}
	if _, err := db.Begin(Start{Number: 7, Platforms: []string{"mobile"}, Building: []string{"web"}}); err == nil {
		t.Error("a build of an unknown platform")
	}
}

func TestFilesThatNobodyLooksFor(t *testing.T) {
	path := knights(t)
	db := open(t, path)
	b := begin(t, db, knightsStart(3, 2))
	b.PutFiles([]File{{Path: "data/old.txt", Missing: true}, {Path: "models/knight.bin", Missing: true}})
	b.Delete("data/old.txt")
	b.Delete("data/never.txt")
	finish(t, b)
	res, err := reader(t, path).RunSQL(context.Background(), "SELECT path FROM files WHERE present = 0 ORDER BY 1", 0)
	if got := fmt.Sprint(res.Rows); err != nil || got != "[[models/knight.bin] [models/knight.lod1.gltf]]" {
		t.Errorf("%v %v", got, err)
	}
	res, err = reader(t, path).Run(context.Background(), "needs-rebuild", []string{"models/knight.gltf"}, 0)
	if got, want := fmt.Sprint(res.Rows[1]), "[pc yes models/knight.bin was removed gltf]"; err != nil || got != want {
		t.Errorf("%v %v", got, err)
	}
}

// A job that was not built again may have read a file that is gone: the record of that is no file.
func TestFileThatIsGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "content.db")
	db := open(t, path)
	b := begin(t, db, Start{Number: 1, Platforms: []string{"pc"}})
	b.PutFiles([]File{{Path: "a.s"}})
	b.Put(Asset{ID: "a.s", Path: "a.s", Jobs: []Job{{Platform: "pc", Observations: []Observation{
		{Group: 1, Kind: SawFile, Subject: "a.s"}, {Group: 2, Kind: SawFile, Subject: "gone.txt"}}}}})
	finish(t, b)
	res, err := reader(t, path).RunSQL(context.Background(), "SELECT path, present FROM files ORDER BY 1", 0)
	if got := fmt.Sprint(res.Rows); err != nil || got != "[[a.s 1] [gone.txt 0]]" {
		t.Errorf("%v %v", got, err)
	}
}

// What points to an asset that never came points to nothing, and not to who gets its number next.
func TestPromisedAssets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "content.db")
	db := open(t, path)
	b := begin(t, db, knightsStart(1, 0))
	b.Put(knightsAssets()[5]) // data/world.json, which needs data/level.json
	b.PutParcels(knightsParcels())
	finish(t, b)
	b = begin(t, db, knightsStart(2, 1))
	b.Put(knightsAssets()[0])
	finish(t, b)
	res, err := reader(t, path).RunSQL(context.Background(), "SELECT asset, needs FROM asset_references UNION ALL SELECT parcel, asset FROM parcel_products UNION ALL SELECT asset, cause FROM diagnostics", 0)
	if got, want := fmt.Sprint(res.Rows), "[[data/world.json <nil>]]"; err != nil || got != want {
		t.Errorf("%s, not %s; %v", got, want, err)
	}
}

// A rename that only changes the case of letters: both orders end with the new one.
func TestRenameOfCase(t *testing.T) {
	for _, order := range []string{"put first", "delete first"} {
		path := knights(t)
		db := open(t, path)
		b := begin(t, db, knightsStart(3, 2))
		a := knightsAssets()[0]
		a.ID = "sprites/Hero.png"
		if order == "put first" {
			b.Put(a)
		}
		b.Delete("sprites/hero.png")
		if order != "put first" {
			b.Put(a)
		}
		finish(t, b)
		res, err := reader(t, path).RunSQL(context.Background(), "SELECT asset FROM assets WHERE asset LIKE '%hero%'", 0)
		if got := fmt.Sprint(res.Rows); err != nil || got != "[[sprites/Hero.png]]" {
			t.Errorf("%s: %s %v", order, got, err)
		}
	}
}

func TestProjectDiagnostics(t *testing.T) {
	path := knights(t)
	db := open(t, path)
	b := begin(t, db, knightsStart(3, 2))
	problem := Diagnostic{Message: *diag.Errorf(diag.CaseCollision, diag.Pos{File: "a.png"}, "a.png and A.png")}
	if err := b.Finish(Summary{Diagnostics: []Diagnostic{problem}}); err != nil {
		t.Fatal(err)
	}
	res, err := reader(t, path).Run(context.Background(), "failures", nil, 0)
	if err != nil || len(res.Rows) != 4 {
		t.Fatal(res, err)
	}
	finish(t, begin(t, db, knightsStart(4, 3)))
	if res, err = reader(t, path).Run(context.Background(), "failures", nil, 0); err != nil || len(res.Rows) != 3 {
		t.Error(res, err)
	}
}

func TestBeginTwice(t *testing.T) {
	db := open(t, knights(t))
	begin(t, db, knightsStart(3, 2))
	if _, err := db.Begin(knightsStart(4, 2)); err == nil {
		t.Error("two builds at once")
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Error("second close:", err)
	}
}

// A file that was fed with changes is the same as one that was written anew.
func TestChangesEqualEverything(t *testing.T) {
	for seed := range uint64(2) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		path := filepath.Join(t.TempDir(), "content.db")
		db := open(t, path)
		now := map[string]Asset{}
		files := knightsFiles()
		for n := int64(1); n <= 10; n++ {
			b := begin(t, db, knightsStart(n, n-1))
			if n == 1 {
				b.PutFiles(files)
			}
			for _, a := range knightsAssets() {
				switch _, there := now[a.ID]; {
				case rnd.IntN(4) == 0 && there:
					delete(now, a.ID)
					b.Delete(a.ID)
				case rnd.IntN(2) == 0:
					change(rnd, &a, n)
					now[a.ID] = a
					b.Put(a)
				}
			}
			parcels := knightsParcels()[:rnd.IntN(2)]
			b.PutParcels(parcels)
			finish(t, b)

			anew := filepath.Join(t.TempDir(), "anew.db")
			fresh := open(t, anew)
			b = begin(t, fresh, knightsStart(n, 0))
			b.PutFiles(files)
			for _, a := range now {
				b.Put(a)
			}
			b.PutParcels(parcels)
			finish(t, b)
			if d := cmp.Diff(dump(t, anew), dump(t, path)); d != "" {
				t.Fatalf("seed %d, build %d (-anew +changed):\n%s", seed, n, d)
			}
		}
	}
}

// change makes an asset that a later build might have found: fewer records, other values. Links to assets
// that may be gone are left out, as a build would report those as failures.
func change(rnd *rand.Rand, a *Asset, build int64) {
	a.Jobs = append([]Job(nil), a.Jobs[:rnd.IntN(len(a.Jobs)+1)]...)
	for i := range a.Jobs {
		j := &a.Jobs[i]
		j.Built, j.Failed = build, rnd.IntN(2) == 0
		j.Needs = nil
		j.Diagnostics = append([]Diagnostic(nil), j.Diagnostics...)
		for k := range j.Diagnostics {
			j.Diagnostics[k].Cause = ""
		}
		j.Products = j.Products[:rnd.IntN(len(j.Products)+1)]
	}
}

func TestNothingToSetAside(t *testing.T) {
	if _, _, err := Open(filepath.Join(t.TempDir(), "no", "such", "folder", "content.db")); err == nil || errors.Is(err, ErrDamaged) {
		t.Errorf("%v", err)
	}
}

func TestAssetIDs(t *testing.T) {
	db := open(t, knights(t))
	var want []string
	for _, a := range knightsAssets() {
		want = append(want, a.ID)
	}
	got, err := db.AssetIDs()
	slices.Sort(got)
	slices.Sort(want)
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
}

// Leave keeps what was written in the log; readers and the next build see it all, and a log that is gone is noticed.
func TestLeave(t *testing.T) {
	path := filepath.Join(t.TempDir(), "content.db")
	var after int64
	for n := int64(1); n <= 3; n++ {
		db, _, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := db.Begin(Start{Number: n, Started: time.Unix(n, 0), After: after, Project: "p", Output: "build", Platforms: []string{"pc"}})
		if err != nil {
			t.Fatal(err)
		}
		if b.Everything() != (n == 1) {
			t.Errorf("build %d: everything %t", n, b.Everything())
		}
		b.PutFiles([]File{{Path: fmt.Sprintf("file%d", n), Size: n}})
		if err := b.Finish(Summary{}); err != nil {
			t.Fatal(err)
		}
		after = n
		if n == 1 {
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		log, err := db.Leave()
		if err != nil || log == 0 {
			t.Fatalf("build %d: a log of %d bytes, %v", n, log, err)
		}
		if !Intact(path, log) || Intact(path, log+1) || Intact(path, log-1) {
			t.Errorf("build %d: intact is not told by the length of the log", n)
		}
		conn, err := openReadOnly(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := number(conn, "SELECT count(*) FROM source_file WHERE present")
		if err := errors.Join(err, closeConn(conn)); err != nil || got != n {
			t.Errorf("build %d: a reader sees %d files, %v", n, got, err)
		}
		if n == 3 {
			if err := os.Remove(path + "-wal"); err != nil {
				t.Fatal(err)
			}
			if Intact(path, log) {
				t.Error("intact without its log")
			}
		}
	}
	db, _, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if b, err := db.Begin(Start{Number: 4, Started: time.Unix(4, 0), After: 3, Platforms: []string{"pc"}}); err != nil || !b.Everything() {
		t.Errorf("what stood in the log is not asked for again: %v", err)
	}
}
