// Package servers is a separate module, so that the dependencies of the servers are not in Kiln's go.mod. The servers
// are its tools.
package servers
