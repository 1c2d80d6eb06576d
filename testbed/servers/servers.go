// Package servers is a module of its own, so that what servers need does not reach Kiln's go.mod. The servers are its tools.
package servers
