// Package dashboard is Kiln in a browser: pages about the last finished build, the current one, and connected games.
//
// Its rules:
//
//   - Pages are made here, from the content database and from blobs; scripts under static only make them more
//     convenient. Without scripts every page can be read and every link followed.
//   - A page reads what it shows, never a whole project: the database limits, counts and searches lists.
//   - Nothing comes from other servers and nothing is inline: Content-Security-Policy enforces it.
//   - GET changes nothing. POST is refused if it comes from a page of another site. Sources are never written.
//   - Bytes of a project are shown as pictures, sounds, fonts or plain bytes, never as a page, because a project may
//     contain HTML from somebody else.
//
// Access is the caller's responsibility: the Handler does not check Host.
package dashboard

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
)

// Config configures a dashboard. Only Dir, Database and Blobs are required.
type Config struct {
	Dir      string    // of the project, absolute
	Database string    // path of the content database
	Blobs    cas.Blobs // products by hash

	Feed  *Feed // reports builds
	Games Games // connected games

	// Project opens the project with its current files, for what the database does not have: origins of settings,
	// budgets of parcels. Builds do not use this one.
	Project func() (*build.Project, error)

	// Release is the manifest of the last release, or a folder with its parcels, laid out as the output folder. Pages
	// show what changed since; empty: there is none.
	Release string

	// Editor is the address for "open in the editor", with {path}, {line} and {column}. Empty is DefaultEditor.
	Editor string
}

// DefaultEditor opens a file in Visual Studio Code.
const DefaultEditor = "vscode://file{path}:{line}:{column}"

//go:embed pages/*.html
var pageFiles embed.FS

//go:embed static
var staticFiles embed.FS

// Dashboard answers requests. Close it to close the database.
type Dashboard struct {
	cfg     Config
	editor  editor
	library *library
	shelf   *shelf
	pages   map[string]*template.Template
	assets  map[string]asset // files under static, by name
	stamp   string           // hash of all of them: the version in addresses
	mux     *http.ServeMux
	guard   *http.CrossOriginProtection
	now     func() time.Time
}

// asset is a file under static.
type asset struct {
	kind string // media type
	data []byte
}

// New makes a dashboard. The error means that the editor's address is invalid.
func New(cfg Config) (*Dashboard, error) {
	ed, err := newEditor(cfg.Editor, cfg.Dir)
	if err != nil {
		return nil, err
	}
	d := &Dashboard{
		cfg: cfg, editor: ed, library: &library{path: cfg.Database}, shelf: newShelf(),
		mux: http.NewServeMux(), guard: http.NewCrossOriginProtection(), now: time.Now,
	}
	if err := d.readStatic(); err != nil {
		return nil, err
	}
	if err := d.parsePages(); err != nil {
		return nil, err
	}
	d.routes()
	return d, nil
}

// Close closes the database.
func (d *Dashboard) Close() error { return d.library.close() }

func (d *Dashboard) routes() {
	page := func(pattern string, f func(r *http.Request) (*view, error)) {
		d.mux.HandleFunc("GET "+pattern, func(w http.ResponseWriter, r *http.Request) { d.serve(w, r, f) })
	}
	page("/{$}", d.buildsPage)
	page("/builds/{number}", d.buildPage)
	page("/content", d.contentPage)
	page("/asset/{id...}", d.assetPage)
	page("/file/{path...}", d.filePage)
	page("/problems", d.problemsPage)
	page("/parcels", d.parcelsPage)
	page("/parcels/{platform}/{name}", d.parcelPage)
	page("/games", d.gamesPage)
	d.mux.HandleFunc("GET /settings/{id...}", d.settingsPart)
	d.mux.HandleFunc("GET /product/{platform}/{file...}", d.productBytes)
	d.mux.HandleFunc("GET /picture/{platform}/{file...}", d.productPicture)
	d.mux.HandleFunc("GET /source/{path...}", d.sourcePicture)
	d.mux.HandleFunc("GET /listen/{platform}/{file...}", d.listen)
	d.mux.HandleFunc("GET /about-sound/{platform}/{file...}", d.aboutSound)
	d.mux.HandleFunc("GET /listen-source/{path...}", d.listenSource)
	d.mux.HandleFunc("GET /static/{name}", d.static)
	d.mux.HandleFunc("GET /events", d.events)
	d.mux.HandleFunc("POST /games/push", d.push)
	d.mux.HandleFunc("POST /games/reload", d.reload)
}

// policy allows a page only what this server sends: no other site, nothing inline, no frame around it.
const policy = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"

// ServeHTTP answers a request.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if err := d.guard.Check(r); err != nil {
		http.Error(w, "this came from another site's page and is refused", http.StatusForbidden)
		return
	}
	d.mux.ServeHTTP(w, r)
}

// view is the input of a page's template.
type view struct {
	Page  string // template, and the highlighted link in the navigation
	Title string
	Body  any
	Part  string // only this template, for a part requested by a script

	// What is on every page:
	Frame frame
	Query string // content of the search field
}

