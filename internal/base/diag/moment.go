package diag

import "errors"

// ErrMoment is wrapped by a failure that may pass and does not depend on the input: a program or script took too long
// or too much memory, was killed or could not be started, or the disk was full. The same job may succeed the next time,
// so a build must not cache the failure.
var ErrMoment = errors.New("due to the moment, not to the input")
