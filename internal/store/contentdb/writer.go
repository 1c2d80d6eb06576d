package contentdb

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

// writer turns records into rows, within a transaction that its caller commits.
//
// Each table has one prepared statement, kept for the whole build. Numbers are assigned here, so no
// row needs to be read back; when everything is written, nothing is read at all.
type writer struct {
	conn       *sqlite.Conn
	everything bool
	platforms  map[string]int64
	building   map[int64]bool // those whose jobs Put replaces, even by none

	files  numbers
	assets numbers
	texts  numbers
	lists  numbers

	// promised are assets that something refers to and that were not passed yet.
	promised map[int64]bool

	needing needing
	tally   tally // of the current asset
	tallies tallies

	insert struct {
		file, text, list, asset, job, held, observation, needs, product, reference, fact, diagnostic insertion
	}
	remove []*sqlite.Stmt // delete an asset's rows on a platform, from each of jobTables
	err    error
}

// numbers assigns a number to each name.
type numbers struct {
	known map[string]int64
	next  int64
	find  *sqlite.Stmt // name to number; nil if the table was empty
}

// get returns the number of a name, and whether the table has no row for it. If it is new, the
// number is the next free one, and the caller adds the row.
func (n *numbers) get(name string) (no int64, isNew bool, err error) {
	if no, ok := n.known[name]; ok {
		return no, false, nil
	}
	if n.find != nil {
		n.find.BindText(1, name)
		found, err := n.find.Step()
		if err != nil {
			return 0, false, err
		}
		if found {
			no = n.find.ColumnInt64(0)
			n.known[name] = no
			return no, false, n.find.Reset()
		}
		if err := n.find.Reset(); err != nil {
			return 0, false, err
		}
	}
	no = n.next
	n.next++
	n.known[name] = no
	return no, true, nil
}

// jobTables are the tables with a row or more for each job, children first.
var jobTables = []string{"observation", "job_dependency", "product", "product_dependency", "product_fact", "diagnostic", "job_held", "job"}

func newWriter(conn *sqlite.Conn, s Start, everything bool) (*writer, error) {
	w := &writer{conn: conn, everything: everything, platforms: map[string]int64{},
		building: map[int64]bool{}, promised: map[int64]bool{}, needing: newNeeding(everything)}
	if everything {
		if err := w.empty(); err != nil {
			return nil, err
		}
	}
	if err := w.putProject(s); err != nil {
		return nil, err
	}
	if err := w.putPlatforms(s); err != nil {
		return nil, err
	}
	return w, w.prepare()
}

// empty deletes all rows except those of the builds, and the indexes.
func (w *writer) empty() error {
	var script strings.Builder
	for _, kind := range []string{"index", "table"} {
		err := sqlitex.ExecuteTransient(w.conn, "SELECT name FROM sqlite_schema WHERE type = ? AND sql IS NOT NULL AND name <> 'build'",
			&sqlitex.ExecOptions{Args: []any{kind}, ResultFunc: func(st *sqlite.Stmt) error {
				verb := map[string]string{"index": "DROP INDEX", "table": "DELETE FROM"}[kind]
				fmt.Fprintf(&script, "%s %s;", verb, st.ColumnText(0))
				return nil
			}})
		if err != nil {
			return err
		}
	}
	return execute(w.conn, script.String())
}

func (w *writer) putProject(s Start) error {
	err := sqlitex.Execute(w.conn, "INSERT OR REPLACE INTO project (no, name, output, kiln) VALUES (1, ?, ?, ?)",
		&sqlitex.ExecOptions{Args: []any{s.Project, s.Output, s.Kiln}})
	if err == nil {
		err = sqlitex.Execute(w.conn, "DELETE FROM root", nil)
	}
	for i, path := range s.Roots {
		if err == nil {
			err = sqlitex.Execute(w.conn, "INSERT INTO root (no, path) VALUES (?, ?)", &sqlitex.ExecOptions{Args: []any{i, path}})
		}
	}
	return err
}

