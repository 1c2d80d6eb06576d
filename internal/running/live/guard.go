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

// tokenCookie is the name of what keeps the token of a browser whose first request had it in its address. Browsers have one jar for all
// ports of a host, so the port as they know it is part of the name: else two servers would take each other's place in it.
func tokenCookie(host string) string {
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		port = "80"
	}
	return "kiln-token-" + port
}

// Wrap gives a handler that lets only those pass who may.
func (g *Guard) Wrap(access Access, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.hostAllowed(r) {
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
		if clean, ok := g.tokenInAddress(access, r); ok {
			g.remember(w, r, clean)
			return
		}
		if !g.tokenGiven(r) {
			http.Error(w, "a token is required: it is in the address that `kiln serve` printed; a browser keeps it in a cookie, if it may", http.StatusUnauthorized)
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

// hostAllowed tells whether a Host header names this server as it may be named: that is also the address at which the request reached it. A
// page whose name was pointed at this machine comes with that name, and never with an address in numbers.
func (g *Guard) hostAllowed(r *http.Request) bool {
	name := bare(r.Host)
	if loopback(name) || slices.ContainsFunc(g.Hosts, func(h string) bool { return strings.EqualFold(h, name) }) {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	ip := net.ParseIP(name)
	return ok && ip != nil && ip.Equal(local.IP)
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

func (g *Guard) right(given string) bool {
	return subtle.ConstantTimeCompare([]byte(given), []byte(g.Token)) == 1
}

// tokenInAddress tells whether somebody looks at a page with the token in its address, and gives the address without it.
func (g *Guard) tokenInAddress(access Access, r *http.Request) (clean string, ok bool) {
	if g.Token == "" || access != Own || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return "", false
	}
	query := r.URL.Query()
	if !g.right(query.Get("token")) {
		return "", false
	}
	query.Del("token")
	clean = "/" + strings.TrimLeft(r.URL.EscapedPath(), "/") // two slashes would be another host
	if rest := query.Encode(); rest != "" {
		clean += "?" + rest
	}
	return clean, true
}

// remember has a browser keep the token, and go on at an address that has none: so it gets into no history, bookmark or Referer. The cookie
// comes along when a link elsewhere leads here (Lax): what it reads is shown to the people, and it changes nothing.
func (g *Guard) remember(w http.ResponseWriter, r *http.Request, clean string) {
	http.SetCookie(w, &http.Cookie{Name: tokenCookie(r.Host), Value: g.Token, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, clean, http.StatusSeeOther)
}

// tokenGiven looks for the token where it may be: a header, the address (games in browsers cannot set headers), a cookie.
func (g *Guard) tokenGiven(r *http.Request) bool {
	if g.Token == "" {
		return true
	}
	if t, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return g.right(t)
	}
	if g.right(r.URL.Query().Get("token")) {
		return true
	}
	return slices.ContainsFunc(r.CookiesNamed(tokenCookie(r.Host)), func(c *http.Cookie) bool { return g.right(c.Value) })
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
