// Package disk is where the disks of systems differ: putting a file in the place of another, removing one, and what their errors mean.
//
// Rules:
//
//   - A file that is put in place is whole or not there at all, on every system.
//   - A file that another program has open stands in the way on Windows alone. It is waited for, not longer than Patience: scanners of viruses
//     and indexers open what is new for some milliseconds, a game or an editor may keep it for hours.
package disk

import "time"

// Patience is how long a file that somebody has open is waited for.
const Patience = time.Second
