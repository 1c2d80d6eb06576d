package dashboard

import (
	"context"
	"net/http"
	"time"
)

// Games gives access to the connected games.
type Games interface {
	// Connected lists them in the order in which they connected.
	Connected() []Game

	// Push sends an asset to a game again, even if the game has it.
	Push(ctx context.Context, game, asset string) error

	// Reload makes a game load everything again.
	Reload(ctx context.Context, game string) error
}

// Game is a connected game.
type Game struct {
	ID        string // of the connection
	Name      string
	Platform  string
	Address   string
	Since     time.Time
	Parcels   []string
	Loaded    []Loaded      // what it uses, the latest first; at most as many as are shown
	Resources int           // number of resources that it uses
	Swapped   time.Time     // time of its last swap; zero: never
	Latency   time.Duration // from the saved file to that
	Log       []LogLine     // the latest line last
}

// Loaded is a resource that a game uses.
type Loaded struct {
	Asset, Name string
	Stale       bool // its bytes are not those of the last build
	Refused     string
}

// LogLine is a line that a game logged.
type LogLine struct {
	At    time.Time
	Level string // "error", "warning", "info"
	Text  string
}

type gamesBody struct {
	Games []Game
	Can   bool // games can be served
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

// reload makes a game load everything again, on request of a user.
func (d *Dashboard) reload(w http.ResponseWriter, r *http.Request) {
	d.byHand(w, r, func(ctx context.Context, game string) error { return d.cfg.Games.Reload(ctx, game) })
}

// byHand does something with the game that a form names, and redirects to the page of games.
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
