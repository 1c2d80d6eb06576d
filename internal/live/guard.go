package live

import (
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Guard decides who may ask at all: it looks at Host, at Origin and at the token, before anything else looks at a request.
// docs/formats/live.md, "Who may", says what it lets pass and why.
type Guard struct {
	Token   string   // wanted with every request; "": the listener is on a loopback address and none is needed
	Hosts   []string // what may stand in Host besides loopback addresses: names and addresses without a port
	Origins []string // of pages that may connect besides loopback origins, "https://game.example"
}

// Access is which pages may ask.
type Access int

const (
	Own   Access = iota // pages that this server served, for what changes something or shows the project
	Games               // pages of any loopback origin too, for games that are served elsewhere
)

// tokenCookie keeps the token of a browser whose first request had it in its address.
const tokenCookie = "kiln-token"

// Wrap gives a handler that lets only those pass who may.
func (g *Guard) Wrap(access Access, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.hostAllowed(r.Host) {
			http.Error(w, "this server does not answer to the name "+limited(r.Host, maxName)+": use 127.0.0.1 or localhost, or name it with --host", http.StatusForbidden)
			return
		}
		origin := r.Header.Get("Origin")
		if origin != "" && !g.originAllowed(access, origin, r.Host) || g.crossSite(access, r) {
			http.Error(w, "pages of "+limited(origin, maxName)+" may not ask here: name it with --origin if it is your game's", http.StatusForbidden)
			return
		}
		if access == Games && origin != "" {
			allow(w, origin)
			if r.Method == http.MethodOptions {
				w.WriteHeader(http.StatusNoContent)
				return
			}
		}
		if !g.tokenGiven(w, r) {
			http.Error(w, "a token is wanted: it is in the address that `kiln serve` printed", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// allow lets a page of another origin read the answer.
func allow(w http.ResponseWriter, origin string) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Allow-Headers", "Authorization, Range, If-None-Match")
	h.Set("Access-Control-Expose-Headers", "ETag, Content-Range, Content-Length")
}

// hostAllowed tells whether a Host header names this server as it may be named. A page whose name was pointed at 127.0.0.1
// comes with that name.
func (g *Guard) hostAllowed(host string) bool {
	name := bare(host)
	return loopback(name) || slices.ContainsFunc(g.Hosts, func(h string) bool { return strings.EqualFold(h, name) })
}

func (g *Guard) originAllowed(access Access, origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false // "null" among them: files, and frames in a sandbox
	}
	if strings.EqualFold(u.Host, host) {
		return true
	}
	return access == Games && (loopback(u.Hostname()) || slices.Contains(g.Origins, strings.TrimSuffix(origin, "/")))
}

// crossSite tells whether a browser says that a page from elsewhere asks for what changes something; old browsers do not say it, and
// are judged by Origin, which they send with every POST.
func (g *Guard) crossSite(access Access, r *http.Request) bool {
	if access != Own || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return false
	}
	site := r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin"
}

// tokenGiven looks for the token where it may be: a header, the address, a cookie. A browser that had it in the address gets the
// cookie, so that links within the page need none.
func (g *Guard) tokenGiven(w http.ResponseWriter, r *http.Request) bool {
	if g.Token == "" {
		return true
	}
	right := func(given string) bool { return subtle.ConstantTimeCompare([]byte(given), []byte(g.Token)) == 1 }
	if t, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return right(t)
	}
	if right(r.URL.Query().Get("token")) {
		http.SetCookie(w, &http.Cookie{Name: tokenCookie, Value: g.Token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
		return true
	}
	c, err := r.Cookie(tokenCookie)
	return err == nil && right(c.Value)
}

// bare is a host without its port.
func bare(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

// loopback tells whether a name always means this machine.
func loopback(name string) bool {
	if strings.EqualFold(name, "localhost") {
		return true
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.IsLoopback()
}

// Loopback tells whether an address to listen on, as "127.0.0.1:7171", is reached from this machine alone. One without a host is not.
func Loopback(address string) bool { return loopback(bare(address)) }
