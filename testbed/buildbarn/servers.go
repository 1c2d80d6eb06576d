// Package buildbarn is a module of its own, so that what Buildbarn needs does not reach Kiln's go.mod. Its servers are its tools, but for
// two that plain Go cannot compile at these versions: bb_storage needs one line changed, which package testbed does, and bb_worker a
// patched library, for which the folder worker has one without it.
package buildbarn
