// Package buildbarn is a separate module, so that Buildbarn's dependencies are not in Kiln's go.mod. Its servers are
// tools of the module, except two that plain Go cannot compile at these versions: bb_storage needs one changed line,
// which package testbed makes, and bb_worker needs a patched library, so the folder worker has a version without it.
package buildbarn
