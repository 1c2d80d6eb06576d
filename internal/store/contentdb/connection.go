package contentdb

import (
	"sync"

	"github.com/kiln-pipeline/kiln/internal/base/disk"

	"zombiezen.com/go/sqlite"
)

// connections lets one connection at a time be opened or closed, in the whole process. The library stores data of a
// connection, such as its authorizer, by the address of SQLite's object, and deletes it after that address is free. A
// connection that was opened at the same address in between lost its authorizer, and the next question crashed the
// program.
var connections sync.Mutex

func openConn(name string, flags sqlite.OpenFlags) (*sqlite.Conn, error) {
	if disk.IsFile(name) != nil { // SQLite would block on a pipe
		return nil, wrong("it is a pipe, a socket or a device, not a file")
	}
	connections.Lock()
	defer connections.Unlock()
	return sqlite.OpenConn(name, flags)
}

func closeConn(conn *sqlite.Conn) error {
	connections.Lock()
	defer connections.Unlock()
	return conn.Close()
}
