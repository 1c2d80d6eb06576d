package dashboard

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	assets "github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/store/used"
)

// newSmall is a project of texts, which are copied, and data that may name them, with some parcels.
func newSmall(t *testing.T, parcels string) *project {
	t.Helper()
	p := &project{t: t, dir: t.TempDir(), feed: NewFeed(2)}
	p.write("kiln.toml", "[project]\nname = \"small\"\n[platforms.pc]\n[[rules]]\nmatch = \"*.json\"\nsettings = { schema = \"/schema\" }\n"+parcels)
	p.write("assets/schema", `{"properties": {"needs": {"kiln:asset": true}}}`)
	return p
}

// lineOf is what a table of a page has in the line of a parcel or an asset, without markup.
func lineOf(t *testing.T, page, name string) string {
	t.Helper()
	for _, tr := range regexp.MustCompile(`(?s)<tr data-row>.*?</tr>`).FindAllString(page, -1) {
		if strings.Contains(tr, ">"+name+"<") {
			return strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(tr, " ")), " ")
		}
	}
	t.Errorf("there is no line of %s", name)
	return ""
}

// TestBudgets: each parcel tells how much of its budget it takes, and one that takes more is marked.
func TestBudgets(t *testing.T) {
	declared := func(budgets ...string) (text string) {
		for i, name := range []string{"free", "half", "over", "lost"} {
			text += fmt.Sprintf("[[parcels]]\nname = %q\nassets = [\"%s.*\"]\nover_budget = \"warn\"\n", name, name)
			if i < len(budgets) && budgets[i] != "" {
				text += "budget = " + budgets[i] + "\n"
			}
		}
		return text
	}
	p := newSmall(t, declared())
	for _, name := range []string{"free", "half", "over"} {
		p.write("assets/"+name+".txt", strings.Repeat(name, 1000))
	}
	p.write("assets/lost.json", "{")
	p.build()
	size := func(name string) int64 {
		info, err := os.Stat(filepath.Join(p.dir, "build/parcels/pc", name+".parcel"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	half, over := size("half"), size("over")
	kiln, err := os.ReadFile(filepath.Join(p.dir, "kiln.toml"))
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(kiln), "[[parcels]]")
	p.write("kiln.toml", head+declared("", fmt.Sprint(2*half), fmt.Sprint(over-over/4), "10"))
	p.build()
	s := serve(t, p.config())
	page, _ := get(t, s, "/parcels", http.StatusOK)
	share := percent(float64(over), float64(over-over/4))
	for name, want := range map[string]string{
		"free": "free pc 1 " + bytesText(size("free")) + " none",
		"half": "half pc 1 " + bytesText(half) + " 50 % of " + bytesText(2*half),
		"over": "over pc 1 " + bytesText(over) + " " + share + " % of " + bytesText(over-over/4),
		"lost": "lost pc not packed",
	} {
		if got, want := lineOf(t, page, name), strings.Join(strings.Fields(want), " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if n := strings.Count(page, `<span class="bad">`); n != 1 {
		t.Errorf("%d parcels are over their budgets, want 1", n)
	}
	has(t, page, `<span class="bad">`+share+` % of `, `<a class="bad" href="/problems">1 parcel was not packed: see what is wrong</a>`)
	one, _ := get(t, s, "/parcels/pc/over", http.StatusOK)
	has(t, one, `<span class="bad">`+share+` % of its budget of `)
	one, _ = get(t, s, "/parcels/pc/half", http.StatusOK)
	has(t, one, `<span >50 % of its budget of `)
	one, _ = get(t, s, "/parcels/pc/free", http.StatusOK)
	if strings.Contains(one, "budget") {
		t.Error("a parcel without a budget tells of one")
	}
}

// TestUnused: what no parcel has, nothing needs and no game loaded is listed with its size, the first hundred by name.
func TestUnused(t *testing.T) {
	p := newSmall(t, "[[parcels]]\nname = \"one\"\nassets = [\"in.json\"]\n")
	p.write("assets/in.json", `{"needs": "needed.txt"}`)
	p.write("assets/needed.txt", "x")
	p.write("assets/loner.json", `{"needs": "friend.txt"}`)
	p.write("assets/friend.txt", "x") // loner.json needs it
	p.write("assets/lost.txt", "12345")
	p.build()
	page, _ := get(t, serve(t, p.config()), "/parcels", http.StatusOK)
	_, list, _ := strings.Cut(page, "<h2>In no parcel ")
	loner, err := os.ReadFile(filepath.Join(p.dir, "build/pc/loner.json"))
	if err != nil {
		t.Fatal(err)
	}
	// The schema is read, so it is needed; its product is in no parcel all the same.
	has(t, list, "<i>2, "+bytesText(int64(5+len(loner)))+"</i>")
	if got, want := lineOf(t, list, "lost.txt"), "lost.txt 5 B"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	lineOf(t, list, "loner.json")
	for _, name := range []string{"in.json", "needed.txt", "friend.txt"} {
		if strings.Contains(list, ">"+name+"<") {
			t.Errorf("%s is listed", name)
		}
	}

	if err := used.NewLog(filepath.Join(p.dir, ".kiln")).Add("pc", new(used.Play), []used.Key{{UUID: assets.UUID("lost.txt")}}); err != nil {
		t.Fatal(err)
	}
	page, _ = get(t, serve(t, p.config()), "/parcels", http.StatusOK)
	has(t, page, "<h2>In no parcel <i>1, ")
	if strings.Contains(page, ">lost.txt<") {
		t.Error("what a game loaded is listed")
	}

	for i := range maxUnused + 1 {
		p.write(fmt.Sprintf("assets/many/%03d.txt", i), "x")
	}
	p.build()
	page, _ = get(t, serve(t, p.config()), "/parcels", http.StatusOK)
	has(t, page, fmt.Sprintf("<h2>In no parcel <i>%d, %s</i>", maxUnused+2, bytesText(int64(maxUnused+1+len(loner)))), "The first 100 of them; <code>kiln query unused</code> lists all.", ">098.txt<")
	if strings.Contains(page, ">099.txt<") {
		t.Error("more than the first hundred are listed")
	}
}
