package astc

// lanes reports whether the slowest functions use NEON, for eight or sixteen values at once. The output is the same.
var lanes = true // all processors of arm64 have NEON
