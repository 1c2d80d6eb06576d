package bcn

// lanes reports whether the errors of many lines, pixels or shapes are computed at once. The output is the same.
var lanes = true // all processors of arm64 have NEON
