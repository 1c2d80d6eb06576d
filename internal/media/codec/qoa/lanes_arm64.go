package qoa

// lanes reports whether a slice is encoded with all scales at once. The output is the same.
var lanes = true // all processors of arm64 have NEON