// frame is the part around every page.
type frame struct {
	Project  string
	Kiln     string
	Stamp    string
	AsOf     string // state of the page, for the stream of events
	Assets   int64
	Problems int64
	Parcels  int64
	Games    int
	Last     *buildRow // nil: no build has finished
	Status   Status
	Live     bool
}

// notFound is the error for a page that does not exist.
type notFound struct{ what string }

func (e notFound) Error() string { return e.what }

// serve renders a page. An error is shown as a page too.
func (d *Dashboard) serve(w http.ResponseWriter, r *http.Request, f func(*http.Request) (*view, error)) {
	status, asOf := http.StatusOK, d.asOf(r.Context()) // before the page: changes during rendering are sent afterwards
	v, err := f(r)
	if err != nil {
		v, status = d.failure(err)
	}
	if v.Frame, err = d.frame(r.Context()); err != nil && !databaseMissing(err) && status == http.StatusOK {
		v, status = d.failure(err)
	}
	v.Frame.AsOf = asOf
	v.Frame.Stamp = d.stamp
	var b bytes.Buffer
	if err := d.pages[v.Page].ExecuteTemplate(&b, "base", v); err != nil {
		http.Error(w, "the page cannot be drawn: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	w.Write(b.Bytes())
}

// failure is the page for an error.
func (d *Dashboard) failure(err error) (*view, int) {
	v := &view{Page: "failure", Title: "Something went wrong", Body: err.Error()}
	var none notFound
	var m *diag.Message
	switch {
	case errors.As(err, &none):
		v.Title = "Nothing here"
		return v, http.StatusNotFound
	case errors.As(err, &m):
		v.Title, v.Body = m.Text, m.Hint
		if m.Code == diag.ContentDBMissing {
			return v, http.StatusOK // a new project is not an error
		}
	}
	return v, http.StatusInternalServerError
}

// frame queries what every page shows.
func (d *Dashboard) frame(ctx context.Context) (frame, error) {
	f := frame{Live: d.cfg.Feed != nil}
	if d.cfg.Feed != nil {
		f.Status = d.cfg.Feed.Status()
	}
	if d.cfg.Games != nil {
		f.Games = len(d.cfg.Games.Connected())
	}
	rows, err := d.library.ask(ctx, `SELECT p.name, p.kiln, (SELECT count(*) FROM parcel) FROM project p`, nil, 1)
	if err != nil {
		return f, err
	}
	for _, r := range rows {
		f.Project, f.Kiln, f.Parcels = r.text(0), r.text(1), r.int(2)
	}
	if f.Problems, err = d.problems(ctx); err != nil {
		return f, err
	}
	f.Problems += int64(len(f.Status.Stopped))
	last, err := d.lastBuilds(ctx, 1)
	if len(last) > 0 {
		f.Last, f.Assets = &last[0], last[0].Assets
	}
	return f, err
}

// readStatic reads the files under static and names them by their content, so that browsers may cache them
// permanently.
func (d *Dashboard) readStatic() error {
	d.assets = map[string]asset{}
	h := digest.New()
	err := fs.WalkDir(staticFiles, "static", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := staticFiles.ReadFile(name)
		h.Write(data)
		d.assets[path.Base(name)] = asset{staticKinds[path.Ext(name)], data}
		return err
	})
	d.stamp = h.Sum().String()[:12]
	return err
}

var staticKinds = map[string]string{".css": "text/css; charset=utf-8", ".mjs": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

// static serves a file of the dashboard. Modules import each other by plain names, so these addresses have no
// version, and the entity tag shows whether a file has changed.
func (d *Dashboard) static(w http.ResponseWriter, r *http.Request) {
	a, ok := d.assets[r.PathValue("name")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", a.kind)
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", `"`+d.stamp+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.data))
}

// parsePages parses the templates: each page together with base.html and parts.html.
func (d *Dashboard) parsePages() error {
	common, err := template.New("").Funcs(d.words()).ParseFS(pageFiles, "pages/base.html", "pages/parts.html")
	if err != nil {
		return err
	}
	files, err := fs.Glob(pageFiles, "pages/*.html")
	if err != nil {
		return err
	}
	d.pages = map[string]*template.Template{}
	for _, file := range files {
		name := strings.TrimSuffix(path.Base(file), ".html")
		if name == "base" || name == "parts" {
			continue
		}
		t, err := common.Clone()
		if err == nil {
			t, err = t.ParseFS(pageFiles, file)
		}
		if err != nil {
			return fmt.Errorf("page %s: %w", name, err)
		}
		d.pages[name] = t
	}
	return nil
}

// databaseMissing reports whether an error means that no build has finished yet.
func databaseMissing(err error) bool {
	var m *diag.Message
	return errors.As(err, &m) && m.Code == diag.ContentDBMissing
}
