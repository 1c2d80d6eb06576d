package js_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/kiln-pipeline/kiln/kilnrt/internal/judge"
)

// page opens a parcel in ranges and loads what its level needs, twice: over the network and from memory.
const page = `(async () => {
  try {
    const { open, openURL, loadAll, loadOrder, hash } = await import("/kiln.mjs");
    const far = await openURL("/parcels/all.parcel");
    const near = open(await (await fetch("/parcels/all.parcel")).arrayBuffer());
    far.check();
    near.check();
    const order = loadOrder(far, far.findName("levels/one").id, { optional: true });
    const contents = await loadAll(order);
    order.forEach((r, i) => r.verify(contents[i]));
    const same = contents.every((c, i) => String(hash(c)) === String(hash(near.find(order[i].id).bytes())));
    return order.map((r) => r.name).join(" ") + (same && String(far.digest()) === String(near.storedDigest) ? ", the same" : ", not the same");
  } catch (error) {
    return String(error.stack);
  }
})()`

func TestChromium(t *testing.T) {
	var tool string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			tool = found
			break
		}
	}
	if tool == "" {
		t.Skip("there is no Chromium")
	}
	dir := t.TempDir()
	if _, err := judge.Write(dir); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/parcels/", http.StripPrefix("/parcels/", http.FileServer(http.Dir(dir))))
	mux.HandleFunc("/kiln.mjs", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/javascript") // otherwise it depends on the system's tables
		http.ServeFile(w, r, "kiln.mjs")
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte("<!doctype html>"))
	})
	server := httptest.NewServer(mux)
	defer server.Close()

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	ctx, stop := chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(tool), chromedp.NoSandbox)...) // our page
	defer stop()
	ctx, leave := chromedp.NewContext(ctx)
	defer leave()
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("true")); err != nil {
		t.Skipf("%s does not run here: %v", tool, err)
	}
	if _, err := chromedp.Run(ctx, chromedp.Navigate(server.URL)); err != nil {
		t.Fatal(err)
	}
	got, err := chromedp.Run(ctx, chromedp.Evaluate[string](page, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	// knight requires the texture. Its optional needs are the nameless sound, and the level, which is already being
	// loaded. The level has the optional need 900, which does not exist.
	if want := "textures/größe.png  models/knight.glb levels/one, the same"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
