package wav

// lanes reports whether samples of 16 bits are converted sixteen at a time. The results are the same.
var lanes = true // all processors of arm64 have NEON
