package sound

// lanes reports whether eight samples are computed at once. The results are the same.
var lanes = true // all processors of arm64 have NEON
