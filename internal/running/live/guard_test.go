package live_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/running/live"
)

func TestGuard(t *testing.T) {
	type header map[string]string
	open, wide := live.Guard{Origins: []string{"https://game.example"}}, live.Guard{Token: "s3cret", Hosts: []string{"192.168.1.5"}}
	for _, c := range []struct {
		name   string
		guard  live.Guard
		access live.Access
		method string
		url    string
		header header
		want   int
	}{
		{"no page at all", open, live.Games, "GET", "http://127.0.0.1:7171/", nil, 200},
		{"localhost", open, live.Own, "GET", "http://localhost:7171/", nil, 200},
		{"IPv6", open, live.Own, "GET", "http://[::1]:7171/", nil, 200},
		{"a name that was pointed here", open, live.Games, "GET", "http://evil.example:7171/", nil, 403},
		{"a name that begins right", open, live.Games, "GET", "http://127.0.0.1.evil.example:7171/", nil, 403},
		{"own page", open, live.Own, "POST", "http://localhost:7171/", header{"Origin": "http://localhost:7171", "Sec-Fetch-Site": "same-origin"}, 200},
		{"foreign page", open, live.Games, "GET", "http://localhost:7171/", header{"Origin": "https://evil.example"}, 403},
		{"file or sandbox", open, live.Games, "GET", "http://localhost:7171/", header{"Origin": "null"}, 403},
		{"the game's page", open, live.Games, "GET", "http://localhost:7171/", header{"Origin": "http://localhost:8000"}, 200},
		{"the game's page elsewhere", open, live.Games, "GET", "http://localhost:7171/", header{"Origin": "https://game.example"}, 200},
		{"the game's page and the dashboard", open, live.Own, "POST", "http://localhost:7171/", header{"Origin": "http://localhost:8000"}, 403},
		{"a form of a foreign page", open, live.Own, "POST", "http://localhost:7171/", header{"Sec-Fetch-Site": "cross-site"}, 403},
		{"a link of a foreign page", open, live.Own, "GET", "http://localhost:7171/", header{"Sec-Fetch-Site": "cross-site"}, 200},
		{"asks before it asks", open, live.Games, "OPTIONS", "http://localhost:7171/", header{"Origin": "http://localhost:8000"}, 204},
		{"no token", wide, live.Games, "GET", "http://192.168.1.5:7171/", nil, 401},
		{"wrong token", wide, live.Games, "GET", "http://192.168.1.5:7171/", header{"Authorization": "Bearer secret"}, 401},
		{"token", wide, live.Games, "GET", "http://192.168.1.5:7171/", header{"Authorization": "Bearer s3cret"}, 200},
		{"token in the address", wide, live.Own, "GET", "http://192.168.1.5:7171/?token=s3cret", nil, 303},
		{"token in the address of a game", wide, live.Games, "GET", "http://192.168.1.5:7171/?token=s3cret", nil, 200},
		{"token in the address of what changes something", wide, live.Own, "POST", "http://192.168.1.5:7171/?token=s3cret", nil, 200},
		{"token in a cookie", wide, live.Own, "GET", "http://192.168.1.5:7171/", header{"Cookie": "kiln-token-7171=s3cret"}, 200},
		{"another server's cookie", wide, live.Own, "GET", "http://192.168.1.5:7171/", header{"Cookie": "kiln-token-7172=s3cret"}, 401},
		{"token at a foreign name", wide, live.Own, "GET", "http://evil.example/?token=s3cret", nil, 403},
	} {
		t.Run(c.name, func(t *testing.T) {
			reached := false
			h := c.guard.Wrap(c.access, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
			r := httptest.NewRequest(c.method, c.url, nil)
			for k, v := range c.header {
				r.Header.Set(k, v)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != c.want || reached != (c.want == 200) {
				t.Errorf("%d, reached %v; want %d", w.Code, reached, c.want)
			}
			if origin := c.header["Origin"]; c.want < 300 && c.access == live.Games && w.Header().Get("Access-Control-Allow-Origin") != origin {
				t.Error("the page may not read the answer")
			}
		})
	}
	for address, want := range map[string]bool{"127.0.0.1:7171": true, "localhost:0": true, "[::1]:80": true, ":7171": false, "0.0.0.0:7171": false, "192.168.1.5:1": false} {
		if live.Loopback(address) != want {
			t.Errorf("Loopback(%q) is %v", address, !want)
		}
	}
}

// TestToken is a browser, which keeps one jar of cookies for all ports of a host: two servers with tokens of their own are looked at, one
// after the other and again.
func TestToken(t *testing.T) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	var servers []string
	for _, token := range []string{"first", "second"} {
		g := live.Guard{Token: token}
		srv := httptest.NewServer(g.Wrap(live.Own, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, token+" "+r.URL.String()) })))
		t.Cleanup(srv.Close)
		servers = append(servers, srv.URL)
	}
	look := func(url, want, at string) {
		t.Helper()
		resp, err := browser.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || string(body) != want || resp.Request.URL.String() != at {
			t.Errorf("%s: %q at %s, %v; not %q at %s", url, body, resp.Request.URL, err, want, at)
		}
	}
	look(servers[0]+"/asset/a%2Fb?token=first&x=1", "first /asset/a%2Fb?x=1", servers[0]+"/asset/a%2Fb?x=1")
	look(servers[1]+"/?token=second", "second /", servers[1]+"/")
	look(servers[0]+"/content", "first /content", servers[0]+"/content")
	look(servers[1]+"//evil.example/x?token=second", "second /evil.example/x", servers[1]+"/evil.example/x")
}

// TestReachedAddress: a server that listens everywhere answers to the address it was reached at, and to no name that somebody pointed
// there.
func TestReachedAddress(t *testing.T) {
	g := live.Guard{}
	for _, c := range []struct {
		local, host string
		want        int
	}{
		{"192.168.1.5", "192.168.1.5:7171", 200}, {"192.168.1.5", "192.168.1.6:7171", 403}, {"192.168.1.5", "evil.example:7171", 403}, {"192.168.1.5", "192.168.1.5.evil.example", 403},
		{"fd00::5", "[fd00::5]:7171", 200}, {"fd00::5", "[fd00::6]:7171", 403}, {"::ffff:192.168.1.5", "192.168.1.5:7171", 200}, {"0.0.0.0", "evil.example", 403},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = c.host
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.ParseIP(c.local), Port: 7171})))
		w := httptest.NewRecorder()
		g.Wrap(live.Own, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s as %s: %d, not %d", c.local, c.host, w.Code, c.want)
		}
	}
}
