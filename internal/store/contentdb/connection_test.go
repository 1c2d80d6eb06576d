package contentdb

import (
	"sync"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
)

// TestConnectionsAtOnce has many goroutines open, ask and close: each question is looked at by the authorizer of its own connection.
func TestConnectionsAtOnce(t *testing.T) {
	rounds := 3000
	if !thorough.Enabled() {
		rounds = 500
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range rounds {
				asked := 0
				conn, err := openConn(":memory:", sqlite.OpenReadWrite)
				if err == nil {
					err = conn.SetAuthorizer(sqlite.AuthorizeFunc(func(sqlite.Action) sqlite.AuthResult {
						asked++
						return sqlite.AuthResultOK
					}))
				}
				if err == nil {
					err = sqlitex.ExecuteTransient(conn, "SELECT 1", nil)
				}
				if err != nil || asked == 0 {
					t.Errorf("asked %d times: %v", asked, err)
					return
				}
				if err := closeConn(conn); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
