package live

import (
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Guard decides who may send requests: it checks Host, Origin and the token before anything else reads a request.
// docs/formats/live.md, "Who may", describes the rules and their reasons.
type Guard struct {
	Token   string   // required with every request; "": the listener is on a loopback address and needs none
	Hosts   []string // allowed in Host besides loopback addresses: names and addresses without a port
	Origins []string // origins of pages that may connect besides loopback ones, "https://game.example"
}

// Access is which pages may send a request.
type Access int

const (
	Own   Access = iota // pages of this server, for requests that change something or show the project
	Games               // also pages of any loopback origin, for games that another server serves
)

// tokenCookie is the name of the cookie that keeps the token of a browser whose first request had it in its address.
// Browsers share cookies between all ports of a host, so the port, as the browser sees it, is part of the name:
// otherwise two servers would overwrite each other's cookie.
func tokenCookie(host string) string {
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		port = "80"
	}
	return "kiln-token-" + port
}

// Wrap returns a handler that answers only allowed requests.
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

// hostAllowed reports whether a Host header is a permitted name of this server; the address at which the request
// arrived is permitted too. If a name was made to point to this machine, a page sends that name, and never a numeric
// address.
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
		return false // includes "null": files, and frames in a sandbox
	}
	if strings.EqualFold(u.Host, host) {
		return true
	}
	return access == Games && (loopback(u.Hostname()) || slices.Contains(g.Origins, strings.TrimSuffix(origin, "/")))
}

// crossSite reports whether the browser says that a page of another site sends a request that changes something. Old
// browsers do not say it, and are checked by Origin, which they send with every POST.
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

// tokenInAddress reports whether a browser opens a page with the token in its address, and returns the address without
// it.
func (g *Guard) tokenInAddress(access Access, r *http.Request) (clean string, ok bool) {
	if g.Token == "" || access != Own || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return "", false
	}
	query := r.URL.Query()
	if !g.right(query.Get("token")) {
		return "", false
	}
	query.Del("token")
	clean = "/" + strings.TrimLeft(r.URL.EscapedPath(), "/") // two slashes would mean another host
	if rest := query.Encode(); rest != "" {
		clean += "?" + rest
	}
	return clean, true
}

// remember stores the token in the browser and redirects to the address without it, so that the token is in no history,
// bookmark or Referer. The cookie is also sent when a link on another site leads here (Lax): such a request only reads,
// and only the user sees the answer.
func (g *Guard) remember(w http.ResponseWriter, r *http.Request, clean string) {
	http.SetCookie(w, &http.Cookie{Name: tokenCookie(r.Host), Value: g.Token, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, clean, http.StatusSeeOther)
}

// tokenGiven looks for the token in a header, the address (games in browsers cannot set headers), or a cookie.
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

// loopback reports whether a name always means this machine.
func loopback(name string) bool {
	if strings.EqualFold(name, "localhost") {
		return true
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.IsLoopback()
}

// Loopback reports whether an address to listen on, such as "127.0.0.1:7171", can only be reached from this machine.
// One without a host can be reached from others.
func Loopback(address string) bool { return loopback(bare(address)) }
