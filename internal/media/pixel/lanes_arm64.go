package pixel

// lanes reports whether two pixels are computed at once. The results are the same.
var lanes = true // all processors of arm64 have NEON
