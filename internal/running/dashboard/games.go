package dashboard

import (
	"context"
	"net/http"
	"time"
)

// Games are the games that are connected.
type Games interface {
	// Connected lists them, those that came first first.
	Connected() []Game

	// Push sends an asset to a game again, although it has it.
	Push(ctx context.Context, game, asset string) error

	// Reload has a game load everything anew.
	Reload(ctx context.Context, game string) error
}

// Game is a game that is connected.
type Game struct {
	ID        string // of the connection
	Name      string
	Platform  string
	Address   string
	Since     time.Time
	Parcels   []string
	Loaded    []Loaded      // what it uses, the latest first; as many as are worth showing
	Resources int           // how many it uses
	Swapped   time.Time     // when it last took a change; zero: never
	Latency   time.Duration // from the saved file to that
	Log       []LogLine     // the latest last
}

// Loaded is a resource that a game uses.
type Loaded struct {
	Asset, Name string
	Stale       bool // it has other bytes than the last build made
	Refused     string
}

// LogLine is something that a game told.
type LogLine struct {
	At    time.Time
	Level string // "error", "warning", "info"
	Text  string
}

type gamesBody struct {
	Games []Game
	Can   bool // games can be served at all
}

func (d *Dashboard) gamesPage(*http.Request) (*view, error) {
	body := gamesBody{Can: d.cfg.Games != nil}
	if body.Can {
		body.Games = d.cfg.Games.Connected()
	}
	return &view{Page: "games", Title: "Games", Body: body}, nil
}

// push sends an asset to a game by hand.
func (d *Dashboard) push(w http.ResponseWriter, r *http.Request) {
	d.byHand(w, r, func(ctx context.Context, game string) error {
		return d.cfg.Games.Push(ctx, game, r.PostFormValue("asset"))
	})
}

// reload has a game load everything anew, by hand.
func (d *Dashboard) reload(w http.ResponseWriter, r *http.Request) {
	d.byHand(w, r, func(ctx context.Context, game string) error { return d.cfg.Games.Reload(ctx, game) })
}

// byHand does something with a game that a form named, and leads back to the page of games.
func (d *Dashboard) byHand(w http.ResponseWriter, r *http.Request, do func(ctx context.Context, game string) error) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	if d.cfg.Games == nil {
		http.NotFound(w, r)
		return
	}
	if err := do(r.Context(), r.PostFormValue("game")); err != nil {
		plainError(w, err)
		return
	}
	http.Redirect(w, r, "/games", http.StatusSeeOther)
}
