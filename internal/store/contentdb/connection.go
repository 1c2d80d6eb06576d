package contentdb

import (
	"sync"

	"github.com/kiln-pipeline/kiln/internal/base/disk"

	"zombiezen.com/go/sqlite"
)

// connections has one connection opened or closed at a time, in the whole process. The library keeps what belongs to a connection, as
// its authorizer and how it waits for others, by the address of SQLite's own, and forgets it after that address is free: one that was
// opened there in between lost its authorizer, and the next question ended the program.
var connections sync.Mutex

func openConn(name string, flags sqlite.OpenFlags) (*sqlite.Conn, error) {
	if disk.IsFile(name) != nil { // SQLite would wait for a pipe
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
