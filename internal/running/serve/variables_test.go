package serve_test

import (
	"testing"

	"github.com/kiln-pipeline/kiln/internal/running/game"
	"github.com/kiln-pipeline/kiln/internal/running/live"
	client "github.com/kiln-pipeline/kiln/kilnrt/live"
)

// TestAddressOfVariables: a game that was started beside the server finds it by its variables, token included.
func TestAddressOfVariables(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "kiln.toml", project, "assets/a.txt", "A")
	srv := start(t, dir, live.Guard{Token: "secret"})
	t.Setenv(game.AddressVariable, srv.Address())
	if _, err := client.Connect(t.Context(), client.Options{}); err == nil {
		t.Error("connected without a token")
	}
	t.Setenv(game.TokenVariable, "secret")
	lib, err := client.Connect(t.Context(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lib.Close()
}
