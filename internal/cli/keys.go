package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/kiln-pipeline/kiln/internal/running/session"
)

// keys are the keys of a watcher on a terminal.
type keys struct {
	a      *app
	s      *session.Session
	teller *watchTeller
	page   func(context.Context) error // opens the dashboard in the browser; nil: there is no dashboard
	quit   func()                      // ends the watcher
}

// keysOf returns single keys of the terminal that the command was started on, if there is one and somebody can see the
// help. restore restores the terminal.
func (a *app) keysOf() (in io.Reader, restore func(), ok bool) {
	f, isFile := a.in.(*os.File)
	if !isFile || a.json || a.quiet || !isTerminal(f) || !isTerminal(a.errs) || a.getenv("TERM") == "dumb" {
		return nil, nil, false
	}
	restore, err := singleKeys(f)
	return f, restore, err == nil
}

// help lists the keys.
func (k *keys) help() string {
	if k.page == nil {
		return "r builds again, p shows the problems, q ends it"
	}
	return "r builds again, o opens the dashboard, p shows the problems, q ends it"
}

// follow handles keys until there are no more. What builds or prints runs between two builds.
func (k *keys) follow(ctx context.Context, in io.Reader) {
	var b [1]byte
	for ctx.Err() == nil {
		if n, err := in.Read(b[:]); n == 0 || err != nil {
			return
		}
		switch b[0] {
		case 'q', 'Q':
			k.quit()
			return
		case 'r', 'R', '\r', '\n':
			k.s.Turn(ctx, func(t *session.Turn) {
				k.teller.asked = true
				t.Again()
			})
		case 'p', 'P':
			k.s.Turn(ctx, func(*session.Turn) { k.teller.problems() })
		case 'o', 'O':
			if k.page != nil {
				if err := k.page(ctx); err != nil {
					fmt.Fprintf(k.a.errs, "the browser cannot be opened: %v\n", err)
				}
			}
		case 'h', '?':
			k.s.Turn(ctx, func(*session.Turn) { fmt.Fprintln(k.a.errs, k.help()) })
		}
	}
}