// putPlatforms numbers the platforms. A platform that the project no longer has is deleted with its
// jobs.
func (w *writer) putPlatforms(s Start) error {
	old := map[string]int64{}
	next := int64(1)
	err := sqlitex.Execute(w.conn, "SELECT no, name FROM platform", &sqlitex.ExecOptions{ResultFunc: func(st *sqlite.Stmt) error {
		old[st.ColumnText(1)] = st.ColumnInt64(0)
		next = max(next, st.ColumnInt64(0)+1)
		return nil
	}})
	if err != nil {
		return err
	}
	for _, name := range s.Platforms {
		no, had := old[name]
		if !had {
			no = next
			next++
			err := sqlitex.Execute(w.conn, "INSERT INTO platform (no, name) VALUES (?, ?)", &sqlitex.ExecOptions{Args: []any{no, name}})
			if err != nil {
				return err
			}
		}
		delete(old, name)
		w.platforms[name] = no
		if s.Building == nil {
			w.building[no] = true
		}
	}
	for _, name := range s.Building {
		no, ok := w.platforms[name]
		if !ok {
			return fmt.Errorf("platform %q is built but not listed", name)
		}
		w.building[no] = true
	}
	for _, no := range old {
		if err := w.dropPlatform(no); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) dropPlatform(no int64) error {
	w.needing.all, w.tallies.all = true, true
	script := fmt.Sprintf(`DELETE FROM platform WHERE no = %[1]d;
		DELETE FROM parcel_product WHERE parcel IN (SELECT no FROM parcel WHERE platform = %[1]d);
		DELETE FROM parcel WHERE platform = %[1]d;`, no)
	for _, table := range jobTables {
		script += fmt.Sprintf("DELETE FROM %s WHERE platform = %d;", table, no)
	}
	return execute(w.conn, script)
}

// prepare prepares the statements, and finds the free numbers.
func (w *writer) prepare() error {
	prep := func(query string) *sqlite.Stmt {
		st, err := w.conn.Prepare(query)
		w.note(err)
		return st
	}
	into := func(query string) insertion {
		row := insertion{rows: 1}
		if w.everything {
			query, row.rows = several(query), batch
		}
		row.st = prep(query)
		return row
	}
	i := &w.insert
	i.file = into(`INSERT INTO source_file (no, path, root, present, size, hash) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (no) DO UPDATE SET root = excluded.root, present = excluded.present, size = excluded.size, hash = excluded.hash`)
	i.text = into("INSERT INTO shared_text (no, text) VALUES (?, ?)")
	i.list = into("INSERT INTO shared_list (no, text) VALUES (?, ?)")
	i.asset = into(`INSERT INTO asset (no, id, uuid, file, folder, processor, failed, built, seconds, products, bytes, types, platforms, needed)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)
		ON CONFLICT (no) DO UPDATE SET id = excluded.id, uuid = excluded.uuid, file = excluded.file, folder = excluded.folder, processor = excluded.processor, failed = excluded.failed,
			built = excluded.built, seconds = excluded.seconds, products = excluded.products, bytes = excluded.bytes, types = excluded.types, platforms = excluded.platforms`)
	i.job = into(`INSERT INTO job (asset, platform, processor, failed, built, cache, reason, seconds, peak_memory, key, fingerprint, settings)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	i.held = into("INSERT INTO job_held (asset, platform, processor) VALUES (?, ?, ?)")
	i.observation = into("INSERT INTO observation (asset, platform, seq, processor, group_no, kind, file, subject, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")
	i.needs = into("INSERT OR IGNORE INTO job_dependency (asset, platform, on_asset) VALUES (?, ?, ?)")
	i.product = into("INSERT INTO product (asset, platform, sub_id, processor, name, type, file, size, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")
	i.reference = into(`INSERT INTO product_dependency (asset, platform, sub_id, to_uuid, to_sub_id, required) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET required = max(required, excluded.required)`)
	i.fact = into("INSERT INTO product_fact (asset, platform, sub_id, name, value) VALUES (?, ?, ?, ?, ?)")
	i.diagnostic = into(`INSERT INTO diagnostic (asset, platform, seq, processor, severity, code, file, line, column, length, text,
		source, source_column, hint, notes, count, cause) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)

	for _, n := range []struct {
		*numbers
		table, find string
	}{
		{&w.files, "source_file", "SELECT no FROM source_file WHERE path = ?"},
		{&w.texts, "shared_text", "SELECT no FROM shared_text WHERE text = ?"},
		{&w.lists, "shared_list", "SELECT no FROM shared_list WHERE text = ?"},
		// The index on id ignores case, but ids may differ in it: another check makes sure that no
		// two ids of a project differ only in case, but a rename may change the case.
		{&w.assets, "asset", "SELECT no FROM asset WHERE id = ?1 AND id = ?1 COLLATE BINARY"},
	} {
		n.known, n.next = map[string]int64{}, 1
		if w.everything {
			continue
		}
		n.numbers.find = prep(n.find)
		last, err := number(w.conn, "SELECT max(no) FROM "+n.table)
		if err != nil {
			return err
		}
		n.next = last + 1
	}
	if !w.needing.all {
		w.needing.names, w.needing.of, w.needing.packed = prep(namesOf), prep(needsOf), prep(inParcels)
	}
	w.tallies.jobs, w.tallies.products, w.tallies.put = prep(jobsOf), prep(productsOf), prep(putTally)
	for _, table := range jobTables {
		remove := "DELETE FROM " + table + " WHERE asset = ? AND platform = ?"
		if columns := saying[table]; columns != "" {
			remove += " RETURNING " + columns
		}
		w.remove = append(w.remove, prep(remove))
	}
	return w.err
}

// file returns the number of a source file. An unknown file gets a row. It is that of a missing file until putFiles fills it: a job that is
// held by ignore may have observed a file that was removed long ago.
func (w *writer) file(path string) int64 {
	no, isNew, err := w.files.get(path)
	w.note(err)
	if isNew {
		w.note(w.insert.file.int(no).text(path).null().bool(false).null().null().run())
	}
	return no
}

// text returns the number of a shared text; 0 for an empty one.
func (w *writer) text(s string) int64 { return w.shared(&w.texts, &w.insert.text, s) }

// list returns the number of a shared list; 0 for an empty one.
func (w *writer) list(s string) int64 { return w.shared(&w.lists, &w.insert.list, s) }

func (w *writer) shared(n *numbers, row *insertion, s string) int64 {
	if s == "" {
		return 0
	}
	no, isNew, err := n.get(s)
	w.note(err)
	if isNew {
		w.note(row.int(no).text(s).run())
	}
	return no
}

// asset returns the number of an asset that something refers to.
func (w *writer) asset(id string) int64 {
	no, isNew, err := w.assets.get(id)
	w.note(err)
	if isNew {
		w.promised[no] = true
	}
	return no
}

// note keeps the first error.
func (w *writer) note(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *writer) putFiles(files []File) error {
	for i := range files {
		f := &files[i]
		no, _, err := w.files.get(f.Path)
		if err != nil {
			return err
		}
		row := w.insert.file.int(no).text(f.Path)
		if f.Missing {
			err = row.null().bool(false).null().null().run()
		} else {
			err = row.int(int64(f.Root)).bool(true).int(f.Size).hash(f.Hash).run()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) putAsset(a *Asset) error {
	no, isNew, err := w.assets.get(a.ID)
	if err != nil {
		return err
	}
	if !isNew && !w.promised[no] {
		if err := w.removeJobs(no, a.Jobs); err != nil {
			return err
		}
	}
	if err := w.putMeta(no, isNew, a.Meta); err != nil {
		return err
	}
	delete(w.promised, no)
	processor, file := w.text(a.Processor), int64(0)
	w.needing.needs(named{uuid: a.UUID, own: true})
	if !a.Folder && a.Path != "" {
		file = w.file(a.Path)
		w.needing.needs(named{file: file, own: true})
	}
	w.tally = tally{}
	first := 0 // of the platform
	for i := range a.Jobs {
		if a.Jobs[i].Platform != a.Jobs[first].Platform {
			first = i
		}
		w.putJob(no, &a.Jobs[i], a.Jobs[first:i])
	}
	if len(w.building) < len(w.platforms) && !w.everything && w.err == nil { // there may be jobs that were not passed
		w.tally, w.err = w.tallies.read(no)
	}
	row := w.insert.asset.int(no).text(a.ID).text(a.UUID)
	switch {
	case a.Folder:
		row.null().text(a.Path)
	case file == 0:
		row.null().null()
	default:
		row.int(file).null()
	}
	w.note(w.bindTally(row.intOrNull(processor), &w.tally).run())
	if w.err != nil {
		return fmt.Errorf("asset %s: %w", a.ID, w.err)
	}
	w.needing.done()
	return nil
}

// putMeta replaces the metadata of an asset.
func (w *writer) putMeta(no int64, isNew bool, list []Meta) error {
	if !isNew {
		if err := w.each(no, "DELETE FROM asset_meta WHERE asset = ?"); err != nil {
			return err
		}
	}
	for _, m := range list { // a list may contain an element twice
		err := sqlitex.Execute(w.conn, "INSERT OR IGNORE INTO asset_meta (asset, key, value) VALUES (?, ?, ?)", &sqlitex.ExecOptions{Args: []any{no, m.Key, m.Value}})
		if err != nil {
			return err
		}
	}
	return nil
}

// putMetas updates the metadata of all assets.
func (w *writer) putMetas(all map[string][]Meta) error {
	was := map[string][]Meta{}
	const query = "SELECT a.id, m.key, m.value FROM asset_meta m JOIN asset a ON a.no = m.asset ORDER BY a.no, m.key, m.value"
	err := sqlitex.Execute(w.conn, query, &sqlitex.ExecOptions{ResultFunc: func(st *sqlite.Stmt) error {
		id := st.ColumnText(0)
		was[id] = append(was[id], Meta{st.ColumnText(1), st.ColumnText(2)})
		return nil
	}})
	if err != nil {
		return err
	}
	put := func(id string) error {
		list := slices.Clone(all[id])
		slices.SortFunc(list, func(x, y Meta) int { return cmp.Or(strings.Compare(x.Key, y.Key), strings.Compare(x.Value, y.Value)) })
		if slices.Equal(slices.Compact(list), was[id]) {
			return nil
		}
		no := int64(0)
		const find = "SELECT no FROM asset WHERE id = ?1 AND id = ?1 COLLATE BINARY"
		err := sqlitex.Execute(w.conn, find, &sqlitex.ExecOptions{Args: []any{id}, ResultFunc: func(st *sqlite.Stmt) error {
			no = st.ColumnInt64(0)
			return nil
		}})
		if err != nil || no == 0 {
			return err
		}
		return w.putMeta(no, false, list)
	}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if err := put(id); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(was)) {
		if len(all[id]) == 0 {
			if err := put(id); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeJobs deletes an asset's jobs before new ones are written.
func (w *writer) removeJobs(asset int64, jobs []Job) error {
	if err := w.flush(); err != nil {
		return err
	}
	if !w.needing.all {
		w.needing.names.BindInt64(1, asset)
		if err := w.needing.before.read(w.needing.names, true); err != nil {
			return err
		}
	}
	for name, platform := range w.platforms {
		if !w.building[platform] && !slices.ContainsFunc(jobs, func(j Job) bool { return j.Platform == name }) {
			continue
		}
		for _, st := range w.remove {
			st.BindInt64(1, asset)
			st.BindInt64(2, platform)
			if err := w.needing.before.read(st, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// putJob writes one of an asset's jobs; earlier are those before it on the same platform. If two jobs make the same
// product, which is an error that the build reports, the first one has it.
func (w *writer) putJob(asset int64, j *Job, earlier []Job) {
	platform, ok := w.platforms[j.Platform]
	if !ok {
		w.note(fmt.Errorf("platform %q is not listed", j.Platform))
		return
	}
	observations, diagnostics := 0, 0
	for i := range earlier {
		observations += len(earlier[i].Observations)
		diagnostics += len(earlier[i].Diagnostics)
	}
	made := func(sub uint32) bool {
		return slices.ContainsFunc(earlier, func(j Job) bool {
			return slices.ContainsFunc(j.Products, func(p Product) bool { return p.SubID == sub })
		})
	}
	processor, fingerprint, settings := w.text(j.Processor), w.text(j.Fingerprint), w.text(j.Settings)
	w.note(w.insert.job.int(asset).int(platform).int(processor).bool(j.Failed).int(j.Built).textOrNull(j.Cache).textOrNull(j.Reason).
		float(j.Seconds).int(j.PeakMemory).hash(j.Key).intOrNull(fingerprint).intOrNull(settings).run())
	if j.Held {
		w.note(w.insert.held.int(asset).int(platform).int(processor).run())
	}
	w.tally.job(platform, j.Failed, j.Built, j.Seconds)
	for seq := range j.Observations {
		o := &j.Observations[seq]
		var file int64
		if o.Kind.ofFile() {
			file = w.file(o.Subject)
		}
		row := w.insert.observation.int(asset).int(platform).int(int64(observations + seq)).int(processor).int(int64(o.Group)).text(string(o.Kind))
		if file != 0 {
			w.needing.needs(named{file: file})
			row.int(file).null()
		} else {
			row.null().text(o.Subject)
		}
		w.note(row.hash(o.Hash).run())
	}
	for _, id := range j.Needs {
		on := w.asset(id)
		w.needing.needs(named{asset: on})
		w.note(w.insert.needs.int(asset).int(platform).int(on).run())
	}
	for i := range j.Products {
		if p := &j.Products[i]; !made(p.SubID) {
			w.putProduct(asset, platform, processor, p)
		}
	}
	for seq := range j.Diagnostics {
		w.putDiagnostic(asset, platform, processor, diagnostics+seq, &j.Diagnostics[seq])
	}
}

func (w *writer) putProduct(asset, platform, processor int64, p *Product) {
	kind := w.text(p.Type)
	w.tally.product(p.Type, 1, p.Size)
	w.note(w.insert.product.int(asset).int(platform).int(int64(p.SubID)).int(processor).text(p.Name).intOrNull(kind).text(p.File).
		int(p.Size).hash(p.Hash).run())
	for _, r := range p.References {
		w.needing.needs(named{uuid: r.UUID})
		w.note(w.insert.reference.int(asset).int(platform).int(int64(p.SubID)).text(r.UUID).int(int64(r.SubID)).bool(r.Required).run())
	}
	for _, f := range p.Facts {
		w.note(w.insert.fact.int(asset).int(platform).int(int64(p.SubID)).text(f.Name).text(f.Value).run())
	}
}

// afterJobs is the number of the first message about an asset that belongs to none of its jobs: messages of
// jobs have lower numbers.
const afterJobs = 1 << 20

func (w *writer) putDiagnostic(asset, platform, processor int64, seq int, d *Diagnostic) {
	var cause int64
	if d.Cause != "" {
		cause = w.asset(d.Cause)
	}
	w.note(w.insert.diagnostic.int(asset).int(platform).int(int64(seq)).int(processor).text(string(d.Severity)).text(string(d.Code)).
		textOrNull(d.File).intOrNull(int64(d.Pos.Line)).intOrNull(int64(d.Column)).intOrNull(int64(d.Length)).text(d.Text).
		textOrNull(d.Line).intOrNull(int64(d.From)).textOrNull(d.Hint).
		textOrNull(list(d.Notes)).intOrNull(int64(d.Count)).intOrNull(cause).run())
}

func (w *writer) deleteAsset(id string) error {
	no, isNew, err := w.assets.get(id)
	if err != nil {
		return err
	}
	delete(w.assets.known, id)
	if isNew {
		return nil
	}
	if err := w.flush(); err != nil {
		return err
	}
	if !w.needing.all {
		w.needing.of.BindInt64(1, no)
		if err := w.needing.before.read(w.needing.of, false); err != nil {
			return err
		}
		w.needing.done()
	}
	if err := w.each(no, "DELETE FROM asset WHERE no = ?", "DELETE FROM asset_meta WHERE asset = ?", "DELETE FROM parcel_product WHERE asset = ?"); err != nil {
		return err
	}
	for _, table := range jobTables {
		if err := w.each(no, "DELETE FROM "+table+" WHERE asset = ?"); err != nil {
			return err
		}
	}
	return w.unlink(no)
}

// each runs statements about an asset; the connection caches their compiled form.
func (w *writer) each(no int64, statements ...string) error {
	for _, s := range statements {
		if err := sqlitex.Execute(w.conn, s, &sqlitex.ExecOptions{Args: []any{no}}); err != nil {
			return err
		}
	}
	return nil
}

// unlink deletes what refers to a missing asset. Its number may be assigned again.
func (w *writer) unlink(no int64) error {
	return w.each(no, "DELETE FROM job_dependency WHERE on_asset = ?", "UPDATE diagnostic SET cause = NULL WHERE cause = ?")
}

func (w *writer) putParcels(parcels []Parcel) error {
	if !w.needing.all {
		if err := w.needing.before.read(w.needing.packed, false); err != nil {
			return err
		}
	}
	if err := execute(w.conn, "DELETE FROM parcel_product; DELETE FROM parcel;"); err != nil {
		return err
	}
	parcel, err := w.conn.Prepare("INSERT INTO parcel (no, name, platform, file, size, hash) VALUES (?, ?, ?, ?, ?, ?)")
	if err != nil {
		return err
	}
	held, err := w.conn.Prepare("INSERT OR IGNORE INTO parcel_product (parcel, asset, sub_id) VALUES (?, ?, ?)")
	if err != nil {
		return err
	}
	for i := range parcels {
		p, no := &parcels[i], int64(i)+1
		platform, ok := w.platforms[p.Platform]
		if !ok {
			return fmt.Errorf("parcel %s: platform %q is not listed", p.Name, p.Platform)
		}
		row := insertion{st: parcel}
		w.note(row.int(no).text(p.Name).int(platform).text(p.File).int(p.Size).hash(p.Hash).run())
		row = insertion{st: held}
		for _, x := range p.Products {
			asset := w.asset(x.AssetID)
			w.needing.needs(named{asset: asset})
			w.note(row.int(no).int(asset).int(int64(x.SubID)).run())
		}
	}
	w.needing.done()
	return w.err
}

func (w *writer) touchParcels(parcels []Parcel) error {
	st, err := w.conn.Prepare("UPDATE parcel SET size = ?, hash = ? WHERE name = ? AND platform = ?")
	if err != nil {
		return err
	}
	for i := range parcels {
		p := &parcels[i]
		row := insertion{st: st}
		w.note(row.int(p.Size).hash(p.Hash).text(p.Name).int(w.platforms[p.Platform]).run())
		w.inParcel(p, p.Removed, "DELETE FROM parcel_product WHERE asset = ?1 AND sub_id = ?2 AND parcel = "+theParcel)
		w.inParcel(p, p.Added, "INSERT OR IGNORE INTO parcel_product (asset, sub_id, parcel) SELECT ?1, ?2, no FROM parcel WHERE no = "+theParcel)
	}
	return w.err
}

const theParcel = "(SELECT no FROM parcel WHERE name = ?3 AND platform = ?4)"

// inParcel changes the content of a parcel.
func (w *writer) inParcel(p *Parcel, products []ParcelProduct, sql string) {
	for _, x := range products {
		asset := w.asset(x.AssetID)
		if !w.needing.all {
			w.needing.changed[named{asset: asset}] = true
		}
		w.note(sqlitex.Execute(w.conn, sql, &sqlitex.ExecOptions{Args: []any{asset, int64(x.SubID), p.Name, w.platforms[p.Platform]}}))
	}
}

// finish writes the summary, deletes unused rows, and creates the indexes if everything is new.
func (w *writer) finish(number int64, s Summary) error {
	if err := sqlitex.Execute(w.conn, "DELETE FROM diagnostic WHERE processor = 0", nil); err != nil {
		return err
	}
	for seq := range s.Diagnostics {
		d := &s.Diagnostics[seq]
		if d.Asset == "" {
			w.putDiagnostic(0, 0, 0, seq, d)
		} else {
			w.putDiagnostic(w.asset(d.Asset), w.platforms[d.Platform], 0, afterJobs+seq, d)
		}
	}
	w.note(w.flush())
	if w.err != nil {
		return w.err
	}
	if w.everything {
		if err := execute(w.conn, indexesSQL); err != nil {
			return err
		}
	}
	for no := range w.promised {
		err := w.unlink(no)
		if err == nil {
			err = sqlitex.Execute(w.conn, "DELETE FROM parcel_product WHERE asset = ?", &sqlitex.ExecOptions{Args: []any{no}})
		}
		if err != nil {
			return err
		}
	}
	if err := w.needing.tell(w.conn); err != nil {
		return err
	}
	if err := w.retally(); err != nil {
		return err
	}
	// The row of a missing file is kept as long as a job has observed it.
	err := sqlitex.Execute(w.conn, `DELETE FROM source_file WHERE present = 0
		AND NOT EXISTS (SELECT 1 FROM observation o WHERE o.file = source_file.no)
		AND NOT EXISTS (SELECT 1 FROM asset a WHERE a.file = source_file.no)`, nil)
	if err != nil {
		return err
	}
	return sqlitex.Execute(w.conn, `UPDATE build SET seconds = ?, assets = ?, jobs = ?, built = ?, reused = ?, failed = ?, products = ?, bytes = ?,
		compared = ?, because = nullif(?, '') WHERE number = ?`, &sqlitex.ExecOptions{Args: []any{
		s.Seconds, s.Assets, s.Jobs, s.Built, s.Reused, s.Failed, s.Products, s.Bytes, s.Compared, s.Because, number}})
}

// flush inserts the rows of incomplete batches.
func (w *writer) flush() error {
	i := &w.insert
	for _, row := range []*insertion{&i.file, &i.text, &i.list, &i.asset, &i.job, &i.held, &i.observation, &i.needs, &i.product, &i.reference, &i.fact, &i.diagnostic} {
		if err := row.flush(); err != nil {
			return err
		}
	}
	return nil
}

// insertion binds the columns of a row in order, followed by those of the next rows if several are inserted together.
type insertion struct {
	st   *sqlite.Stmt
	n    int // number of columns already bound
	rows int // number of rows inserted together
	at   int // number of rows already bound
}

// batch is how many rows are inserted together when everything is written: 100,000 assets take 2.2 s one by one, and
// 1.9 in batches (BenchmarkWrite).
const batch = 16

// several turns a statement that inserts one row into one that inserts a batch. In an incomplete batch the other rows
// are NULL and skipped.
func several(query string) string {
	before, rest, _ := strings.Cut(query, "VALUES ")
	row, after, _ := strings.Cut(rest, ")")
	rows := strings.Repeat(", "+row+")", batch)[2:]
	return before + "SELECT * FROM (VALUES " + rows + ") WHERE column1 NOT NULL" + after
}

func (i *insertion) int(v int64) *insertion     { i.n++; i.st.BindInt64(i.n, v); return i }
func (i *insertion) float(v float64) *insertion { i.n++; i.st.BindFloat(i.n, v); return i }
func (i *insertion) text(v string) *insertion   { i.n++; i.st.BindText(i.n, v); return i }
func (i *insertion) bool(v bool) *insertion     { i.n++; i.st.BindBool(i.n, v); return i }
func (i *insertion) null() *insertion           { i.n++; i.st.BindNull(i.n); return i }

func (i *insertion) hash(h digest.Hash) *insertion {
	if h.IsZero() {
		return i.null()
	}
	i.n++
	i.st.BindBytes(i.n, h[:])
	return i
}

func (i *insertion) textOrNull(v string) *insertion {
	if v == "" {
		return i.null()
	}
	return i.text(v)
}

func (i *insertion) intOrNull(v int64) *insertion {
	if v == 0 {
		return i.null()
	}
	return i.int(v)
}

// run inserts the row, or adds it to the batch, and prepares the next.
func (i *insertion) run() error {
	if i.at++; i.at < i.rows {
		return nil
	}
	return i.flush()
}

func (i *insertion) flush() error {
	if i.at == 0 {
		return nil
	}
	for all := i.st.BindParamCount(); i.n < all; {
		i.null()
	}
	i.n, i.at = 0, 0
	if _, err := i.st.Step(); err != nil {
		return err
	}
	return i.st.Reset()
}
