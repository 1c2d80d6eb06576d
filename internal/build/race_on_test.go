//go:build race

package build

// slowdown is about how many times longer SQLite takes under the race detector.
const slowdown = 5
