// Package disk hides differences between systems: replacing and removing files, and the meaning of their errors.
//
// Rules:
//
//   - A file that is put in place is complete or missing, on every system.
//   - Only on Windows does an open file prevent these operations. It is waited for, not longer than Patience: virus
//     scanners and indexers open new files for some milliseconds, a game or an editor may keep one open for hours.
package disk

import "time"

// Patience is how long an open file is waited for.
const Patience = time.Second
